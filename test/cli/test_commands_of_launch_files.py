"""What launch files import exists: few machines have the `ros2 launch` that runs them."""

import ast
from importlib.util import find_spec
from pathlib import Path

import pytest

LAUNCH_FILES = sorted((Path(__file__).parents[2] / 'launch').glob('*.launch.py'))


def names_of(module):
    """Return the names that a module defines or imports, read without importing it."""
    spec = find_spec(module)
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
def test_what_is_imported_of_ours_exists(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith('osmabench_ros.'):
            wanted = {alias.name for alias in node.names}
            assert wanted - names_of(str(node.module)) == set(), f'line {node.lineno}'
