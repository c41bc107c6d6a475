"""Read the tables of the apartment, and the lengths that they state as sums and products."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from osmabench_ros.base.documents import parse_yaml
from osmabench_ros.errors import SceneError

Names = Mapping[str, Any]

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.USub: operator.neg,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}
# What every formula may name; a table adds its names.
_KNOWN: dict[str, Any] = {
    'pi': np.pi,
    **{name: getattr(np, name) for name in ('abs', 'arctan2', 'cos', 'hypot', 'maximum', 'sin')},
    'int': lambda values: values.astype(int),
    'round': round,
    'where': np.where,
}


@cache
def read_table(name: str) -> Any:
    """Return a table that comes with the package; nobody changes it."""
    source = f'{name}.yaml'
    text = resources.files(__package__).joinpath(source).read_text('utf-8')
    return parse_yaml(text, source, SceneError)


@contextmanager
def naming_keys(table: str, row: str) -> Iterator[None]:
    """Raise a SceneError that names the file for a key or name that a row of a table lacks."""
    try:
        yield
    except KeyError as error:
        raise SceneError(f'{table}.yaml: {row}: there is no "{error.args[0]}"') from error


@cache
def read_room(label: str) -> Mapping[str, Any]:
    """Return the row of a kind of room, with the defaults of all rooms."""
    table = read_table('rooms')
    return {**table['default'], **table.get(label, {})}


def evaluate(value: Any, names: Names) -> Any:
    """Return a value of a table: a text is a formula over names, a list is a list of values."""
    if isinstance(value, str):
        return _compile(value)(names)
    return [evaluate(item, names) for item in value] if isinstance(value, list) else value


@cache
def _compile(formula: str) -> Callable[[Names], Any]:
    return _compile_node(ast.parse(formula, mode='eval').body)


def _compile_node(node: ast.AST) -> Callable[[Names], Any]:
    """Return a function of names for a number, name, operation or call of a formula."""
    match node:
        case ast.Constant(value=value):
            return lambda _: value
        case ast.Name(id=name) if name in _KNOWN:
            return lambda _: _KNOWN[name]
        case ast.Name(id=name):
            return lambda names: names[name]
        case ast.UnaryOp(op=kind, operand=operand):
            function = _OPERATORS[type(kind)]
            inner = [operand]
        case (
            ast.BinOp(left=left, op=kind, right=right)
            | ast.Compare(left=left, ops=[kind], comparators=[right])
        ):
            function = _OPERATORS[type(kind)]
            inner = [left, right]
        case ast.Call(func=called, args=arguments):
            function = _call
            inner = [called, *arguments]
        case _:
            raise SceneError(f'a table of the apartment cannot hold "{ast.unparse(node)}"')
    parts = [_compile_node(item) for item in inner]
    return lambda names: function(*(part(names) for part in parts))


def _call(function: Callable[..., Any], *values: Any) -> Any:
    return function(*values)
