"""Every node is cleaned up and configured again with another plan, in one process, over DDS."""

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import rclpy
from nodes.node_stage import DOWN, UP, Stage
from pydantic import BaseModel
from rcl_interfaces.srv import SetParameters
from rclpy.parameter import Parameter
from sensor_msgs.msg import PointCloud2
from support.bridge_process import write_sequence
from support.world.bags import write_bag
from support.world.frames import FRAMES

from osmabench_ros.base import contract as topics
from osmabench_ros.nodes.bag_player_node import BagPlayerNode
from osmabench_ros.nodes.bag_recorder_node import BagRecorderNode
from osmabench_ros.nodes.evaluator_node import EvaluatorNode
from osmabench_ros.nodes.map_adapter_node import MapAdapterNode
from osmabench_ros.nodes.map_recorder_node import MapRecorderNode
from osmabench_ros.nodes.map_viewer_node import MapViewerNode
from osmabench_ros.nodes.mapper_node import MapperNode
from osmabench_ros.nodes.simulator_bridge_node import SimulatorBridgeNode
from osmabench_ros.ros.matched_client import LifecycleClient, MatchedClient
from osmabench_ros.ros.node import settings
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.participants import DeclaredParticipant
from osmabench_ros.sequences.bags.playback import PlaybackSettings
from osmabench_ros.sequences.bags.recording_report import RecordingSettings

OF_STACK = ('first_map', 'second_map')


@dataclass(frozen=True)
class Case:
    """A node, two plans for it, and the values by which it shows the plan."""

    factory: Callable[[], BenchmarkNode[Any]]
    plans: list[BaseModel]
    shown: Callable[[Any, Stage], object]
    values: tuple[object, object]


def topics_of(node):
    return {item.topic_name.lstrip('/') for item in node.subscriptions}


def bag_player(folder):
    from rosbags.rosbag2 import StoragePlugin

    bags = [write_bag(folder / str(n), StoragePlugin.MCAP, count=n) for n in (3, 5)]
    plans = [PlaybackSettings(bag=bag, delay_s=1000.0) for bag in bags]
    return Case(BagPlayerNode, plans, lambda node, _: node.state_message().frames_total, (6, 10))


def bag_recorder(folder):
    folders = folder / 'first', folder / 'second'
    plans = [RecordingSettings(bag_directory=item) for item in folders]
    values = (True, False), (True, True)
    return Case(BagRecorderNode, plans, lambda *_: tuple(x.exists() for x in folders), values)


def evaluator(folder):
    truth = {'ground_truth_directory': folder / 'truth'}
    plans = [
        settings.EvaluatorSettings(
            output_directory=folder / str(last), exit_when_done=last, **truth
        )
        for last in (True, False)
    ]
    return Case(EvaluatorNode, plans, lambda node, _: node.owes_result(), (True, False))


def map_adapter(_folder):
    plans = [settings.MapAdapterSettings(map_topic=topic) for topic in OF_STACK]

    def heard(_, stage):
        return [topic for topic in OF_STACK if stage.peer.count_subscribers(topic)]

    return Case(MapAdapterNode, plans, heard, ([OF_STACK[0]], [OF_STACK[1]]))


def map_recorder(folder):
    plans = [
        settings.MapRecorderSettings(map_directory=folder / str(n), frames_directory=frames)
        for n, frames in enumerate((None, folder / 'frames'))
    ]
    return Case(
        MapRecorderNode, plans, lambda node, _: topics.COLOR in topics_of(node), (False, True)
    )


def map_viewer(_folder):
    plans = [settings.MapViewerSettings(max_points=count) for count in (1, 2)]
    return Case(MapViewerNode, plans, lambda node, _: node.settings.max_points, (1, 2))


def mapper(_folder):
    plans = [settings.MapperSettings(mapper=name) for name in ('oracle', 'tsdf')]
    return Case(
        MapperNode, plans, lambda node, _: topics.SEMANTIC in topics_of(node), (True, False)
    )


