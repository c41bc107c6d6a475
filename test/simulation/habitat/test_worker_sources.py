"""The worker runs under a Python and libraries that this interpreter does not have."""

import ast
import sys
from pathlib import Path

import pytest

from osmabench_ros.simulation.habitat import worker

SOURCES = sorted(Path(worker.__file__).parent.glob('*.py'))
ALLOWED = {'habitat_sim', 'magnum', 'numpy'} | set(sys.stdlib_module_names)


@pytest.mark.parametrize('path', SOURCES, ids=lambda path: path.name)
def test_it_is_python_3_9_and_needs_habitat_sim_and_numpy_only(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding='utf-8'), feature_version=(3, 9))
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names = [node.module or '']
        assert node.level == 1 if isinstance(node, ast.ImportFrom) and node.level else True
        assert {name.split('.')[0] for name in names} <= ALLOWED
    assert 'annotations' in {
        alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == '__future__'
        for alias in node.names
    } or not any(isinstance(node, ast.FunctionDef) for node in ast.walk(tree))
