"""Arguments of launch files, without launch: as the command line has them, and a run of them."""

import sys

import pytest

from osmabench_ros.base.progress import silent
from osmabench_ros.bringup.launching.single_run import check_argument_names, plan_single_run
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import live_method_names
from osmabench_ros.mappers.mapper import mapper_names

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


def test_a_mapper_that_does_not_exist_is_refused_with_all_there_are(tmp_path):
    values = {'condition': 'baseline', 'mapper': 'orcale', 'variables': {}}
    values |= {'scene': 'apartment', 'scene_name': '', 'seed': 5}
    with pytest.raises(ConfigError, match=r'mapper:=orcale .* mean "oracle"\?') as caught:
        plan_single_run(values, tmp_path, silent)
    for name in (*mapper_names(), *live_method_names()):
        assert name in str(caught.value)
