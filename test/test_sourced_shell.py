"""Tests run where ROS is sourced, though its plugins for pytest need certain versions."""

import os
from pathlib import Path

import pytest
from support.programs import run_python

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize('plugin', ['launch_pytest', 'launch_testing', 'launch_ros'])
def test_plugins_of_ros_are_not_loaded(plugin, tmp_path):
    (tmp_path / 'broken_plugin.py').write_text('raise ImportError("loaded")\n')
    metadata = tmp_path / f'{plugin}-3.4.3.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text(f'Metadata-Version: 2.1\nName: {plugin}\nVersion: 3.4.3\n')
    (metadata / 'entry_points.txt').write_text(f'[pytest11]\n{plugin} = broken_plugin\n')
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get('PYTHONPATH', '')]))
    words = '-m', 'pytest', '--collect-only', '-q', 'test/test_make.py'
    done = run_python(*words, cwd=REPOSITORY, variables={'PYTHONPATH': path})
    assert done.returncode == 0, done.stdout + done.stderr
