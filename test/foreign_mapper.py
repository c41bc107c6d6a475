"""A mapping method of somebody else, as a node of its own, that misbehaves on demand."""

import os
import sys
import time

import numpy as np
import rclpy
from osmabench_ros.msg import RunState
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import Image

from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.ros import topics
from osmabench_ros.ros.acknowledger import Acknowledger
from osmabench_ros.ros.frame_receiver import FrameReceiver
from osmabench_ros.ros.map_messages import MapPublisher
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.semantics.labels import LabelSet

MISCHIEF = sys.argv[1]
MISCHIEF_FRAME = 2
SLOW_S = 0.1


class ForeignMapper(Node):
    def __init__(self) -> None:
        super().__init__('mapper')
        self.acks = Acknowledger(self, 'mapper')
        self.maps = MapPublisher(self, 'mapper')
        self.points: list[np.ndarray] = []
        self.finished = False
        self.receiver = FrameReceiver(
            self,
            self.on_frame,
            lockstep=MISCHIEF != 'slow',
            ground_truth=False,
            on_repeat=self.acks.acknowledge,
        )
        self.create_subscription(RunState, topics.RUN_STATE, self.on_state, latched_profile())
        if MISCHIEF == 'wrong_qos':
            latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
            self.create_subscription(Image, topics.DEPTH, lambda _message: None, latched)

        if MISCHIEF == 'volatile_map':
            self.create_publisher(SemanticMapMessage, topics.SEMANTIC_MAP, 1)

    def on_frame(self, frame: object) -> None:
        if frame.index == MISCHIEF_FRAME:
            if MISCHIEF == 'die':
                os.abort()
            if MISCHIEF == 'hang' or (MISCHIEF == 'hang_if_told' and 'TEST_HANG' in os.environ):
                print('hanging', flush=True)
                time.sleep(1000)
            if MISCHIEF == 'never_acknowledge':
                return
        if MISCHIEF == 'slow':
            time.sleep(SLOW_S)
        self.points.append(frame.world_points()[::20])
        self.acks.acknowledge(frame.stamp_ns)

    def on_state(self, state: RunState) -> None:
        if state.state != RunState.STATE_FINISHED or self.finished:
            return
        self.finished = True
        points = np.concatenate(self.points)
        label_set, labels = None, None
        if MISCHIEF == 'wrong_labels':
            label_set = LabelSet.from_names('mine', ['thing'], first_id=40_000)
            labels = np.full(len(points), 40_000, np.int32)
        if MISCHIEF == 'nan':
            points[0] = np.nan
        self.maps.publish(
            SemanticMap(
                MapHeader(Provenance('foreign')),
                dense=DenseMap(points, labels=labels),
                label_set=label_set,
            ),
            is_final=True,
        )
        if MISCHIEF == 'leave':
            time.sleep(2.0)
            os._exit(0)


rclpy.init()
rclpy.spin(ForeignMapper())
