"""Read the tables of the apartment, and the lengths that they state as sums and products."""

import ast
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib import resources
from types import CodeType
from typing import Any

import numpy as np

from osmabench_ros.base.documents import parse_yaml
from osmabench_ros.errors import SceneError

Names = Mapping[str, Any]

# Parts of a formula: no attributes or subscripts, which could lead to code.
_ALLOWED = (
    ast.Expression, ast.Constant, ast.Name, ast.Load, ast.Call,
    ast.UnaryOp, ast.unaryop, ast.BinOp, ast.operator, ast.Compare, ast.cmpop,
)  # fmt: skip
# What every formula may name; a table adds its names.
_KNOWN: dict[str, Any] = {
    '__builtins__': {},
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
    except (KeyError, NameError) as error:
        name = error.name if isinstance(error, NameError) else error.args[0]
        raise SceneError(f'{table}.yaml: {row}: there is no "{name}"') from error


@cache
def read_room(label: str) -> Mapping[str, Any]:
    """Return the row of a kind of room, with the defaults of all rooms."""
    table = read_table('rooms')
    return {**table['default'], **table.get(label, {})}


def evaluate(value: Any, names: Names) -> Any:
    """Return a value of a table: a text is a formula over names, a list is a list of values."""
    if isinstance(value, str):
        return eval(_compile(value), _KNOWN, names)  # noqa: S307 - of _ALLOWED parts only
    return [evaluate(item, names) for item in value] if isinstance(value, list) else value


@cache
def _compile(formula: str) -> CodeType:
    """Return the code of a formula of names, numbers, operations and calls."""
    tree = ast.parse(formula, mode='eval')
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED):
            raise SceneError(f'a table of the apartment cannot hold "{ast.unparse(node)}"')
    return compile(tree, formula, 'eval')
