"""Participants are found by name, in the namespace of the bridge first."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

from rclpy.node import Node
from support.waiting import wait_until

from osmabench_ros.errors import ParticipantError
from osmabench_ros.nodes.simulator_bridge.ack_listener import RestartWatch
from osmabench_ros.ros.node.participants import (
    DeclaredParticipant,
    missing_participants,
    whereabouts,
)

MAPPER = DeclaredParticipant(name='mapper', acks=False)
ACKING = DeclaredParticipant(name='mapper', acks=True)


@pytest.mark.parametrize('acks', [True, False])
@pytest.mark.parametrize('signs', [True, False])
def test_what_is_declared_of_a_participant_is_read_back(acks: bool, signs: bool) -> None:
    declared = DeclaredParticipant(name='mapper', acks=acks, signs=signs)
    assert DeclaredParticipant.parse(str(declared)) == declared


@pytest.fixture
def make(ros_context: Any) -> Iterator[Callable[..., Node]]:
    """Makes nodes that end with the test."""
    nodes: list[Node] = []

    def node(name: str, namespace: str) -> Node:
        nodes.append(Node(name, context=ros_context, namespace=namespace))
        return nodes[-1]

    yield node
    for item in nodes:
        item.destroy_node()


def test_the_mapper_of_another_stack_is_not_the_one_of_this_stack(make: Any) -> None:
    bridge = make('simulator_bridge', '/a')
    make('mapper', '/b')
    make('mapper', '/a')
    wait_until(lambda: whereabouts(bridge, 'mapper') == ['/a/mapper'])
    assert missing_participants(bridge, [MAPPER]) == []
    missing = missing_participants(bridge, [ACKING])
    assert missing == [
        '"/a/mapper" subscribes to no frame topic',
        '"/a/mapper" does not publish frame_ack; if it acknowledges no frames, declare that: '
        'acks: false in a configuration, else mapper without ":acks"',
    ]


def test_one_elsewhere_will_do_and_two_elsewhere_are_told_by_name(make: Any) -> None:
    bridge = make('simulator_bridge', '/')
    assert missing_participants(bridge, [MAPPER]) == ['node "mapper" is not running']
    make('mapper', '/b')
    wait_until(lambda: missing_participants(bridge, [MAPPER]) == [])
    make('mapper', '/c')
    wait_until(lambda: missing_participants(bridge, [MAPPER]) != [])
    (missing,) = missing_participants(bridge, [MAPPER])
    assert missing.startswith('/b/mapper and /c/mapper have one name, and neither is in')
    assert 'rename one' in missing


def test_a_second_stack_that_starts_during_a_run_is_no_restart(make: Any) -> None:
    bridge = make('simulator_bridge', '/a')
    make('mapper', '/a')
    wait_until(lambda: whereabouts(bridge, 'mapper') != [])
    watch = RestartWatch(bridge, ['mapper'])
    watch.check(3)
    other = make('mapper', '/b')
    wait_until(lambda: other.get_fully_qualified_name() in full_names(bridge))
    watch.check(3)
    make('mapper', '/a')

    def noticed() -> bool:
        try:
            watch.check(3)
        except ParticipantError as error:
            return 'node "mapper" was started anew after 3 frames' in str(error)
        return False

    wait_until(noticed)


def full_names(node: Node) -> list[str]:
    return [f'{space}/{name}' for name, space in node.get_node_names_and_namespaces()]
