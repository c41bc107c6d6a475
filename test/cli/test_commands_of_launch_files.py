"""What launch files import exists: few machines have the `ros2 launch` that runs them."""

import ast
import symtable
from importlib.util import find_spec
from pathlib import Path

import pytest

LAUNCH_FILES = sorted((Path(__file__).parents[2] / 'launch').glob('*.launch.py'))


def names_of(module):
    """Return the names that a module defines or imports, read without importing it."""
    file = find_spec(module).origin
    table = symtable.symtable(Path(file).read_text(), file, 'exec')
    found = (item for item in table.get_symbols() if item.is_assigned() or item.is_imported())
    return {item.get_name() for item in found}


# Those of the package itself are checked by mypy.
@pytest.mark.parametrize('file', LAUNCH_FILES, ids=lambda file: file.name)
def test_what_is_imported_of_ours_exists(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith('osmabench_ros.'):
            wanted = {alias.name for alias in node.names}
            assert wanted - names_of(str(node.module)) == set(), f'line {node.lineno}'
