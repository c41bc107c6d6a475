"""The osmabench command."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer import Option
from typer.models import CommandInfo

from osmabench_ros.base.log import LOG, send_warnings
from osmabench_ros.base.progress import noticed
from osmabench_ros.cli import bag, conditions, doctor, report, run, scene, score, vqa
from osmabench_ros.cli import map as semantic_map
from osmabench_ros.cli.options import with_verbosity
from osmabench_ros.errors import OsmabenchError, describe_error, make_printable

app = typer.Typer(
    no_args_is_help=True, pretty_exceptions_enable=False, rich_markup_mode='markdown'
)
for command in (run.demo, run.run, report.status, report.report, report.compare, report.export):
    app.command()(command)
for module in (scene, semantic_map, bag, score, vqa, conditions):
    app.add_typer(module.app)
app.command()(doctor.doctor)


def _commands_of(group: typer.Typer) -> Iterator[CommandInfo]:
    yield from group.registered_commands
    for inner in group.registered_groups:
        if inner.typer_instance is not None:
            yield from _commands_of(inner.typer_instance)


for registered in _commands_of(app):
    assert registered.callback is not None
    registered.callback = with_verbosity(registered.callback)


def _show_version(wanted: bool) -> None:
    if wanted:
        from osmabench_ros.base.configuration import version

        typer.echo(f'osmabench_ros {version()}')
        raise typer.Exit


@app.callback()
def osmabench(
    _: Annotated[
        bool, Option('--version', callback=_show_version, is_eager=True, help='Show the version.')
    ] = False,
) -> None:
    """Benchmark of semantic mapping under changing light, motion and on real robots."""


class InterruptedBySignalError(SystemExit):
    """Raised at the point of the signal, so that all open contexts clean up."""


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    text = 'interrupted; ending what runs'
    if not noticed(text):
        os.write(2, f'\n{text}\n'.encode())
    # What follows is the clean-up; a second Ctrl-C must not cut it short.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    raise InterruptedBySignalError(128 + number)


def main(command: typer.Typer = app) -> NoReturn:
    """Run a command; an OsmabenchError is one line and an exit code, never a traceback."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, _interrupt)
    console = Console(stderr=True)
    console.soft_wrap = not console.is_terminal
    send_warnings(LOG.warning)
    try:
        command()
    except OsmabenchError as error:
        LOG.debug('the command failed', exc_info=True)
        console.print(f'[bold red]error:[/] {escape(str(error))}', highlight=False)
        if error.log_file is not None and error.log_file.exists():
            console.print(f'log: {escape(str(error.log_file))}', highlight=False)
        sys.exit(error.exit_code)
    except OSError as error:
        # Of a path that the system cannot even look up, or a disk that is full or gone.
        where = '' if error.filename is None else f'{error.filename}: '
        text = make_printable(where + describe_error(error))
        console.print(f'[bold red]error:[/] {escape(text)}', highlight=False)
        sys.exit(OsmabenchError.exit_code)
    except InterruptedBySignalError:
        console.print(
            'interrupted; finished parts are kept, and commands that resume continue there'
        )
        raise
    sys.exit(0)


if __name__ == '__main__':
    main()
