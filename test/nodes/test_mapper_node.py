"""The mapper over DDS: frames in, acknowledgements and maps out, and what breaks the contract."""

from dataclasses import replace

import numpy as np
import pytest
from nodes.node_stage import openings
from osmabench_ros.msg import FrameAck, LabelInfo, RunState, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from support.world.frames import FRAMES as RECORDED
from support.world.frames import LABELS, MOUNT

from osmabench_ros import participant
from osmabench_ros.base import contract as topics
from osmabench_ros.nodes import mapper_node
from osmabench_ros.nodes.frame_publisher import FramePublisher
from osmabench_ros.nodes.mapper_node import MapperNode
from osmabench_ros.ros.messages.images import label_set_to_message
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.ros.node.diagnostics import Level
from osmabench_ros.ros.qos import latched_profile, lossless_profile

# With few objects, so that mapping is quick.
FRAMES = [replace(frame, instance=(frame.instance % 5).astype(np.int32)) for frame in RECORDED]

STREAMS = (
    topics.COLOR, topics.DEPTH, topics.SEMANTIC, topics.INSTANCE, topics.COLOR_INFO,
    topics.CAMERA_POSE,
)  # fmt: skip


class Mapping:
    """A mapper, and a camera that feeds it."""

    def __init__(self, stage):
        self.stage = stage
        self.frames = FramePublisher(stage.peer, lockstep=True, base_to_camera=MOUNT)
        self.acks = stage.listen(FrameAck, topics.FRAME_ACK, lossless_profile())
        self.announced = stage.listen(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
        self.chunks = stage.listen(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile())
        self.labels = stage.peer.create_publisher(LabelInfo, topics.LABEL_INFO, latched_profile())
        self.state = stage.peer.create_publisher(RunState, topics.RUN_STATE, latched_profile())
        stage.spin_until(self.is_subscribed)
        stage.spin_until(self.answers)

    def is_subscribed(self):
        return all(self.stage.peer.count_subscribers(topic) for topic in STREAMS)

    def answers(self):
        node = self.stage.node
        heard = (topics.FRAME_ACK, topics.SEMANTIC_MAP, topics.SEMANTIC_MAP_CHUNK)
        return all(node.count_subscribers(topic) for topic in heard)

    def tell_labels(self):
        self.labels.publish(label_set_to_message(LABELS, 0))

    def tell_state(self, state):
        self.state.publish(RunState(state=state, frames_published=len(FRAMES)))

    def map_of(self, announcement):
        return self.stage.receive_map(announcement, self.chunks)


@pytest.fixture
def mapping(ros_domain, tmp_path):
    values = {'mapper': 'oracle', 'options': '{rooms: false}'}
    with openings(MapperNode, tmp_path, ros_domain, Mapping, **values) as opening:
        yield opening


def drive(mapping):
    """Publish all frames in lockstep."""
    for number, frame in enumerate(FRAMES, start=len(mapping.acks) + 1):
        mapping.frames.publish(frame)
        mapping.stage.spin_until(lambda number=number: len(mapping.acks) == number)


def test_a_state_from_the_command_line_ends_the_map_of_a_robot(mapping):
    run = mapping()
    run.tell_labels()
    drive(run)
    run.state.publish(RunState(state=RunState.STATE_FINISHED))
    run.stage.spin_until(lambda: bool(run.announced) and run.announced[-1].is_final)
    assert run.announced[-1].frames_used == len(FRAMES)


def test_every_frame_is_acknowledged_and_in_the_map(mapping):
    run = mapping(plan={'evaluation': {'map_every_frames': 2}})
    run.tell_labels()
    run.tell_state(RunState.STATE_RUNNING)
    drive(run)
    assert [ack.frame_index for ack in run.acks] == [0, 1, 2, 3]
    assert all(ack.participant == 'mapper' and ack.mapped for ack in run.acks)
    assert all(ack.processing_time.nanosec > 0 for ack in run.acks)
    run.tell_state(RunState.STATE_FINISHED)
    run.stage.spin_until(lambda: bool(run.announced) and run.announced[-1].is_final)
    announced = [(item.frames_used, item.is_final) for item in run.announced]
    assert announced == [(2, False), (4, False), (4, True)]
    half, _, final = run.announced
    whole = run.map_of(final)
    assert len(whole.dense.points) > len(run.map_of(half).dense.points) > 0
    assert whole.header.stamp_ns == FRAMES[-1].stamp_ns
    health = run.stage.node.health()
    assert (health.level, health.values['frames_mapped']) == (Level.OK, 4)
    assert health.values['processing_time_max_s'] >= health.values['processing_time_mean_s'] > 0


def test_frames_wait_for_the_labels_and_are_all_mapped(mapping, monkeypatch):
    monkeypatch.setattr(participant, 'MAX_WAITING', 3)
    run = mapping(pacing='realtime', settle_s=0.1)
    for frame in FRAMES:
        run.frames.publish(frame)
        run.stage.spin_until(
            lambda frame=frame: run.stage.node.participant.receiver.frames == frame.index + 1
        )
    assert [(ack.frame_index, ack.mapped) for ack in run.acks] in ([], [(0, False)])
    assert run.stage.node.health().message == 'frames wait for topic "label_info"'
    run.tell_state(RunState.STATE_FINISHED)
    run.tell_labels()
    run.stage.spin_until(lambda: bool(run.announced))
    assert (run.announced[0].is_final, run.announced[0].frames_used) == (True, 3)
    run.stage.spin_until(lambda: len(run.acks) == 4)
    assert [ack.mapped for ack in run.acks] == [False, True, True, True]
    assert run.stage.node.health().values['frames_dropped'] == 1


def test_silence_while_the_run_goes_on_is_stale(mapping, monkeypatch):
    run = mapping()
    monkeypatch.setattr(mapper_node, 'STALE_AFTER_S', 0.0)
    assert run.stage.node.health().level is Level.OK
    run.tell_state(RunState.STATE_RUNNING)
    run.stage.spin_until(lambda: run.stage.node.health().level is Level.STALE)


def test_a_camera_that_breaks_the_contract_is_told(mapping, capsys, monkeypatch):
    run = mapping()
    run.tell_labels()
    with monkeypatch.context() as patch:
        patch.setattr(topics, 'WORLD_FRAME', 'odom')
        run.frames.publish(FRAMES[0])
    assert run.stage.wait_for_end() == 1
    words = '"ground_truth/camera_pose": frame_id is "odom", must be "world"'
    assert words in capsys.readouterr().err
    assert run.acks == []


def test_parts_of_two_frames_never_become_one(mapping):
    run = mapping(pacing='realtime')
    run.tell_labels()
    run.stage.spin_until(lambda: run.stage.node.participant.method is not None)
    run.frames.publish(replace(FRAMES[0], semantic=None, instance=None))
    run.frames.publish(FRAMES[1])
    run.stage.spin_until(lambda: len(run.acks) == 1)
    assert run.acks[0].header.stamp == stamp_to_message(FRAMES[1].stamp_ns)
    assert run.stage.node.health().message == '1 frames dropped or incomplete'
    assert run.stage.node.health().level is Level.WARN


def test_colours_without_light_reach_the_mapper_that_asks_for_them(mapping):
    run = mapping(options='{rooms: false, albedo: true}')
    run.stage.spin_until(lambda: run.stage.peer.count_subscribers(topics.ALBEDO) > 0)
    run.tell_labels()
    run.tell_state(RunState.STATE_RUNNING)
    for number, frame in enumerate(FRAMES, start=1):
        run.frames.publish(replace(frame, albedo=np.full_like(frame.color, (194, 33, 31))))
        run.stage.spin_until(lambda number=number: len(run.acks) == number)
    run.tell_state(RunState.STATE_FINISHED)
    run.stage.spin_until(lambda: bool(run.announced) and run.announced[-1].is_final)
    assert (run.map_of(run.announced[-1]).dense.colors == (194, 33, 31)).all()
