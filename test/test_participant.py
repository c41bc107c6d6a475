"""A participant in a separate node: frames in, map out, and again after a reset."""

from contextlib import closing

import numpy as np
import pytest
from support.waiting import Spinner, listen
from support.world.frames import FRAMES, MOUNT

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.msg import FrameAck, RunState
from osmabench_ros.msg import SemanticMap as SemanticMapMessage

from osmabench_ros.base import contract as topics
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.nodes.frame_publisher import FramePublisher
from osmabench_ros.participant import MAX_WAITING, Participant
from osmabench_ros.ros.qos import latched_profile, lossless_profile


class Points:
    """A method that keeps points."""

    def __init__(self):
        self.points = []

    def integrate(self, frame):
        self.points.append(frame.world_points()[::50])

    def semantic_map(self, *, final):
        header = MapHeader(Provenance('points', frames_used=len(self.points)), complete=final)
        return SemanticMap(header, dense=DenseMap(np.concatenate(self.points)))


class Stage(Spinner):
    """A participant and its peer, who publishes frames."""

    def __init__(self, context):
        super().__init__(context)
        self.mine, self.peer = self.make_node('mine'), self.make_node('peer')
        self.camera = FramePublisher(self.peer, lockstep=True, base_to_camera=MOUNT)
        self.state = self.peer.create_publisher(RunState, topics.RUN_STATE, latched_profile())
        self.acks = listen(self.peer, FrameAck, topics.FRAME_ACK, lossless_profile())
        self.maps = listen(self.peer, SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())

    def wait(self):
        """Wait until the participant and its peer hear each other."""
        self.spin_until(lambda: self.peer.count_subscribers(topics.CAMERA_POSE) > 0)
        self.spin_until(lambda: self.mine.count_subscribers(topics.FRAME_ACK) > 0)

    def drive(self, frames):
        for frame in FRAMES[:frames]:
            known = len(self.acks)
            self.camera.publish(frame)
            self.spin_until(lambda known=known: len(self.acks) > known)

    def finish(self, frames):
        known = len(self.maps)
        self.state.publish(RunState(state=RunState.STATE_FINISHED, frames_published=frames))
        self.spin_until(lambda: len(self.maps) > known)
        return self.maps[-1]


@pytest.fixture
def stage(ros_context):
    with closing(Stage(ros_context)) as made:
        yield made


def test_a_method_maps_every_frame_and_anew_after_a_reset(stage):
    participant = Participant(Points, stage.mine)
    stage.wait()
    stage.drive(3)
    assert {item.participant for item in stage.acks} == {'mine'}
    assert [item.frame_index for item in stage.acks] == [0, 1, 2]
    assert all(item.mapped for item in stage.acks)
    first = stage.finish(3)
    assert (first.participant, first.is_final, first.frames_used) == ('mine', True, 3)
    stage.state.publish(RunState(state=RunState.STATE_RUNNING))
    stage.spin_until(lambda: participant.running)
    stage.drive(2)
    assert stage.finish(2).frames_used == 2


def test_frames_that_are_dropped_for_lack_of_classes_are_a_warning(stage):
    logged = []
    stage.mine.get_logger().warning = logged.append
    participant = Participant(lambda _labels: Points(), stage.mine, labels=True)
    for _ in range(MAX_WAITING + 2):
        participant._on_frame(FRAMES[0])
    [text] = logged
    assert text.startswith('no classes came on label_info within 32 frames: frames are dropped')


def test_a_map_is_final_though_frames_were_lost(stage):
    Participant(Points, stage.mine, settle_s=0.3, map_every_frames=1)
    stage.wait()
    stage.drive(1)
    stage.spin_until(lambda: len(stage.maps) == 1)
    assert not stage.maps[0].is_final
    last = stage.finish(5)
    assert (last.is_final, last.frames_used) == (True, 1)
