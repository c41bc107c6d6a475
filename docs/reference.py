"""Pages of the documentation that are made from the code: keys of files, commands."""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from enum import Enum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import typer
import typer.cli
import yaml
from griffe import Docstring, DocstringSectionKind
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from osmabench_ros.base.configuration import (
    EFFECTS,
    MAPPERS,
    SUITES,
    extension_names,
    load_extension,
)
from osmabench_ros.cli.main import app
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.simulation.conditions import Condition

_ROOT = Path(__file__).parents[1]
_BOUNDS = {'ge': '≥', 'gt': '>', 'le': '≤', 'lt': '<', 'min_length': 'at least', 'max_length': '≤'}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made; called by MkDocs."""
    for name, text in pages().items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Lead links between this folder and the root of the repository to pages; called by MkDocs."""
    return markdown.replace('](../CONTRIBUTING.md', '](contributing.md').replace('](docs/', '](')


def pages() -> dict[str, str]:
    """Return the texts of all pages that are made, by file."""
    return {
        'reference/configuration.md': configuration_page(),
        'reference/conditions.md': condition_page(),
        'reference/options.md': options_page(),
        'reference/commands.md': commands_page(),
        'contributing.md': (_ROOT / 'CONTRIBUTING.md').read_text(encoding='utf-8'),
    }


def configuration_page() -> str:
    """Return the keys of a file for `osmabench run`."""
    return '\n\n'.join(
        [
            '# Configuration of a matrix',
            'Every key of the YAML file that `osmabench run` reads, made from the models that '
            'check it. An unknown key, or a value out of bounds, is refused with its name.',
            *_sections(MatrixConfig, ''),
        ]
    )


def condition_page() -> str:
    """Return the keys of a file of a condition."""
    return '\n\n'.join(
        [
            '# A condition',
            'Every key of the YAML file of a condition; [conditions](../conditions.md) explains '
            'them with examples.',
            *_sections(Condition, ''),
        ]
    )


def options_page() -> str:
    """Return the options of what can be named in a configuration."""
    parts = [
        '# Options',
        'What stands under `options:` of a suite or mapper, and beside `kind:` of an effect.',
    ]
    for title, group in (('Suites', SUITES), ('Mappers', MAPPERS), ('Effects', EFFECTS)):
        parts.append(f'## {title}')
        for name in extension_names(group):
            model = _options_of(load_extension(group, name))
            if model is not None:
                parts += _sections(model, name, level=3)
    return '\n\n'.join(parts)


def _options_of(extension: Any) -> type[BaseModel] | None:
    """Return the model of the options: an effect itself, else the last one in its module."""
    if isinstance(extension, type) and issubclass(extension, BaseModel):
        return extension
    module = inspect.getmodule(extension if inspect.isclass(extension) else type(extension))
    models = [
        value
        for name, value in vars(module).items()
        if name.endswith('Options') and issubclass(value, BaseModel)
        if value.__module__ == module.__name__
    ]
    return models[-1] if models else None


def commands_page() -> str:
    """Return the help of all commands."""
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    for command in group.commands.values():
        _keep_whole_lines(command)
    context = typer.Context(group, info_name='osmabench')
    return typer.cli.get_docs_for_click(obj=group, ctx=context, name='osmabench')


def _keep_whole_lines(command: Any) -> None:
    """Keep typer from cutting first lines of help short in lists."""
    command.short_help = (command.help or '').partition('\n')[0]
    for listed in getattr(command, 'commands', {}).values():
        _keep_whole_lines(listed)


def _sections(
    model: type[BaseModel],
    path: str,
    level: int = 2,
    shown: dict[type[BaseModel], str] | None = None,
) -> Iterator[str]:
    """Yield the text and table of a model, then of the sections in it, each model once."""
    shown = {} if shown is None else shown
    if path:
        yield f'{"#" * level} `{path}`'
    if model in shown:
        yield f'The keys of `{shown[model]}`.'
        return
    shown[model] = path
    text, described = _docstring(model)
    yield text
    rows, inner = [], []
    for name, field in model.model_fields.items():
        section = _section_of(field.annotation)
        words = field.description or described.get(name) or _attribute_text(model, name)
        if section is not None:
            place = f'{path}.{name}' if path else name
            inner.append((section, place))
            words = words or _docstring(section)[0].partition('\n')[0]
        cells = (f'`{name}`', ' '.join(words.split()), _type_text(field), _default_text(field))
        rows.append('| ' + ' | '.join(cell.replace('|', '\\|') for cell in cells) + ' |')
    yield '\n'.join(['| key | meaning | value | default |', '|---|---|---|---|', *rows])
    for section, place in inner:
        yield from _sections(section, place, min(level + 1, 6), shown)


