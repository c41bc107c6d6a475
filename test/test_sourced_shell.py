"""Tests run where ROS is sourced, though its plugins for pytest need certain versions."""

import os
from pathlib import Path

import pytest
from support.distributions import install_distribution
from support.programs import run_python

REPOSITORY = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize('plugin', ['launch_pytest', 'launch_testing', 'launch_ros'])
def test_plugins_of_ros_are_not_loaded(plugin, tmp_path, monkeypatch):
    points = {'pytest11': [f'{plugin} = broken_plugin']}
    install_distribution(
        tmp_path, monkeypatch, points, broken_plugin='raise ImportError("loaded")'
    )
    path = os.pathsep.join(filter(None, [str(tmp_path), os.environ.get('PYTHONPATH', '')]))
    words = '-m', 'pytest', '--collect-only', '-q', 'test/test_make.py'
    done = run_python(*words, cwd=REPOSITORY, variables={'PYTHONPATH': path})
    assert done.returncode == 0, done.stdout + done.stderr
