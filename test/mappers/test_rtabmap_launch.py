"""config/methods/live/rtabmap.yaml against the launch file of rtabmap_ros (test/data/upstream)."""

import json
from pathlib import Path

from osmabench_ros.mappers.live_method import load_live_method

UPSTREAM = Path(__file__).resolve().parents[1] / 'data' / 'upstream' / 'rtabmap_launch.json'


def test_the_live_file_gives_arguments_that_the_launch_file_declares():
    upstream = json.loads(UPSTREAM.read_text())
    method = load_live_method('rtabmap')
    assert (method.launch.package, method.launch.file) == ('rtabmap_launch', 'rtabmap.launch.py')
    assert set(method.launch.arguments) <= set(upstream['arguments'])
    # Its nodes and topics are in a namespace that the file leaves as it is.
    assert upstream['arguments']['namespace'] == method.map.topic.split('/')[1]
    assert set(method.participants) <= set(upstream['executables'])
