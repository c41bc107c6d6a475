"""What the command imports before it knows what to do: counted in modules, not in seconds."""

import json
import subprocess
import sys

import pytest
import typer
from typer.testing import CliRunner

from osmabench_ros.cli.main import COMMANDS, app

HEAVY = {'torch', 'open3d', 'scipy', 'pandas', 'rclpy', 'matplotlib', 'trimesh', 'skimage'}
ALSO_NOT_FOR_HELP = {'numpy', 'yaml', 'PIL', 'jinja2', 'osmabench_ros.runs'}
START = """
import json, sys
from osmabench_ros.cli.entry import main
try:
    main()
finally:
    print(json.dumps(sorted(sys.modules)), file=sys.stderr)
"""


def imported_by(*words: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, '-c', START, *words], capture_output=True, text=True, check=False
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


@pytest.mark.parametrize('words', [['--help'], ['no-such-command'], ['--no-such-option'], []])
def test_help_and_errors_of_the_command_import_no_command(words: list[str]) -> None:
    modules = imported_by(*words)
    assert 'osmabench_ros.cli.main' in modules
    assert not modules & (HEAVY | ALSO_NOT_FOR_HELP)
    assert not modules & {f'osmabench_ros.cli.{at.partition(":")[0]}' for at in COMMANDS.values()}


@pytest.mark.parametrize('words', [['run'], ['run', '--no-such'], ['demo', '--help']])
def test_errors_of_a_run_import_only_its_options(words: list[str]) -> None:
    modules = imported_by(*words)
    assert 'osmabench_ros.cli.run' in modules
    assert not modules & (HEAVY | {'numpy', 'PIL', 'jinja2', 'osmabench_ros.runs'})


def test_help_of_every_command_imports_nothing_heavy() -> None:
    modules = imported_by('score', 'trajectory', '--help')
    assert 'osmabench_ros.metrics.trajectory' in modules
    for name in COMMANDS:
        modules = imported_by(name, '--help')
        assert not modules & HEAVY, name


def test_help_lists_every_command_with_the_first_line_of_its_own_help() -> None:
    shown = CliRunner().invoke(app, ['--help'], env={'COLUMNS': '400'}).output
    group = typer.main.get_command(app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        first = command.loaded.help.partition('\n')[0]
        assert first.endswith('.')
        assert f'{name} ' in shown
        assert first in shown


def test_a_wrong_command_gets_the_nearest_one() -> None:
    done = CliRunner().invoke(app, ['evalute'])
    assert done.exit_code == 2
    assert "'evaluate'" in done.output
