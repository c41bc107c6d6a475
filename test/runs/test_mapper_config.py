"""The ways in which a configuration names a mapping method."""

import pytest

from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import MapperConfig


def made(**data):
    return validated(MapperConfig, {'name': 'mine', **data}, 'test')


def test_a_bundled_mapper_may_take_part_under_another_name():
    assert made().bundled == 'mine'
    assert made(implementation='noisy_oracle', options={'label_noise': 0.1}).bundled == (
        'noisy_oracle'
    )


def test_a_stack_cannot_acknowledge_frames_whatever_is_said():
    assert made(stack='rtabmap', acks=True).acks is False
    assert made(stack='rtabmap').bundled == ''


def test_a_command_may_publish_another_kind_of_map():
    mapper = made(command=['node'], map_topic='/cloud')
    assert (mapper.map_type, mapper.acks, mapper.bundled) == (
        'sensor_msgs/msg/PointCloud2', False, ''
    )  # fmt: skip


def test_of_nodes_with_a_map_topic_acknowledges_only_one_that_is_said_to():
    assert made(command=['node']).acks
    assert made(command=['node'], map_topic='/cloud', acks=True).acks


@pytest.mark.parametrize(
    ('data', 'message'),
    [
        ({'command': ['a'], 'stack': 'b'}, 'leave out one of command and stack'),
        ({'command': ['a'], 'options': {'b': 1}}, 'leave out one of command and implementation'),
        ({'map_topic': '/cloud'}, 'map_topic says where the node of a command publishes'),
        ({'variables': {'root': '/x'}}, 'variables belong to a stack'),
        (
            {'command': ['a'], 'map_type': 'std_msgs/msg/String'},
            "PointCloud2'.*it is 'std_msgs/msg/String'",
        ),
        ({'command': ['a'], 'settle_s': 9}, 'settle_s is about the map of a map_topic or stack'),
        ({'map_topik': '/cloud'}, 'map_topic'),
    ],
)
def test_contradictions_are_named(data, message):
    with pytest.raises(ConfigError, match=message):
        made(**data)
