"""config/methods/live/rtabmap.yaml against the launch file of rtabmap_ros, where a clone is."""

import ast
import os
from pathlib import Path

import pytest

from osmabench_ros.mappers.live_method import load_live_method

VARIABLE = 'OSMABENCH_RTABMAP_ROS'
"""Names a clone of github.com/introlab/rtabmap_ros."""


@pytest.mark.skipif(VARIABLE not in os.environ, reason=f'{VARIABLE} names no clone')
def test_the_live_file_gives_arguments_that_the_launch_file_declares() -> None:
    method = load_live_method('rtabmap')
    launch = method.launch
    assert launch is not None
    file = Path(os.environ[VARIABLE], launch.package, 'launch', launch.file)
    calls = [item for item in ast.walk(ast.parse(file.read_text())) if isinstance(item, ast.Call)]
    declared = {
        call.args[0].value: next(
            (k.value for k in call.keywords if k.arg == 'default_value'), None
        )
        for call in calls
        if getattr(call.func, 'id', '') == 'DeclareLaunchArgument'
    }
    assert set(launch.arguments) <= set(declared)
    # Its nodes and topics lie in a namespace that the file leaves as it is.
    assert declared['namespace'].value == method.map.topic.split('/')[1]
    started = {
        keyword.value.value
        for call in calls
        if getattr(call.func, 'id', '') == 'Node'
        for keyword in call.keywords
        if keyword.arg == 'executable' and isinstance(keyword.value, ast.Constant)
    }
    assert set(method.participants) <= started
