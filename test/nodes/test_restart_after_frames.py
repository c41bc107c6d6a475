"""Nodes that come in the way of a run: a participant that comes back, and a second publisher."""

from contextlib import closing

import pytest
from nodes.node_stage import UP
from osmabench_ros.msg import RecordedMap, RunState
from rclpy.node import Node
from support.bridge_process import Audience, bridge_process, write_sequence

from osmabench_ros.base import contract as topics
from osmabench_ros.ros.node.participants import PERIOD_S
from osmabench_ros.ros.qos import latched_profile

pytestmark = pytest.mark.slow


@pytest.fixture
def audience(ros_context):
    given = {'lockstep': True, 'acknowledges': lambda _number: True}
    with closing(Audience(ros_context, **given)) as made:
        yield made


@pytest.fixture
def bridge(ros_domain, tmp_path):
    values = {'pacing': 'lockstep', 'participants': ['audience:acks']}
    sequence = write_sequence(tmp_path / 'room')
    with bridge_process(ros_domain, sequence=sequence, **values) as running:
        yield running


def play_to_the_end(audience):
    audience.change(*UP)
    audience.spin_until(lambda: audience.state.state == RunState.STATE_FINISHED)


def recorder(audience):
    """Return what says which maps are recorded."""
    node = audience.make_node('map_recorder')
    return node.create_publisher(RecordedMap, topics.RECORDED_MAP, latched_profile())


def is_matched(publisher):
    return publisher.get_subscription_count() > 0


def test_before_its_final_map_is_recorded_it_ends_the_run(audience, bridge):
    maps = recorder(audience)
    play_to_the_end(audience)
    audience.spin_until(lambda: is_matched(maps))
    returned = Node('audience', context=audience.node.context)
    audience.spin_until(lambda: bridge.poll() is not None)
    returned.destroy_node()
    assert bridge.returncode != 0
    assert audience.state.state == RunState.STATE_FAILED
    assert 'node "audience" was started again after 4 frames' in audience.state.message


@pytest.mark.full
@pytest.mark.parametrize('recorded', [True, False])
def test_once_it_is_recorded_or_without_a_recorder_it_may_come_back(recorded, audience, bridge):
    maps = recorder(audience) if recorded else None
    play_to_the_end(audience)
    if maps is not None:
        audience.spin_until(lambda: is_matched(maps))
        maps.publish(RecordedMap(is_final=True))
        audience.spin_until(lambda: maps.wait_for_all_acked())
    audience.spin_for(4 * PERIOD_S)
    returned = Node('audience', context=audience.node.context)
    audience.spin_for(8 * PERIOD_S)
    returned.destroy_node()
    assert bridge.poll() is None
    assert audience.state.state == RunState.STATE_FINISHED


def test_a_second_publisher_before_frame_0_is_refused_by_name(audience, bridge):
    second = Node('second', context=audience.node.context)
    second.create_publisher(RunState, topics.RUN_STATE, latched_profile())
    audience.change(*UP)
    audience.spin_until(lambda: bridge.poll() is not None)
    second.destroy_node()
    _, reported = bridge.communicate()
    assert 'topic "/run_state" has 2 publishers: /second and /simulator_bridge' in reported
    assert audience.frames == []
