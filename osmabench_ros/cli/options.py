"""Options shared by several commands, and option groups as one parameter of a command."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

import typer
from pydantic import BaseModel

from osmabench_ros.base.settings import Named, Setting, settings_of
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError


def _checked(file: Path | None) -> Path | None:
    # A missing library is reported before minutes are spent.
    if file is not None:
        from osmabench_ros.reports.rerun.rerun_recording import require_rerun

        require_rerun()
    return file


NewFolder = Annotated[
    Path, typer.Option('--out', help='Folder to write; must not exist, or be empty.')
]

Overwrite = Annotated[
    bool, typer.Option('--overwrite', help='Replace a file that is there and not of a run.')
]

RerunFile = Annotated[
    Path | None,
    typer.Option(
        '--rerun',
        metavar='FILE.rrd',
        callback=_checked,
        help='Also write a recording for the Rerun viewer; of several runs, one each.',
    ),
]


def pair_of(text: str, sign: str, option: str, form: str) -> tuple[str, str]:
    """Return both sides of a sign in the value of an option; ConfigError names the right form."""
    before, found, after = text.partition(sign)
    if not (before and found and after):
        raise ConfigError(f'{option} "{text}" is not of the form {form}')
    return before, after


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of the groups among its parameters.

    A group is a dataclass whose fields are annotated with their options, or a pydantic model,
    annotated with the option of each field that users may set, as `Named`. Typer reads options
    from a signature: the one of the command, with each group replaced by its fields.
    """
    groups: dict[str, tuple[list[str], Callable[..., Any]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        fields, make = _group_of(parameter.annotation)
        if fields:
            groups[parameter.name] = ([field.name for field in fields], make)
        options += fields or [parameter]

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: make(**{field: values.pop(field) for field in fields})
            for name, (fields, make) in groups.items()
        }
        command(**values, **made)

    only = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([item.replace(kind=only) for item in options])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run


def _group_of(kind: Any) -> tuple[list[inspect.Parameter], Callable[..., Any]]:
    """Return the options of a parameter's group, and the function that makes its value."""
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return list(inspect.signature(kind, eval_str=True).parameters.values()), kind
    model, *metadata = get_args(kind) or (None,)
    named = next((item for item in metadata if isinstance(item, Named)), None)
    if model is None or named is None:
        return [], dict
    made: type[BaseModel] = named.changes or model
    known = {item.name: item for item in settings_of(made)}
    options = [
        _parameter(known[field], option, made, named) for field, option in named.names.items()
    ]

    def make(**given: Any) -> Any:
        there = {name: value for name, value in given.items() if value is not None}
        return there if named.changes else validated(made, there, 'options')

    return options, make


def _parameter(
    setting: Setting, option: str, model: type[BaseModel], named: Named
) -> inspect.Parameter:
    option = option.replace('_', '-')
    names = f'--{option}/--no-{option}' if setting.default is True else f'--{option}'
    text = setting.description
    if setting.kind is list:
        text += ' May be repeated.'
    bounds: dict[str, Any] = {}
    if setting.kind in (int, float):
        bounds = {'min': setting.minimum, 'max': setting.maximum}
    shown = typer.Option(names, help=text, rich_help_panel=named.panel or None, **bounds)
    kind: Any = model.model_fields[setting.name].annotation
    default = setting.default
    if named.changes:
        kind, default = kind | None, None
    if setting.kind is list:
        kind, default = list[_plain(get_args(kind)[0])] | None, None  # type: ignore[misc]
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[_plain(kind), shown],
    )


def _plain(kind: Any) -> Any:
    """Return a type without the metadata that only pydantic uses."""
    if get_origin(kind) is Annotated:
        return get_args(kind)[0]
    if get_origin(kind) in (Union, UnionType):
        return Union[tuple(map(_plain, get_args(kind)))]  # noqa: UP007 - made at run time
    return kind
