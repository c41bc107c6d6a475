"""The worker runs under a Python and libraries that this interpreter does not have."""

import ast
import sys
from pathlib import Path

import pytest

from osmabench_ros.simulation.habitat import worker

SOURCES = sorted(Path(worker.__file__).parent.glob('*.py'))
ALLOWED = {'habitat_sim', 'magnum', 'numpy'} | set(sys.stdlib_module_names)


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: path.name)
def test_it_is_python_3_9_and_needs_habitat_sim_and_numpy_only(path):
    tree = ast.parse(path.read_text(encoding='utf-8'), feature_version=(3, 9))
    imported = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported |= {alias.name.split('.')[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            imported.add(str(node.module).split('.')[0])
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 1, 'only its own folder is there'
    assert imported <= ALLOWED
    # Annotations such as `float | None` are only text to Python 3.9 with this import.
    assert '__future__' in imported or path.name == '__init__.py'
