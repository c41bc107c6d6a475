"""Which publishers of a run's topics are noticed, in real DDS participants."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

import rclpy
from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import (
    BRIDGE,
    CONTRACT,
    EVALUATOR,
    MAPPER,
    RECORDER,
)
from osmabench_ros.errors import ParticipantError
from osmabench_ros.ros.messages.message_definitions import message_class
from osmabench_ros.ros.node.participants import (
    UNKNOWN_NAME,
    UNKNOWN_S,
    DeclaredParticipant,
    PublisherWatch,
    publishers_beside_stack,
    publishers_of_run,
)

KINDS = {item.name: message_class(item.message_type) for item in CONTRACT}
Make = Callable[..., Node]


@pytest.fixture
def make(ros_domain: int) -> Iterator[Make]:
    """Makes nodes, each in a DDS participant of its own as a process has."""
    made: list[tuple[rclpy.Context, Node]] = []

    def node(name: str, *published: str, namespace: str = '/') -> Node:
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=ros_domain, args=[])
        made.append((context, Node(name, context=context, namespace=namespace)))
        for topic in published:
            made[-1][1].create_publisher(KINDS[topic], topic, 1)
        return made[-1][1]

    yield node
    for context, item in made:
        item.destroy_node()
        context.try_shutdown()


PARTICIPANTS = [DeclaredParticipant(name=name, acks=True) for name in (MAPPER, RECORDER)]


def watch_of(bridge: Node) -> PublisherWatch:
    return PublisherWatch(bridge, publishers_of_run(PARTICIPANTS, MAPPER))


def wait_for_publishers(node: Node, topic: str, count: int) -> None:
    deadline = time.monotonic() + 120
    named: list[Any] = []
    while len(named) < count:
        assert time.monotonic() < deadline, 'timed out'
        time.sleep(0.02)
        infos = node.get_publishers_info_by_topic(str(node.resolve_topic_name(topic)))
        named = [info for info in infos if info.node_name != UNKNOWN_NAME]


def declared_run(make: Make) -> Node:
    """Return the bridge of a run whose nodes publish what they are declared to."""
    own = [item.name for item in CONTRACT if item.publisher == BRIDGE]
    bridge = make(BRIDGE, *own)
    maps = [item.name for item in CONTRACT if item.publisher == MAPPER]
    make(MAPPER, topics.FRAME_ACK, *maps)
    make(RECORDER, topics.FRAME_ACK, topics.RECORDED_MAP)
    make(EVALUATOR, topics.EVALUATION)
    make('bag_recorder', topics.FRAME_ACK)
    wait_for_publishers(bridge, topics.FRAME_ACK, 3)
    wait_for_publishers(bridge, topics.SEMANTIC_MAP_MARKERS, 1)
    wait_for_publishers(bridge, topics.EVALUATION, 1)
    return bridge


def test_a_run_goes_on_until_an_undeclared_node_publishes_on_any_of_its_topics(make: Make) -> None:
    bridge = declared_run(make)
    watch = watch_of(bridge)
    assert watch.check(starting=True) == watch.check(starting=False) == []
    intruder = make('intruder')
    for topic in (item.name for item in CONTRACT):
        publisher = intruder.create_publisher(KINDS[topic], topic, 1)
        count = 4 if topic == topics.FRAME_ACK else 2
        wait_for_publishers(bridge, topic, count)
        for starting in (True, False):
            with pytest.raises(ParticipantError) as reported:
                watch.check(starting=starting)
        full, text = str(bridge.resolve_topic_name(topic)), str(reported.value)
        assert f'topic "{full}": published by /intruder' in text
        publishers = text.partition('Its publishers are')[2]
        assert publishers.count('(DDS ') == count
        intruder.destroy_publisher(publisher)
        deadline = time.monotonic() + 120
        while bridge.count_publishers(topic) == count:
            assert time.monotonic() < deadline, 'timed out'
            time.sleep(0.02)


def test_a_name_that_is_taken_twice_is_noticed(make: Make) -> None:
    bridge = make(BRIDGE)
    own = make(MAPPER, topics.SEMANTIC_MAP)
    watch = watch_of(bridge)
    # A second publisher of the node itself is not another node.
    own.create_publisher(KINDS[topics.SEMANTIC_MAP], topics.SEMANTIC_MAP, 1)
    wait_for_publishers(bridge, topics.SEMANTIC_MAP, 2)
    assert watch.check(starting=False) == []
    make(MAPPER, topics.SEMANTIC_MAP)
    wait_for_publishers(bridge, topics.SEMANTIC_MAP, 3)
    with pytest.raises(ParticipantError, match='several nodes called /mapper publish it'):
        watch.check(starting=False)
    (pending,) = watch.check(starting=True)
    assert pending.count('/mapper (DDS ') == 3


def test_a_declared_name_in_another_namespace_counts_only_if_it_is_the_only_one(
    make: Make,
) -> None:
    bridge = make(BRIDGE, namespace='/a')
    watch = watch_of(bridge)
    elsewhere = make(MAPPER, namespace='/b')
    elsewhere.create_publisher(KINDS[topics.SEMANTIC_MAP], '/a/semantic_map', 1)
    wait_for_publishers(bridge, topics.SEMANTIC_MAP, 1)
    assert watch.check(starting=False) == []
    make(MAPPER, topics.SEMANTIC_MAP, namespace='/a')
    wait_for_publishers(bridge, topics.SEMANTIC_MAP, 2)
    with pytest.raises(ParticipantError, match='"/a/semantic_map": published by /b/mapper'):
        watch.check(starting=False)


def test_stacks_in_namespaces_do_not_meet_save_in_the_clock(make: Make) -> None:
    bridge = make(BRIDGE, topics.RUN_STATE, topics.CLOCK, namespace='/a')
    make(BRIDGE, topics.RUN_STATE, topics.CLOCK, namespace='/b')
    wait_for_publishers(bridge, topics.CLOCK, 2)
    assert watch_of(bridge).check(starting=False) == []


def test_beside_a_stack_only_topics_that_are_ours_are_watched(make: Make) -> None:
    recorder = make(RECORDER, topics.RECORDED_MAP)
    robot = make('robot', topics.COLOR, topics.FRAME_ACK, topics.CLOCK, topics.SEMANTIC_MAP)
    wait_for_publishers(recorder, topics.SEMANTIC_MAP, 1)
    unknown = PublisherWatch(recorder, publishers_beside_stack(''))
    assert unknown.check(starting=False) == []
    with pytest.raises(ParticipantError, match='"/semantic_map": published by /robot'):
        PublisherWatch(recorder, publishers_beside_stack(MAPPER)).check(starting=False)
    robot.create_publisher(KINDS[topics.RECORDED_MAP], topics.RECORDED_MAP, 1)
    wait_for_publishers(recorder, topics.RECORDED_MAP, 2)
    with pytest.raises(ParticipantError, match='"/recorded_map": published by /robot'):
        unknown.check(starting=False)


class Nameless:
    """A graph with a publisher of which only DDS knows."""

    def __init__(self) -> None:
        self.endpoint_gid = list(range(16))
        self.node_name, self.node_namespace = UNKNOWN_NAME, '_NODE_NAMESPACE_UNKNOWN_'

    def get_namespace(self) -> str:
        return '/'

    def get_fully_qualified_name(self) -> str:
        return '/simulator_bridge'

    def resolve_topic_name(self, topic: str) -> str:
        return f'/{topic.lstrip("/")}'

    def get_publishers_info_by_topic(self, topic: str) -> list[Any]:
        return [self] if topic == '/run_state' else []


def test_a_publisher_that_stays_nameless_is_no_node_of_the_run() -> None:
    now_s = [0.0]
    node: Any = Nameless()
    watch = PublisherWatch(node, publishers_of_run([], ''), lambda: now_s[0])
    assert watch.check(starting=False) == []
    now_s[0] = UNKNOWN_S + 1.0
    with pytest.raises(ParticipantError, match='a program that is no ROS node'):
        watch.check(starting=True)
