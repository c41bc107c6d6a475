"""Options that several commands share."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from osmabench_ros.errors import ConfigError

if TYPE_CHECKING:
    from osmabench_ros.language.settings import ModelAccess


def _checked(file: Path | None) -> Path | None:
    # A missing library is reported before minutes are spent.
    if file is not None:
        from osmabench_ros.reports.rerun.rerun_recording import require_rerun

        require_rerun()
    return file


Config = Annotated[str, Argument(help='YAML file, or a name in config/, e.g. demo.')]
NewFolder = Annotated[Path, Option('--out', help='Folder to write; must not exist, or be empty.')]
Overwrite = Annotated[bool, Option('--overwrite', help='Replace a file that no run made.')]
SceneName = Annotated[str, Option('--scene', help='Scene of a data set.')]
Seed = Annotated[int, Option('--seed', min=0, help='Seed of the apartment.')]
AsJson = Annotated[bool, Option('--json', help='Print JSON for programs.')]
RerunFile = Annotated[
    Path | None,
    Option(
        '--rerun',
        metavar='FILE.rrd',
        callback=_checked,
        help='Also write a recording for Rerun, one for each run.',
    ),
]
_model_option = partial(Option, rich_help_panel='Language model')
DryRun = Annotated[bool, _model_option('--dry-run', help='Print counts and costs; ask no model.')]


@dataclasses.dataclass(frozen=True)
class ModelOptions:
    """Options of language models; None leaves the default of `ModelAccess`."""

    base_url: Annotated[str | None, _model_option(help='Address of your own server.')] = None
    cache: Annotated[Path | None, _model_option(help='Folder of replies; else in ~/.cache.')] = (
        None
    )
    concurrency: Annotated[int | None, _model_option(help='Requests at a time; else 4.')] = None
    max_tokens: Annotated[int | None, _model_option(help='Stop before more tokens.')] = None
    max_cost: Annotated[float | None, _model_option(help='Stop before more is spent.')] = None
    input_price: Annotated[float | None, _model_option(help='For a million tokens sent.')] = None
    output_price: Annotated[float | None, _model_option(help='For a million tokens received.')] = (
        None
    )
    timeout_s: Annotated[
        float | None, _model_option('--timeout', help='Seconds for a reply; else 120.')
    ] = None

    @property
    def access(self) -> ModelAccess:
        """The checked settings."""
        from osmabench_ros.base.strict import validated
        from osmabench_ros.language.settings import ModelAccess

        return validated(ModelAccess, given_of(**vars(self)), 'options')


def given_of(**options: Any) -> dict[str, Any]:
    """Return the options that were given."""
    return {name: value for name, value in options.items() if value is not None}


def pair_of(text: str, sign: str, option: str, form: str) -> tuple[str, str]:
    """Return both sides of a sign in the value of an option; ConfigError names the right form."""
    before, found, after = text.partition(sign)
    if not (before and found and after):
        raise ConfigError(f'{option} "{text}" is not of the form {form}')
    return before, after


def with_option_groups(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command an option for each field of the dataclasses among its parameters.

    Typer reads options from a signature: the one of the command, with each dataclass replaced by
    its fields, which are annotated with their options.
    """
    groups: dict[str, tuple[type, list[str]]] = {}
    options: list[inspect.Parameter] = []
    for parameter in inspect.signature(command, eval_str=True).parameters.values():
        kind = parameter.annotation
        if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
            options.append(parameter)
            continue
        fields = inspect.signature(kind, eval_str=True).parameters
        groups[parameter.name] = (kind, list(fields))
        options += fields.values()

    @functools.wraps(command)
    def run(**values: Any) -> None:
        made = {
            name: group(**{field: values.pop(field) for field in fields})
            for name, (group, fields) in groups.items()
        }
        command(**values, **made)

    only = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.Signature([item.replace(kind=only) for item in options])
    run.__signature__ = signature  # type: ignore[attr-defined]
    run.__annotations__ = {name: p.annotation for name, p in signature.parameters.items()}
    return run
