"""Arguments of launch files, as the command line has them, without launch."""

import sys

import pytest

from osmabench_ros.bringup.launching.argument_names import check_argument_names
from osmabench_ros.errors import ConfigError

DECLARED = ('condition', 'mapper', 'out')
FILE = '/opt/ws/share/osmabench_ros/launch/full_run.launch.py'
BY_PACKAGE = ('ros2', 'launch', 'osmabench_ros', 'full_run.launch.py')


def check(monkeypatch, command, *given):
    monkeypatch.setattr(sys, 'argv', [*command, *given])
    check_argument_names(given, DECLARED, FILE)


@pytest.mark.parametrize('command', [BY_PACKAGE, ('ros2', 'launch', FILE)])
def test_an_unknown_argument_is_refused_with_the_nearest(command, monkeypatch):
    with pytest.raises(ConfigError, match=r'no argument "conditon".*Did you mean "condition"\?'):
        check(monkeypatch, command, 'out:=/tmp/x', 'conditon:=dynamic')


def test_what_the_file_or_launch_itself_knows_is_taken(monkeypatch):
    check(monkeypatch, BY_PACKAGE, 'condition:=dynamic', 'launch-prefix:=gdb', 'out:=a:=b')


@pytest.mark.parametrize(
    'command',
    [
        ('ros2', 'launch', 'my_robot', 'full_run.launch.py'),
        ('ros2', 'launch', 'my_robot', 'all.launch.py'),
        ('python3', 'start_everything.py'),
    ],
)
def test_arguments_of_a_file_that_includes_ours_are_its_own(command, monkeypatch):
    check(monkeypatch, command, 'robot:=spot')


def test_a_relative_path_names_the_file_too(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, 'argv', ['ros2', 'launch', 'launch/full_run.launch.py', 'a:=1'])
    with pytest.raises(ConfigError, match='no argument "a"'):
        check_argument_names(['a:=1'], DECLARED, str(tmp_path / 'launch' / 'full_run.launch.py'))
