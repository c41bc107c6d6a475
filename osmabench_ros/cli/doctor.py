"""`osmabench doctor`."""

from __future__ import annotations

import json
import logging
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from typer import Option

from osmabench_ros.base.contract import CONTRACT
from osmabench_ros.base.log import terminal_level
from osmabench_ros.base.progress import shown_progress, silent
from osmabench_ros.cli.options import AsJson, pair_of
from osmabench_ros.cli.run import needs_ros
from osmabench_ros.errors import ContractError, MissingDependencyError

if TYPE_CHECKING:
    from osmabench_ros.bringup.preflight import Finding
    from osmabench_ros.runs.config import MatrixConfig

STYLES = {'ok': 'green', 'absent': 'yellow', 'warn': 'yellow', 'failed': 'red'}


def doctor(
    out: Annotated[Path, Option(help='Where results would go.')] = Path('runs'),
    stack: Annotated[bool, Option('--stack', help='Examine the running ROS 2 stack.')] = False,
    seconds: Annotated[
        float, Option(min=0.5, max=3600, help='How long to listen to the stack.')
    ] = 5.0,
    config: Annotated[str, Option(help='YAML file, or a name in config/, of a run.')] = '',
    namespace: Annotated[str, Option(help="Namespace of the stack's topics.")] = '',
    remap: Annotated[
        list[str] | None, Option(help='FROM:=TO, from the contract to the stack.')
    ] = None,
    robot: Annotated[
        Path | None, Option(help='YAML file of topics, or a name in methods/live.')
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List installed and missing parts, or the problems of a running stack.

    With --stack, every topic of the contract is looked at in the ROS_DOMAIN_ID and discovery
    range of this shell: types, quality of service, rates, stamps, images, intrinsics, transforms,
    clock, labels and maps. Exits with 0 unless something failed.
    """
    from osmabench_ros.bringup.preflight import Severity, examine, examine_run
    from osmabench_ros.runs.config import load_config

    planned = load_config(config) if config else None
    if stack:
        findings = _stack(seconds, planned, namespace, remap or [], robot, quiet=as_json)
    else:
        findings = examine(out) + (examine_run(planned, out) if planned else [])
    whole = as_json or not stack or terminal_level() == logging.DEBUG
    shown = findings if whole else _without_passed(findings)
    _show(shown, as_json=as_json, omitted=len(findings) - len(shown))
    broken = list(dict.fromkeys(item.part for item in findings if item.level is Severity.FAILED))
    if broken and stack:
        raise ContractError(f'checks failed: {", ".join(broken)}')
    if broken:
        raise MissingDependencyError(f'no run is possible without: {", ".join(broken)}')


def _stack(
    seconds: float,
    planned: MatrixConfig | None,
    namespace: str,
    remap: list[str],
    robot: Path | None,
    *,
    quiet: bool,
) -> list[Finding]:
    with needs_ros('looking at a stack'):
        from osmabench_ros.bringup import examination
        from osmabench_ros.bringup.stack_observation import StackNames
    named = examination.names_of_robot(robot) if robot else StackNames()
    own_maps = {
        item.map_topic: item.map_type
        for item in (planned.mappers if planned else ())
        if item.map_topic
    }
    own = dict(pair_of(text, ':=', '--remap', 'FROM:=TO') for text in remap)
    examination.check_names_of_topics(own, '--remap')
    names = StackNames(namespace, {**named.remappings, **own}, {**named.extra_topics, **own_maps})
    with nullcontext(silent) if quiet else shown_progress() as progress:
        return examination.examine_stack(names, seconds=seconds, config=planned, progress=progress)


# Topics of a stack that are shown even if nothing is wrong with them.
SHOWN_TOPICS = ('run_info', 'run_state', 'camera/color/image_raw', 'semantic_map')


def _without_passed(findings: list[Finding]) -> list[Finding]:
    """Return the findings that need a reader: problems, the user's topics, the main topics."""
    standard = {item.name for item in CONTRACT}.difference(SHOWN_TOPICS)
    return [item for item in findings if item.level.value != 'ok' or item.part not in standard]


def _show(findings: list[Finding], *, as_json: bool, omitted: int) -> None:
    if as_json:
        typer.echo(json.dumps(list(map(asdict, findings)), indent=2))
        return
    table = Table('part', 'state', box=None)
    table.add_column('detail', overflow='fold')
    console = Console()
    for item in findings:
        style = STYLES[item.level.value]
        # The message of a library may look like markup.
        table.add_row(item.part, f'[{style}]{item.level.value}[/]', escape(item.detail))
    console.print(table)
    if omitted:
        console.print(f'{omitted} more checks passed; --verbose lists them', highlight=False)
    # Whole and on its own line, as it is to be copied.
    parts: dict[str, list[str]] = {}
    for item in findings:
        parts.setdefault(item.remedy, []).append(item.part)
    parts.pop('', None)
    for remedy, named in parts.items():
        text = f'[bold]{", ".join(named)}[/]: {escape(remedy)}'
        console.print(text, highlight=False, soft_wrap=True)
