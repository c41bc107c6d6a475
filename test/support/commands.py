"""The commands of osmabench, by name, and how words are parsed for them."""

from functools import cache

import typer
from typer.testing import CliRunner

from osmabench_ros.cli.main import app


@cache
def group():
    """Return the command of all commands."""
    return typer.main.get_command(app)


@cache
def commands():
    """Return every command that does something by its name, such as "map import"."""
    found = {}
    for name, command in group().commands.items():
        for inner, verb in getattr(command, 'commands', {'': command}).items():
            found[f'{name} {inner}'.strip()] = verb
    return found


def parse(words):
    """Parse words as the command that they name does, without running it; raise its error."""
    command = group()
    while hasattr(command, 'commands') and words:
        if words[0] not in command.commands:
            raise ValueError(f'no command "{words[0]}"')
        command, words = command.commands[words[0]], words[1:]
    if not hasattr(command, 'commands') and '--help' not in words:
        command.make_context(command.name, list(words))


def osmabench(*words, **variables):
    """Call the command in this process; raise its error, or return its output and exit code."""
    result = CliRunner().invoke(app, [str(word) for word in words], env=variables)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def output_of(*words):
    """Call the command, which must succeed; return what it prints."""
    result = osmabench(*words)
    assert result.exit_code == 0, result.output
    return result.stdout
