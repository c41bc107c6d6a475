"""The osmabench command."""

from __future__ import annotations

import ast
import importlib
import os
import re
import signal
import sys
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from osmabench_ros.base.configuration import version
from osmabench_ros.base.progress import noticed
from osmabench_ros.errors import OsmabenchError, make_printable, show_warnings_as_lines


class DeferredCommand(TyperCommand):
    """A command, or a group of them, that stands for what is at a place MODULE:NAME of this room.

    Its own help is the first line of that one's; everything else is asked of that one.
    """

    def __init__(self, name: str, place: str) -> None:
        super().__init__(name)
        self._module, _, self._name = place.partition(':')

    @cached_property
    def loaded(self) -> Any:
        """The command itself."""
        found = getattr(importlib.import_module(f'{__package__}.{self._module}'), self._name)
        if not isinstance(found, typer.Typer):
            alone = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
            alone.command(self.name)(found)
            found = alone
        return _reflowed(typer.main.get_command(found))

    def first_line(self) -> str:
        """Return what the command is, from the text of its module."""
        file = Path(__file__).with_name(f'{self._module}.py')
        for item in ast.parse(file.read_text(encoding='utf-8')).body:
            if isinstance(item, ast.FunctionDef) and item.name == self._name:
                return (ast.get_docstring(item) or '').partition('\n')[0]
            if isinstance(item, ast.Assign) and isinstance(item.value, ast.Call):
                named = [target.id for target in item.targets if isinstance(target, ast.Name)]
                given = {key.arg: key.value for key in item.value.keywords}
                if self._name in named:
                    return str(ast.literal_eval(given['help']))
        raise LookupError(f'{file} has no {self._name}')

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Return the context of the command itself, which then runs."""
        return self.loaded.make_context(*arguments, **extra)


def _reflowed(command: Any) -> Any:
    """Let the paragraphs of a command's help, and of those below it, fill any width."""
    command.help = re.sub(r'(?<!\n)\n(?!\n)', ' ', command.help or '')
    for below in getattr(command, 'commands', {}).values():
        _reflowed(below)
    return command


def group_of(places: Mapping[str, str]) -> type[TyperGroup]:
    """Return the group of deferred commands, by name."""

    class Group(TyperGroup):
        def __init__(self, **settings: Any) -> None:
            super().__init__(**settings)
            self._deferred = [DeferredCommand(name, place) for name, place in places.items()]
            self.commands = {str(command.name): command for command in self._deferred}

        def format_help(self, *arguments: Any) -> None:
            for command in self._deferred:
                command.help = command.first_line()
            super().format_help(*arguments)

    return Group


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
    'scene': 'scene:app',
    'record': 'record:record',
    'replay': 'record:replay',
    'status': 'report:status',
    'report': 'report:report',
    'export': 'report:export',
    'compare': 'compare:compare',
    'view': 'view:view',
    'map': 'map:app',
    'score': 'score:app',
    'vqa': 'vqa:app',
    'prompts': 'prompts:app',
    'conditions': 'conditions:app',
}
"""Module and name of every command in this room, in the order of --help."""

app = typer.Typer(
    cls=group_of(COMMANDS),
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f'osmabench_ros {version()}')
        raise typer.Exit


@app.callback()
def osmabench(
    _: Annotated[
        bool,
        typer.Option('--version', callback=_show_version, is_eager=True, help='Show the version.'),
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
    """Run a command; an error of ours is one line and an exit code, never a traceback."""
    for name in (signal.SIGINT, signal.SIGTERM):
        signal.signal(name, _interrupt)
    console = Console(stderr=True)
    console.soft_wrap = not console.is_terminal
    show_warnings_as_lines()
    try:
        command()
    except OsmabenchError as error:
        console.print(f'[bold red]error:[/] {escape(str(error))}', highlight=False)
        sys.exit(error.exit_code)
    except OSError as error:
        # Of a path that the system cannot even look up, or a disk that is full or gone.
        where = '' if error.filename is None else f'{error.filename}: '
        text = make_printable(where + (error.strerror or str(error)))
        console.print(f'[bold red]error:[/] {escape(text)}', highlight=False)
        sys.exit(OsmabenchError.exit_code)
    except InterruptedBySignalError:
        console.print('interrupted; what was finished is kept, run again to resume')
        raise
    sys.exit(0)


if __name__ == '__main__':
    main()