@cache
def _docstring(model: type[BaseModel]) -> tuple[str, dict[str, str]]:
    """Return the prose of a docstring, and the descriptions of keys in its sections."""
    prose, described = [], {}
    for section in Docstring(inspect.getdoc(model) or '', lineno=1).parse('numpy'):
        if section.kind is DocstringSectionKind.text:
            prose.append(section.value)
        elif section.kind in (DocstringSectionKind.parameters, DocstringSectionKind.attributes):
            for item in section.value:
                described[item.name.lstrip('*')] = item.description
    return '\n\n'.join(prose), described


@cache
def _attribute_texts(model: type) -> dict[str, str]:
    """Return the texts below fields in the source of a class."""
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(model))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, below in zip(definition.body, definition.body[1:], strict=False):
        if (
            isinstance(field, ast.AnnAssign)
            and isinstance(field.target, ast.Name)
            and isinstance(below, ast.Expr)
            and isinstance(below.value, ast.Constant)
        ):
            found[field.target.id] = str(below.value.value)
    return found


def _attribute_text(model: type[BaseModel], name: str) -> str:
    """Return the text below a field, in its class or a base class."""
    for base in model.__mro__:
        if base is not BaseModel and issubclass(base, BaseModel):
            text = _attribute_texts(base).get(name) or _docstring(base)[1].get(name)
            if text:
                return text
    return ''


def _section_of(annotation: Any) -> type[BaseModel] | None:
    """Return the model inside of an annotation, if there is one and no choice of several."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    found = {
        section
        for part in get_args(annotation)
        if not isinstance(part, str) and (section := _section_of(part)) is not None
    }
    return found.pop() if len(found) == 1 else None


def _type_text(field: FieldInfo) -> str:
    bounds = [
        f'{sign} {getattr(item, key)}'
        for item in field.metadata
        for key, sign in _BOUNDS.items()
        if getattr(item, key, None) is not None
    ]
    return ' '.join([_type_name(field.annotation), *bounds])


def _type_name(annotation: Any) -> str:
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_name(parts[0])
    if origin is Literal:
        return ' or '.join(f'`{part}`' for part in parts)
    if origin in (Union, UnionType):
        names = dict.fromkeys(_type_name(part) for part in parts if part is not NoneType)
        return ' or '.join(names)
    if origin in (tuple, list):
        inner = dict.fromkeys(_type_name(part) for part in parts if part is not Ellipsis)
        count = '' if Ellipsis in parts else f'{len(parts)} '
        return f'list of {count}{" or ".join(inner)}'
    if origin is dict:
        return f'mapping of {_type_name(parts[0])} to {_type_name(parts[1])}'
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return ' or '.join(f'`{item.value}`' for item in annotation)
        if issubclass(annotation, BaseModel):
            return 'section'
        for kind, name in ((bool, 'true or false'), (int, 'integer'), (float, 'number')):
            if issubclass(annotation, kind):
                return name
        if issubclass(annotation, (str, Path)):
            return 'text'
    return 'any'


def _default_text(field: FieldInfo) -> str:
    if field.is_required():
        return 'required'
    default = field.get_default(call_default_factory=True)
    if default is PydanticUndefined or default is None or default in ('', (), {}):
        return ''
    plain = to_jsonable_python(default)
    if isinstance(plain, dict):
        return ''
    if isinstance(plain, list) and plain and isinstance(plain[0], dict):
        names = [str(item['name']) for item in plain if 'name' in item]
        return ', '.join(f'`{name}`' for name in names)
    # A scalar is followed by a line that ends the document.
    return f'`{yaml.safe_dump(plain, default_flow_style=True, width=1000).splitlines()[0]}`'
