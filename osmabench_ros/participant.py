"""The public way to take part in runs from Python: frames in, map out.

from osmabench_ros.participant import Participant

Participant(MyMapper).spin()
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace

import rclpy
from rclpy.clock import Clock, ClockType
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import MAPPER
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.geometry.boxes import AxisAlignedBox as AxisAlignedBox
from osmabench_ros.geometry.frame import Frame as Frame
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory as StampedTrajectory
from osmabench_ros.mappers.mapper import MappingMethod
from osmabench_ros.maps.semantic_map import DenseMap as DenseMap
from osmabench_ros.maps.semantic_map import MapHeader as MapHeader
from osmabench_ros.maps.semantic_map import Provenance as Provenance
from osmabench_ros.maps.semantic_map import SemanticMap as SemanticMap
from osmabench_ros.msg import LabelInfo, RunState
from osmabench_ros.ros.messages.images import label_set_from_message
from osmabench_ros.ros.messages.map_messages import MapPublisher
from osmabench_ros.ros.node.frame_receiver import Acknowledger, FrameReceiver, RecentWork
from osmabench_ros.ros.qos import create_checked_subscription, latched_profile
from osmabench_ros.semantics.labels import UNLABELLED as UNLABELLED
from osmabench_ros.semantics.labels import LabelSet as LabelSet
from osmabench_ros.semantics.scene_graph import SceneEdge as SceneEdge
from osmabench_ros.semantics.scene_graph import SceneGraph as SceneGraph
from osmabench_ros.semantics.scene_graph import SceneNode as SceneNode
from osmabench_ros.semantics.scene_graph import ScoredLabel as ScoredLabel

MAX_WAITING = 32
"""Frames that are kept until the label set is known; more are dropped and counted."""

LOOK_PERIOD_S = 0.2


class Participant:
    """Gives a method every frame of a run, acknowledges each, and publishes the final map.

    Parameters
    ----------
    method : callable
        Makes the method: when the node starts, and again after a reset of the run. With
        `labels` it gets the `LabelSet` of the run, and is made once that is known; a map of it
        without a label set gets this one.
    node : rclpy.node.Node, optional
        Owner of the subscriptions and publishers; its name becomes the participant's. By default a
        new node "mapper".
    labels : bool
        Whether the method needs the classes of the run.
    ground_truth : bool
        Whether frames have the semantic and instance images of the simulator.
    albedo : bool
        Whether frames have the colours of surfaces, as no light changes them.
    lockstep : bool
        Keep all frames that wait; otherwise the newest 10, for runs in realtime.
    settle_s : float or None
        After the last frame of the run the map is final when all frames were integrated, or none
        came for so many seconds; None waits for all.
    map_every_frames : int
        Also publish the map after every so many frames; 0: never.

    Notes
    -----
    Images are colour (H, W, 3) uint8 and depth (H, W) float32 in metres along the optical axis,
    poses are of the optical frame in `world`, z up. Callbacks raise ContractError if a
    message breaks the topic contract.
    """

    def __init__(
        self,
        method: Callable[..., MappingMethod],
        node: Node | None = None,
        *,
        labels: bool = False,
        ground_truth: bool = False,
        albedo: bool = False,
        lockstep: bool = True,
        settle_s: float | None = 1.0,
        map_every_frames: int = 0,
    ) -> None:
        self._make, self._needs_labels = method, labels
        self._settle_s, self._every = settle_s, map_every_frames
        self._labels: LabelSet | None = None
        self.node = _own_node() if node is None else node
        guarded = getattr(self.node, 'guarded', lambda function: function)
        name = self.node.get_name()
        self._acks, self._maps = Acknowledger(self.node, name), MapPublisher(self.node, name)
        self.start_over()
        self.receiver = FrameReceiver(
            self.node,
            self._on_frame,
            lockstep=lockstep,
            ground_truth=ground_truth,
            albedo=albedo,
            on_repeat=self._acks.acknowledge,
            on_restart=self.start_over,
        )
        for message, topic, callback in (
            (LabelInfo, topics.LABEL_INFO, self._on_labels),
            (RunState, topics.RUN_STATE, self._on_run_state),
        ):
            create_checked_subscription(self.node, message, topic, callback, latched_profile())
        steady = Clock(clock_type=ClockType.STEADY_TIME)
        self.node.create_timer(LOOK_PERIOD_S, guarded(self._publish_when_done), clock=steady)

    def spin(self) -> None:
        """Take part until the process is asked to end; exits with 2 if the contract is broken."""
        try:
            rclpy.spin(self.node)
        except (KeyboardInterrupt, ExternalShutdownException):
            return
        except OsmabenchError as error:
            sys.exit(f'osmabench: error: {error}')

    def start_over(self) -> None:
        """Start a new map after a reset of the run, with the labels received before."""
        self.method: MappingMethod | None = None
        self.waiting: list[Frame] = []
        self.work = RecentWork()
        self.dropped = 0
        self.running = self.published = False
        self.last_frame_s = time.monotonic()
        self._frames_to_map: int | None = None
        self._make_method()

    def _make_method(self) -> None:
        if self.method is None and (self._labels is not None or not self._needs_labels):
            self.method = self._make(*([self._labels] if self._needs_labels else ()))

    def _on_labels(self, message: LabelInfo) -> None:
        self._labels = label_set_from_message(message, topics.LABEL_INFO)
        self._make_method()
        waiting, self.waiting = self.waiting, []
        for frame in waiting:
            self._on_frame(frame)

    def _on_frame(self, frame: Frame) -> None:
        if self.method is not None:
            self._integrate(self.method, frame)
            return
        self.waiting.append(frame)
        if len(self.waiting) > MAX_WAITING:
            lost = self.waiting.pop(0)
            if not self.dropped:
                self.node.get_logger().warning(
                    f'no classes came on {topics.LABEL_INFO} within {MAX_WAITING} frames: frames '
                    'are dropped until it is published; a method without classes needs no labels'
                )
            self.dropped += 1
            self._acks.acknowledge(lost.stamp_ns, frame_index=lost.index, mapped=False)

    def _integrate(self, method: MappingMethod, frame: Frame) -> None:
        start_s = time.monotonic()
        method.integrate(frame)
        self.last_frame_s = time.monotonic()
        took_s = self.last_frame_s - start_s
        self.work.add(took_s, self.last_frame_s)
        self._acks.acknowledge(frame.stamp_ns, frame_index=frame.index, processing_time_s=took_s)
        if self._every and self.work.count % self._every == 0:
            self._publish(method, final=False)
        self._publish_when_done()

    def _on_run_state(self, message: RunState) -> None:
        self.running = message.state == RunState.STATE_RUNNING
        if message.state == RunState.STATE_FINISHED:
            self._frames_to_map = message.frames_published
            self._publish_when_done()

    def _publish_when_done(self) -> None:
        """Publish when all frames have arrived, or none for a while."""
        if self.published or self.method is None or self._frames_to_map is None:
            return
        all_here = self.work.count + self.dropped >= self._frames_to_map
        silent_s = time.monotonic() - self.last_frame_s
        if all_here or (self._settle_s is not None and silent_s > self._settle_s):
            self.published = True
            self._publish(self.method, final=True)
            self.node.get_logger().info(f'published the map of {self.work.count} frames')

    def _publish(self, method: MappingMethod, *, final: bool) -> None:
        made = method.semantic_map(final=final)
        if made.label_set is None and self._needs_labels:
            made = replace(made, label_set=self._labels)
        self._maps.publish(made, is_final=final)


def _own_node() -> Node:
    if not rclpy.ok():
        rclpy.init()
    return Node(MAPPER)
