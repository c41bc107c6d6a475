"""The recorder over DDS: maps that it writes, and maps that it refuses with a reason."""

from dataclasses import replace
from functools import partial
from hashlib import sha256
from unittest.mock import Mock

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from nodes.node_stage import on_stage, openings
from osmabench_ros.msg import FrameAck, LabelInfo, RecordedMap, RunInfo, SemanticMapChunk
from osmabench_ros.msg import SemanticMap as SemanticMapMessage
from rclpy.node import Node
from support.messages import put
from support.world.maps import LABELS, labelled_map

from osmabench_ros.base import contract as topics
from osmabench_ros.base.files import sha256_of
from osmabench_ros.maps import storage
from osmabench_ros.maps.storage import list_snapshots, read_map, write_map
from osmabench_ros.nodes import map_recorder_node as recorder
from osmabench_ros.nodes.map_recorder_node import MapRecorderNode
from osmabench_ros.ros.messages.images import label_set_to_message
from osmabench_ros.ros.messages.map_messages import graph_to_message, map_to_messages
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.ros.node.diagnostics import Level
from osmabench_ros.ros.qos import frame_profile, latched_profile, lossless_profile
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph


class Recording:
    """A recorder, and a mapping method that talks to it."""

    def __init__(self, stage, folder):
        self.stage = stage
        self.folder = folder
        self.maps = stage.speak(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
        self.chunks = stage.speak(SemanticMapChunk, topics.SEMANTIC_MAP_CHUNK, lossless_profile())
        self.recorded = stage.listen(RecordedMap, topics.RECORDED_MAP, latched_profile())
        stage.spin_until(lambda: stage.node.count_subscribers(topics.RECORDED_MAP) > 0)

    def announce_run(self):
        """Tell the run and its labels."""
        info = RunInfo(run_id='r', world_frame='world', frame_count=1, frame_rate=1.0)
        self.stage.speak(RunInfo, topics.RUN_INFO, latched_profile()).publish(info)
        labels = self.stage.speak(LabelInfo, topics.LABEL_INFO, latched_profile())
        labels.publish(label_set_to_message(LABELS, 0))
        node = self.stage.node
        self.stage.spin_until(lambda: node.label_set is not None and node.run_id == 'r')

    def send(self, announcement, chunks=()):
        self.maps.publish(announcement)
        for chunk in chunks:
            self.chunks.publish(chunk)

    def failure(self, capsys):
        """Wait for the node to fail; return why. Nothing of a map may be left."""
        assert self.stage.wait_for_end() == 1
        given = ('parameters.yaml', 'plan.json')
        left = [path for path in self.folder.rglob('*') if path.name not in given]
        assert left == []
        return capsys.readouterr().err


@pytest.fixture
def record(ros_domain, tmp_path):
    user, folder = partial(Recording, folder=tmp_path), str(tmp_path / 'map')
    with openings(MapRecorderNode, tmp_path, ros_domain, user, map_directory=folder) as opening:
        yield opening


def graph_alone(**changes):
    """Return the announcement of a map that is a scene graph and nothing else."""
    graph = SceneGraph(labelled_map().graph.nodes, (SceneEdge(1, 3, 'next to'),))
    message = SemanticMapMessage(
        method='drawn', participant='mapper', frames_used=7, is_final=True,
        graph=graph_to_message(graph), **changes,
    )  # fmt: skip
    message.header.frame_id = 'world'
    message.header.stamp = stamp_to_message(5_000_000_000)
    return message


def at(stamp_ns):
    """Return the faultless map at a time."""
    source = labelled_map()
    return replace(source, header=replace(source.header, stamp_ns=stamp_ns))


def test_a_scene_graph_alone_is_a_map(record):
    recording = record()
    recording.announce_run()
    recording.send(graph_alone())
    recording.stage.spin_until(lambda: bool(recording.recorded))
    [reported] = recording.recorded
    assert (reported.point_count, reported.node_count) == (0, 3)
    assert (reported.is_final, reported.run_id) == (True, 'r')
    written = read_map(recording.folder / 'map')
    assert written.dense is None
    assert written.label_set.sha256 == LABELS.sha256
    assert [node.label for node in written.graph.nodes] == ['chair', 'floor', 'table']
    assert [(edge.source, edge.type, edge.target) for edge in written.graph.edges] == [
        (1, 'next to', 3)
    ]
    header = written.header
    assert (header.provenance.method, header.provenance.frames_used) == ('drawn', 7)
    assert (header.frame_id, header.stamp_ns) == ('world', 5_000_000_000)


def test_chunks_come_in_any_order_and_twice(record, monkeypatch):
    announcement, chunks = whole_map()
    [whole] = chunks
    pieces = [whole.data[start : start + 2000] for start in range(0, len(whole.data), 2000)]
    announcement.chunk_count = len(pieces)
    parts = [
        SemanticMapChunk(digest=whole.digest, index=index, count=len(pieces), data=piece)
        for index, piece in enumerate(pieces)
    ]
    recording = record()
    for chunk in [*parts[::-1][:-1], parts[2]]:
        recording.chunks.publish(chunk)
    recording.maps.publish(announcement)
    monkeypatch.setattr(recorder, 'CHUNKS_LATE_AFTER_S', 0.0)
    node = recording.stage.node
    late = '1 chunks of the announced map missing'
    recording.stage.spin_until(lambda: late in node.health().message)
    assert node.health().level is Level.WARN
    recording.chunks.publish(parts[0])
    recording.stage.spin_until(lambda: bool(recording.recorded))
    written = read_map(recording.folder / 'map')
    np.testing.assert_array_equal(written.dense.points, labelled_map().dense.points)
    assert node.health().level is Level.OK
    assert node.health().values['map_bytes'] == announcement.payload_size


def whole_map(made=None, **options):
    given = {'participant': 'mapper', 'is_final': True, **options}
    return map_to_messages(labelled_map() if made is None else made, **given)


def graph_only():
    return graph_alone(), []


def in_frame_odom():
    source = labelled_map()
    parts = {name: replace(getattr(source, name), frame_id='odom') for name in ('header', 'graph')}
    return whole_map(replace(source, **parts))


NOISE = bytes(range(256)) * 4
OF_NOISE = {
    '0.digest': sha256(NOISE).hexdigest(), '0.payload_size': len(NOISE),
    '1.0.digest': sha256(NOISE).hexdigest(), '1.0.data': NOISE,
}  # fmt: skip
CORNER = '0.graph.objects.1.box_min.x'


@pytest.mark.parametrize(
    ('sound', 'changes', 'words'),
    [
        (in_frame_odom, {}, 'from mapper: the map is in frame "odom", the run in "world"'),
        (graph_only, {CORNER: np.nan}, 'mapper: topic "semantic_map": object 2: box corners are'),
        (whole_map, OF_NOISE, 'from mapper: the packed map is not a readable zip archive'),
        (whole_map, {'0.payload_format': 'pickle'}, 'payload_format "pickle" is unknown'),
        (whole_map, {'1': []}, '1 of the 1 chunks did not come of the map that mapper announced'),
        (whole_map, {'1': [], '0.payload_size': 2**31, '0.chunk_count': 256}, '256 of the 256'),
        (whole_map, {'1.0.data': bytes(2**17)}, 'does not fit the map that mapper announced'),
    ],
    ids=range(7),
)
def test_garbage_ends_the_recorder_with_the_reason(sound, changes, words, record, capsys):
    messages = list(sound())
    for place, value in changes.items():
        put(messages, place, value)
    recording = record(plan={'chunk_timeout_s': 0.5})
    recording.announce_run()
    recording.send(*messages)
    reported = recording.failure(capsys)
    assert 'topic "semantic_map' in reported
    assert words in reported
    assert recording.recorded == []


def test_an_intermediate_map_that_does_not_come_is_one_less(record):
    recording = record(plan={'chunk_timeout_s': 0.5})
    recording.send(whole_map(is_final=False)[0])
    assembler = recording.stage.node.assembler
    recording.stage.spin_until(lambda: assembler.missing_chunks == 1)
    recording.stage.spin_until(lambda: assembler.missing_chunks == 0)
    assert recording.stage.node.exit_code is None


def test_a_map_of_a_topic_with_two_publishers_is_not_recorded(record, capsys):
    recording = record()
    second = Node('second')
    second.create_publisher(SemanticMapMessage, topics.SEMANTIC_MAP, latched_profile())
    node = recording.stage.node
    recording.stage.spin_until(lambda: node.count_publishers(topics.SEMANTIC_MAP) == 2)
    recording.send(*whole_map())
    reported = recording.failure(capsys)
    second.destroy_node()
    assert 'topic "/semantic_map" has 2 publishers: /peer and /second' in reported


def test_class_ids_need_a_label_set(record, capsys):
    recording = record()
    recording.send(graph_alone())
    assert 'objects have class ids, but no node published label_info' in recording.failure(capsys)


def test_a_final_map_may_be_said_twice_but_not_changed(record, capsys):
    recording = record()
    for _ in range(2):
        recording.send(*whole_map())
    recording.stage.spin_until(lambda: bool(recording.recorded))
    recording.stage.spin_for(0.3)
    assert recording.stage.node.exit_code is None
    recording.send(graph_alone())
    recording.stage.spin_until(lambda: recording.stage.node.exit_code == 1)
    assert 'a map came after the final one of mapper' in capsys.readouterr().err
    read_map(recording.folder / 'map')


def test_only_maps_of_the_named_participant_count(record):
    recording = record(participant='mapper')
    foreign = graph_alone_open_vocabulary()
    foreign.participant = 'foreign'
    recording.send(foreign)
    recording.stage.spin_for(0.3)
    assert not (recording.folder / 'map').exists()
    recording.send(graph_alone_open_vocabulary())
    recording.stage.spin_until(lambda: bool(recording.recorded))


def test_intermediate_maps_are_kept_evenly_and_bounded(record):
    recording = record(plan={'keep_intermediate_maps': True, 'max_snapshots': 3})
    for second in range(8):
        recording.send(*whole_map(at(second * 10**9), is_final=False))
        values = recording.stage.node.health().values
        recording.stage.spin_until(
            lambda values=values: (
                recording.stage.node.health().values['map_bytes'] > values['map_bytes']
            )
        )
    recording.send(*whole_map(at(8 * 10**9)))
    recording.stage.spin_until(lambda: bool(recording.recorded))
    kept = list_snapshots(recording.folder / 'map_snapshots')
    assert [int(path.name) for path in kept] == [0, 4 * 10**9]
    assert [read_map(path).header.stamp_ns for path in kept] == [0, 4 * 10**9]
    assert read_map(recording.folder / 'map').header.stamp_ns == 8 * 10**9


def test_a_map_is_checked_once_and_lies_there_as_it_was_sent(record, monkeypatch, tmp_path):
    recording = record()
    write_map(labelled_map(), tmp_path / 'expected')
    messages = whole_map()
    checked = Mock(wraps=storage.check_content)
    monkeypatch.setattr(storage, 'check_content', checked)
    recording.send(*messages)
    recording.stage.spin_until(lambda: bool(recording.recorded))
    assert checked.call_count == 1
    assert sha256_of(tmp_path / 'map') == sha256_of(tmp_path / 'expected')


def test_intermediate_maps_are_left_out_unless_asked_for(record):
    recording = record()
    recording.send(*whole_map(at(1), is_final=False))
    recording.send(*whole_map(at(2)))
    recording.stage.spin_until(lambda: bool(recording.recorded))
    assert {path.name for path in recording.folder.iterdir()} == {'map', 'parameters.yaml'}


def test_it_ends_by_itself_if_asked_and_needs_no_run(record):
    recording = record(exit_when_done=True)
    recording.send(graph_alone_open_vocabulary())
    recording.stage.spin_until(lambda: recording.stage.node.exit_code == 0)
    recording.stage.spin_until(lambda: bool(recording.recorded))
    assert read_map(recording.folder / 'map').label_set is None


def graph_alone_open_vocabulary():
    """Return a map of a method that knows nothing of the run's label set."""
    message = graph_alone()
    for item in message.graph.objects:
        item.labels[0].class_id = LabelInfo.UNLABELLED
    return message


def test_a_folder_that_cannot_be_written_to_is_told(record, capsys, tmp_path):
    recording = record(map_directory=str(tmp_path / 'gone' / 'map'))
    (tmp_path / 'gone').write_text('a file where a folder should be')
    recording.send(graph_alone_open_vocabulary())
    recording.stage.spin_until(lambda: recording.stage.node.exit_code == 1)
    assert f'cannot write {tmp_path}/gone' in capsys.readouterr().err


def test_a_taken_folder_is_refused(ros_domain, tmp_path, capsys):
    (tmp_path / 'map').mkdir()
    (tmp_path / 'map' / 'thesis').touch()
    values = {'map_directory': str(tmp_path / 'map')}
    with on_stage(MapRecorderNode, tmp_path, ros_domain, **values) as stage:
        assert stage.node.exit_code == 1
    assert 'map is not empty' in capsys.readouterr().err


def test_frames_are_acknowledged_by_their_pose(record):
    recording = record()
    acks = recording.stage.listen(FrameAck, topics.FRAME_ACK, lossless_profile())
    recording.stage.spin_until(
        lambda: recording.stage.node.count_subscribers(topics.FRAME_ACK) > 0
    )
    poses = recording.stage.speak(PoseStamped, topics.CAMERA_POSE, frame_profile(lockstep=True))
    message = PoseStamped()
    message.header.stamp = stamp_to_message(42)
    poses.publish(message)
    recording.stage.spin_until(lambda: bool(acks))
    assert (acks[0].participant, acks[0].header.stamp.nanosec) == ('map_recorder', 42)
