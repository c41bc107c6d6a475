"""The osmabench command."""

from __future__ import annotations

import signal
import sys
from types import FrameType
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from osmabench_ros.base.limits.reading import shown
from osmabench_ros.cli.deferred import group_of
from osmabench_ros.errors import OsmabenchError, show_warnings_as_lines

COMMANDS = {
    'demo': 'run:demo',
    'run': 'run:run',
    'sweep': 'sweep:sweep',
    'doctor': 'doctor:doctor',
    'evaluate': 'evaluate:evaluate',
    'evaluate-bag': 'evaluate_bag:evaluate_bag',
    'generate': 'generate:generate',
    'ground-truth': 'evaluate:ground_truth',
    'import-scene': 'import_scene:import_scene',
    'export-scene': 'import_scene:export_scene',
    'record': 'record:record',
    'replay': 'replay:replay',
    'status': 'report:status',
    'report': 'report:report',
    'compare': 'compare:compare',
    'view': 'view:view',
    'map': 'map:app',
    'score': 'score:app',
    'vqa': 'vqa:app',
    'conditions': 'conditions:app',
}
"""Module and name of every command in this room, in the order of --help."""

app = typer.Typer(
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


@app.callback()
def osmabench() -> None:
    """Benchmark of semantic mapping under changing light, motion and on real robots."""


class InterruptedBySignalError(SystemExit):
    """Raised at the point of the signal, so that all open contexts clean up."""


def _interrupt(number: int, _frame: FrameType | None) -> NoReturn:
    # What follows is the clean-up; a second Ctrl-C must not cut it short.
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, signal.SIG_IGN)
    raise InterruptedBySignalError(128 + number)


def main(command: typer.Typer = app) -> NoReturn:
    """Run a command; an error of ours is one line and an exit code, never a traceback."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, _interrupt)
    console = Console(stderr=True, soft_wrap=True)
    show_warnings_as_lines()
    try:
        command()
    except OsmabenchError as error:
        console.print(f'[bold red]error:[/] {escape(str(error))}', highlight=False)
        sys.exit(error.exit_code)
    except OSError as error:
        # Of a path that the system cannot even look up, or a disk that is full or gone.
        where = '' if error.filename is None else f'{shown(str(error.filename))}: '
        console.print(f'[bold red]error:[/] {escape(where + (error.strerror or str(error)))}')
        sys.exit(OsmabenchError.exit_code)
    except InterruptedBySignalError:
        console.print('interrupted; what was finished is kept, run again to resume')
        raise
    sys.exit(0)


if __name__ == '__main__':
    main()
