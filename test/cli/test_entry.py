"""The command where Python packages are missing, as before the README's pip line."""

import subprocess
import sys

import pytest

START = """
import importlib.metadata, sys
package, here = sys.argv[1:]
real = importlib.metadata.version
def version(name):
    if name == package and not here:
        raise importlib.metadata.PackageNotFoundError(name)
    return here if name == package else real(name)
importlib.metadata.version = version
sys.modules[package] = None
sys.argv[1:] = ['doctor']
from osmabench_ros.cli.entry import main
main()
"""


@pytest.mark.parametrize(
    ('package', 'here', 'said'),
    [('typer', '', 'typer>=0.12 (not installed)'), ('pydantic', '1.10.14', 'pydantic>=2.5 (1.10')],
)
def test_what_pip_has_to_install_is_named(package: str, here: str, said: str) -> None:
    done = subprocess.run(
        [sys.executable, '-c', START, package, here], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert said in done.stderr
    assert 'requirements/beside_ros.txt' in done.stderr
    assert 'Traceback' not in done.stderr
