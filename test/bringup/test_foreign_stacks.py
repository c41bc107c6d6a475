"""Stacks that publish their own kind of map take part in a run: as a command, by a file."""

import importlib.util
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from small_config import small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

STACK = Path(__file__).parents[1] / 'cloud_stack.py'
TOPIC = '/stack/cloud_map'
CHANGES = {
    'camera': {'width': 160, 'height': 120},
    'pacing': {'mode': 'realtime', 'speed_factor': 2.0, 'match_timeout_s': 60.0},
    'suites': [{'name': 'osma_segmentation'}, {'name': 'map_geometry'}],
}


def run(out: Path, mapper: dict[str, Any]) -> Any:
    from osmabench_ros.bringup.runner import run_matrix
    from osmabench_ros.runs.config import parse_config

    config = small_config(mappers=[mapper], **CHANGES)
    return run_matrix(parse_config(config, 'test'), out, progress=lambda _text, _fraction: None)


def figure(report: Any, metric: str, mode: str | None = None) -> float:
    [value] = [
        record.value
        for record in report.runs[0].metrics
        if (record.metric, record.mode, record.class_name) == (metric, mode, '')
    ]
    return value


def check(report: Any) -> None:
    assert report.passed, report
    # The stack copies the labels of our images: nearly all that it mapped is right.
    assert figure(report, 'accuracy', 'strict') > 0.9
    assert report.runs[0].metrics[0].mapper == 'cloud'


def test_a_command_with_a_map_topic_is_scored(tmp_path: Path) -> None:
    command = [sys.executable, str(STACK)]
    mapper = {'name': 'cloud', 'command': command, 'acks': False, 'map_topic': TOPIC}
    check(run(tmp_path, mapper))
    assert list((tmp_path / 'small').glob('*/logs/method.log'))


def test_a_stack_from_a_file_is_launched_and_scored(tmp_path: Path) -> None:
    if importlib.util.find_spec('launch_ros') is None or shutil.which('ros2') is None:
        pytest.skip('ros2 launch is not installed; source a ROS 2 installation')
    file = tmp_path / 'cloud.yaml'
    file.write_text(
        yaml.safe_dump(
            {
                'name': 'cloud',
                'source': 'https://example.org',
                'install': [],
                'variables': {'script': 'where the program is'},
                'program': {'command': [sys.executable, '${script}']},
                'map': {'topic': TOPIC, 'type': 'sensor_msgs/msg/PointCloud2'},
                'participants': ['cloud_stack'],
            }
        )
    )
    mapper = {'name': 'cloud', 'stack': str(file), 'variables': {'script': str(STACK)}}
    check(run(tmp_path, mapper))
    assert (next((tmp_path / 'small').glob('*/stack')) / 'label_space.yaml').exists()


def test_a_missing_variable_is_told_before_anything_starts(tmp_path: Path) -> None:
    from osmabench_ros.errors import ConfigError

    with pytest.raises(ConfigError, match='dualmap needs the variable "python"'):
        run(tmp_path, {'name': 'dualmap', 'stack': 'dualmap'})
    assert list(tmp_path.iterdir()) == []
