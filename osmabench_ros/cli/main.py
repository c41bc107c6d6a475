"""The osmabench command."""

from __future__ import annotations

import sys
from typing import NoReturn

import typer
from rich.console import Console
from rich.markup import escape

from osmabench_ros.cli import doctor, run, score
from osmabench_ros.errors import OsmabenchError

INTERRUPTED = 130

app = typer.Typer(
    help='Benchmark of semantic mapping under changing light, motion and on real robots.',
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command('demo')(run.demo)
app.command('run')(run.run)
app.command('doctor')(doctor.doctor)
app.add_typer(score.app, name='score')


def main() -> NoReturn:
    """Run the command; an error of ours is one line and an exit code, never a traceback."""
    try:
        app(standalone_mode=True)
    except OsmabenchError as error:
        console = Console(stderr=True, soft_wrap=True)
        console.print(f'[bold red]error:[/] {escape(str(error))}', highlight=False)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        Console(stderr=True).print('interrupted; what was finished is kept, run again to resume')
        sys.exit(INTERRUPTED)
    sys.exit(0)


if __name__ == '__main__':
    main()
