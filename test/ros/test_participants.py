"""Participants are found by name, in the namespace of the bridge first."""

from contextlib import ExitStack

import pytest
from rclpy.node import Node
from support.ros_processes import context_in
from support.waiting import wait_until

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import BRIDGE, CONTRACT
from osmabench_ros.errors import ParticipantError
from osmabench_ros.nodes.ack_listener import RestartWatch
from osmabench_ros.ros.messages.message_definitions import message_class
from osmabench_ros.ros.node import participants

UNKNOWN_NAME = '_NODE_NAME_UNKNOWN_'
MAPPER = participants.DeclaredParticipant(name='mapper', acks=False)
ACKING = participants.DeclaredParticipant(name='mapper', acks=True)


@pytest.mark.parametrize('acks', [True, False])
def test_what_is_declared_of_a_participant_is_read_back(acks):
    declared = participants.DeclaredParticipant(name='mapper', acks=acks)
    assert participants.DeclaredParticipant.parse(str(declared)) == declared


@pytest.fixture
def make(spinner):
    return lambda name, namespace: spinner.make_node(name, namespace=namespace)


def test_the_mapper_of_another_stack_is_not_the_one_of_this_stack(make):
    bridge = make('simulator_bridge', '/a')
    make('mapper', '/b')
    make('mapper', '/a')
    wait_until(lambda: participants.whereabouts(bridge, 'mapper') == ['/a/mapper'])
    assert participants.missing_participants(bridge, [MAPPER]) == []
    missing = participants.missing_participants(bridge, [ACKING])
    assert missing == [
        '"/a/mapper" subscribes to no frame topic',
        '"/a/mapper" does not publish frame_ack; if it acknowledges no frames, declare that: '
        'acks: false in a configuration, else mapper without ":acks"',
    ]


def test_one_elsewhere_will_do_and_two_elsewhere_are_told_by_name(make):
    bridge = make('simulator_bridge', '/')
    assert participants.missing_participants(bridge, [MAPPER]) == ['node "mapper" is not running']
    make('mapper', '/b')
    wait_until(lambda: participants.missing_participants(bridge, [MAPPER]) == [])
    make('mapper', '/c')
    wait_until(lambda: participants.missing_participants(bridge, [MAPPER]) != [])
    (missing,) = participants.missing_participants(bridge, [MAPPER])
    assert missing.startswith('/b/mapper and /c/mapper have one name, and neither is in')
    assert 'rename one' in missing


def test_a_second_stack_that_starts_during_a_run_is_no_restart(make):
    bridge = make('simulator_bridge', '/a')
    make('mapper', '/a')
    wait_until(lambda: participants.whereabouts(bridge, 'mapper') != [])
    watch = RestartWatch(bridge, ['mapper'])
    watch.check(3)
    other = make('mapper', '/b')
    wait_until(lambda: other.get_fully_qualified_name() in full_names(bridge))
    watch.check(3)
    make('mapper', '/a')

    def noticed():
        try:
            watch.check(3)
        except ParticipantError as error:
            return 'node "mapper" was started again after 3 frames' in str(error)
        return False

    wait_until(noticed)


KINDS = {item.name: message_class(item.message_type) for item in CONTRACT}


def publish(node, *names):
    for name in names:
        node.create_publisher(KINDS[name], name, 1)


def wait_for_publishers(node, topic, count):
    def named():
        infos = node.get_publishers_info_by_topic(str(node.resolve_topic_name(topic)))
        return sum(UNKNOWN_NAME not in info.node_name for info in infos) == count

    wait_until(named)


@pytest.fixture
def apart(ros_domain):
    """Makes nodes, each in a separate DDS participant as a process has."""
    with ExitStack() as stack:

        def node(name):
            made = Node(name, context=stack.enter_context(context_in(ros_domain)))
            stack.callback(made.destroy_node)
            return made

        yield node


def test_each_topic_but_acknowledgements_has_one_publisher(make):
    bridge, second = make(BRIDGE, '/'), make('second', '/')
    publish(bridge, *KINDS)
    participants.check_publishers(bridge)
    for topic in KINDS:
        publisher = second.create_publisher(KINDS[topic], topic, 1)
        wait_for_publishers(bridge, topic, 2)
        if topic != topics.FRAME_ACK:
            full = bridge.resolve_topic_name(topic)
            words = f'topic "{full}" has 2 publishers: /second and /simulator_bridge'
            with pytest.raises(ParticipantError, match=words):
                participants.check_publishers(bridge)
        second.destroy_publisher(publisher)
        wait_for_publishers(bridge, topic, 1)
    participants.check_publishers(bridge)


def test_a_second_node_of_the_same_name_is_a_second_publisher(apart):
    bridge, own = apart(BRIDGE), apart('mapper')
    publish(own, topics.SEMANTIC_MAP, topics.SEMANTIC_MAP)
    wait_for_publishers(bridge, topics.SEMANTIC_MAP, 2)
    participants.check_publishers(bridge)
    publish(apart('mapper'), topics.SEMANTIC_MAP)
    wait_for_publishers(bridge, topics.SEMANTIC_MAP, 3)
    with pytest.raises(ParticipantError, match='has 2 publishers: /mapper and /mapper'):
        participants.check_publishers(bridge)


def test_stacks_in_namespaces_share_the_clock(make):
    bridges = [make(BRIDGE, namespace) for namespace in ('/a', '/b')]
    for bridge in bridges:
        publish(bridge, topics.RUN_STATE, topics.CLOCK)
    wait_for_publishers(bridges[0], topics.CLOCK, 2)
    participants.check_publishers(bridges[0])


def full_names(node):
    return [f'{space}/{name}' for name, space in node.get_node_names_and_namespaces()]
