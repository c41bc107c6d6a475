"""What launch files call and import exists: few machines have the `ros2 launch` that runs them."""

import ast
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer

from osmabench_ros.cli.main import app

MODULE = 'osmabench_ros.cli'
LAUNCH_FILES = sorted((Path(__file__).parents[2] / 'launch').glob('*.launch.py'))
FILES = [path for path in LAUNCH_FILES if f"'{MODULE}'" in path.read_text()]
assert [file.name for file in FILES] == ['replay.launch.py']


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
    group: Any = typer.main.get_command(app)
    called = functions_that_call_the_command(file)
    assert called
    for texts in called:
        first = texts.index(MODULE) + 1
        verb = group.commands[texts[first]].commands[texts[first + 1]]
        known = {option for parameter in verb.params for option in parameter.opts}
        assert {text for text in texts if text.startswith('--')} <= known


def names_of(module: str) -> set[str]:
    """Return what a module defines or imports, read without importing it."""
    spec = find_spec(module)
    assert spec is not None, module
    assert spec.origin is not None, module
    found = set()
    for node in ast.parse(Path(spec.origin).read_text()).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            found.update(alias.asname or alias.name for alias in node.names)
        else:
            # Also below an `if`.
            found.update(
                item.id
                for item in ast.walk(node)
                if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)
            )
    return found


# Those of the package itself are checked by mypy.
@pytest.mark.parametrize('file', LAUNCH_FILES, ids=lambda file: file.name)
def test_what_is_imported_of_ours_exists(file: Path) -> None:
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith('osmabench_ros.'):
            wanted = {alias.name for alias in node.names}
            assert wanted - names_of(str(node.module)) == set(), f'line {node.lineno}'
