"""Commands whose modules are imported when they are called, so that help and errors are quick."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup


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
        return typer.main.get_command(found)

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