def simulator_bridge(folder):
    waiting = (DeclaredParticipant(name='nobody', acks=True),)
    plans = [
        settings.BridgeSettings(
            sequence=write_sequence(folder / str(n), FRAMES[:n]), participants=waiting
        )
        for n in (4, 2)
    ]
    return Case(
        SimulatorBridgeNode, plans, lambda node, _: node.state_message().frames_total, (4, 2)
    )


CASES = (
    bag_player, bag_recorder, evaluator, map_adapter, map_recorder, map_viewer, mapper,
    simulator_bridge,
)  # fmt: skip


class Manager:
    """The requests of a lifecycle manager to a node, over its services."""

    def __init__(self, stage):
        self._stage, self._name = stage, stage.node.get_name()
        self._lifecycle = LifecycleClient(stage.peer, stage.executor, timeout_s=60.0)
        self._parameters = MatchedClient(
            stage.peer, SetParameters, f'{self._name}/set_parameters', self._name
        )

    def change(self, *transitions):
        for transition in transitions:
            self._lifecycle.change(self._name, transition, lambda: None)

    def set(self, name, value):
        """Set a parameter; return why it was refused, empty if it was not."""
        self._stage.spin_until(self._parameters.ready, 60.0)
        message = Parameter(name, value=value).to_parameter_msg()
        answer = self._parameters.call(SetParameters.Request(parameters=[message]))
        self._stage.spin_until(answer.done, 60.0)
        [result] = answer.result().results
        return '' if result.successful else str(result.reason)


@pytest.fixture
def ros(ros_domain):
    rclpy.init(args=[], domain_id=ros_domain)
    yield
    rclpy.shutdown()


@pytest.mark.parametrize('case', CASES, ids=lambda case: case.__name__)
def test_a_node_is_configured_again_with_another_plan(case, ros, tmp_path):
    made = case(tmp_path)
    files = []
    for number, plan in enumerate(made.plans):
        files.append(str(tmp_path / f'plan_{number}.json'))
        Path(files[-1]).write_text(plan.model_dump_json())
    with closing(Stage(made.factory)) as stage:
        node, manager = stage.node, Manager(stage)
        stack = [stage.peer.create_publisher(PointCloud2, topic, 1) for topic in OF_STACK]
        for file, plan, value in zip(files, made.plans, made.values, strict=True):
            assert manager.set('plan_file', file) == ''
            manager.change(*UP)
            assert node.settings == plan
            assert node.get_parameter('plan_file').value == file
            stage.spin_until(lambda: made.shown(node, stage) == value, 60.0)  # noqa: B023
            # In the middle of a run its settings stay.
            assert 'it is active' in manager.set('plan_file', files[0])
            manager.change(*DOWN)
        assert len(stack) == len(OF_STACK)


def test_a_plan_that_is_wrong_is_refused_and_the_last_one_stays(ros, tmp_path):
    good, bad = tmp_path / 'good.json', tmp_path / 'bad.json'
    good.write_text(settings.MapperSettings(mapper='tsdf', seed=4).model_dump_json())
    bad.write_text('{"mappr": "tsdf"}')
    with closing(Stage(MapperNode)) as stage:
        manager = Manager(stage)
        assert manager.set('plan_file', str(good)) == ''
        assert 'mappr' in manager.set('plan_file', str(bad))
        assert 'missing.json' in manager.set('plan_file', str(tmp_path / 'missing.json'))
        assert 'plan_file alone may be set' in manager.set('seed', 5)
        manager.change(UP[0])
        assert stage.node.settings == settings.MapperSettings(mapper='tsdf', seed=4)
        assert stage.node.get_parameter('seed').value == 4
        assert stage.node.get_parameter('mapper').value == 'tsdf'
        assert 'it is inactive' in manager.set('plan_file', str(good))
