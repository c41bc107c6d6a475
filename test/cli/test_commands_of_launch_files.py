"""Commands that launch files call exist: few machines have the `ros2 launch` that runs them."""

import ast
from pathlib import Path

import pytest
import typer

from osmabench_ros.cli.main import DeferredCommand, app

MODULE = 'osmabench_ros.cli'
FILES = [
    path
    for path in sorted((Path(__file__).parents[2] / 'launch').glob('*.launch.py'))
    if f"'{MODULE}'" in path.read_text()
]


def functions_that_call_the_command(file: Path) -> list[list[str]]:
    """Return the texts of every function that names the module of the command, in order."""
    functions = [
        [
            node.value
            for node in ast.walk(function)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        ]
        for function in ast.parse(file.read_text()).body
        if isinstance(function, ast.FunctionDef)
    ]
    return [texts for texts in functions if MODULE in texts]


@pytest.mark.parametrize('file', FILES, ids=lambda file: file.name)
def test_verbs_and_options_exist(file: Path) -> None:
    group = typer.main.get_command(app)
    called = functions_that_call_the_command(file)
    assert called
    for texts in called:
        verb = group.get_command(typer.Context(group), texts[texts.index(MODULE) + 1])
        assert isinstance(verb, DeferredCommand)
        known = {option for parameter in verb.loaded.params for option in parameter.opts}
        assert {text for text in texts if text.startswith('--')} <= known


def test_a_launch_file_calls_the_command() -> None:
    assert [file.name for file in FILES] == ['replay.launch.py']
