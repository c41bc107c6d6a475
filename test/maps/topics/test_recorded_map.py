"""Maps of every kind out of bags with embedded definitions; no ROS."""

import dataclasses

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin
from support.world.bags import (
    S,
    header,
    make,
    map_messages,
    point_cloud,
    pose_message,
    write_messages,
    xyz,
)
from support.world.graphs import content_of

from osmabench_ros.base.contract import MARKERS, POINT_CLOUD
from osmabench_ros.errors import ConfigError, ContractError, SequenceError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps import map_kinds
from osmabench_ros.maps.announced_map import announced_map
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.sequences.bags.bag import open_bag

LABELS = LabelSet.from_names('room', ['chair', 'wall'])
OPTIONS = TopicOptions('tried', LABELS)


def cloud(count):
    return DenseMap(np.arange(3 * count, dtype=np.float32).reshape(count, 3))


def semantic_map(count):
    return SemanticMap(
        MapHeader(Provenance('sender', frames_used=count), 'world', count * S),
        SceneGraph((SceneNode(1, labels=(ScoredLabel('chair', 0.5, 1),)),)),
        cloud(count),
        LABELS,
    )


def read(folder, topic, until_ns=None):
    with open_bag(folder) as bag:
        return map_kinds.read_recorded_map(bag, topic, OPTIONS, until_ns=until_ns)


def sent(made, log_ns, *, lost=0):
    """Return announcement and chunks of a map, less the last ones."""
    announcement, chunks = map_messages(made)
    yield '/robot/semantic_map', log_ns, announcement
    for chunk in chunks[: len(chunks) - lost]:
        yield '/robot/semantic_map_chunk', log_ns + 1, chunk


@pytest.mark.parametrize('storage', list(StoragePlugin))
def test_the_last_semantic_map_is_put_together(tmp_path, storage):
    noise = ('/noise', 5, header())
    messages = [noise, *sent(semantic_map(20), S), *sent(semantic_map(30), 2 * S)]
    folder = write_messages(tmp_path / 'bag', messages, storage)
    found = read(folder, '/robot/semantic_map')
    assert len(found.semantic_map.dense.points) == 30
    assert found.semantic_map.header.provenance.frames_used == 30
    assert (found.log_ns, found.remarks) == (2 * S, ())
    before = read(folder, '/robot/semantic_map', until_ns=2 * S - 1)
    assert before.semantic_map.header.stamp_ns == 20 * S
    with pytest.raises(SequenceError, match='no map up to that time'):
        read(folder, '/robot/semantic_map', until_ns=1)


def test_a_map_with_lost_chunks_gives_way_to_the_one_before(tmp_path):
    messages = [*sent(semantic_map(20), S), *sent(semantic_map(30), 2 * S, lost=1)]
    found = read(write_messages(tmp_path / 'bag', messages), '/robot/semantic_map')
    assert len(found.semantic_map.dense.points) == 20
    assert 'newer map' in found.remarks[0]


def test_an_announcement_alone_is_a_scene_graph(tmp_path):
    messages = list(sent(semantic_map(20), S))[:1]
    found = read(write_messages(tmp_path / 'bag', messages), '/robot/semantic_map')
    assert found.semantic_map.dense is None
    label = found.semantic_map.graph.nodes[0].labels[0]
    assert (label.name, label.class_id) == ('chair', 1)
    assert found.semantic_map.header.provenance.method == 'sender'
    assert 'without points' in found.remarks[0]


def graph_announced():
    announcement, _ = map_messages(semantic_map(20))
    announcement.payload_size, announcement.chunk_count, announcement.digest = 0, 0, ''
    return announcement


@pytest.mark.parametrize('is_final', [True, False])
def test_a_scene_graph_is_the_same_map_live_and_from_a_bag(tmp_path, is_final):
    message = graph_announced()
    message.is_final = is_final
    live = announced_map(
        message, b'', 'semantic_map', TopicOptions('', LABELS), agreed=LABELS, world_frame='world'
    )
    messages = [*sent(semantic_map(10), S), ('/robot/semantic_map', 2 * S, message)]
    found = read(write_messages(tmp_path / 'bag', messages), '/robot/semantic_map')
    recorded = found.semantic_map
    assert (recorded.dense, found.remarks) == (None, ())
    assert recorded.header == live.header
    assert content_of(recorded.graph) == content_of(live.graph)
    assert live.header.complete is is_final


@pytest.mark.parametrize(
    ('changes', 'labels', 'reason'),
    [
        ({'header': ''}, LABELS, 'the header names no frame_id'),
        ({'graph': 'odom'}, LABELS, 'the graph is in frame "odom", the map in "world"'),
        ({'label': 999}, LABELS, r'objects: label ids \[999\] are not in label set "room"'),
        ({}, None, 'objects have class ids, but no node published label_info'),
    ],
)
def test_a_bad_scene_graph_is_refused_alike_live_and_from_a_bag(changes, labels, reason, tmp_path):
    message = graph_announced()
    frame_id = changes.get('header', 'world')
    message.header = dataclasses.replace(message.header, frame_id=frame_id)
    frame_id = changes.get('graph', frame_id)
    message.graph.header = dataclasses.replace(message.header, frame_id=frame_id)
    message.graph.objects[0].labels[0].class_id = changes.get('label', 1)
    with pytest.raises(ContractError, match=f'topic "semantic_map" from .*: {reason}'):
        announced_map(message, b'', 'semantic_map', TopicOptions('', labels))
    folder = write_messages(tmp_path / 'bag', [('/robot/semantic_map', S, message)])
    options = TopicOptions('tried', labels)
    with (
        open_bag(folder) as bag,
        pytest.raises(ContractError, match=f'topic "/robot/semantic_map" from .*: {reason}'),
    ):
        map_kinds.read_recorded_map(bag, '/robot/semantic_map', options)


def test_a_damaged_chunk_is_an_error_not_a_map(tmp_path):
    messages = list(sent(semantic_map(20), S))
    messages[1][2].data = messages[1][2].data ^ 1
    with pytest.raises(ContractError, match='sha256'):
        read(write_messages(tmp_path / 'bag', messages), '/robot/semantic_map')


def test_the_last_cloud_counts(tmp_path):
    messages = [('/rtabmap/cloud_map', i * S, point_cloud(cloud(i), i * S)) for i in range(1, 5)]
    folder = write_messages(tmp_path / 'bag', messages)
    assert len(read(folder, '/rtabmap/cloud_map').semantic_map.dense.points) == 4
    earlier = read(folder, '/rtabmap/cloud_map', until_ns=2 * S)
    assert (len(earlier.semantic_map.dense.points), earlier.log_ns) == (2, 2 * S)


def dsg_update(payload, *, full, number):
    layers, own = np.frombuffer(payload, np.uint8), header(number * S, 'map')
    parts = {'layer_contents': layers, 'full_update': full, 'sequence_number': number}
    return make('hydra_msgs/DsgUpdate', header=own, **parts)


def test_hydras_last_full_update_counts(tmp_path):
    dsg = pytest.importorskip('spark_dsg', reason='spark-dsg is not installed')
    graphs = []
    for count in (1, 2):
        graph = dsg.DynamicSceneGraph()
        for i in range(count):
            chair = dsg.ObjectNodeAttributes()
            chair.position = np.array([i, 2, 0.5])
            chair.semantic_label = 4
            graph.add_node(2, dsg.NodeSymbol('O', i).value, chair)
        graph.set_labelspace(dsg.Labelspace({4: 'chair'}), 2, 0)
        graphs.append(graph.to_binary(False))
    topic = '/hydra/backend/dsg'
    updates = [
        (topic, S, dsg_update(graphs[0], full=True, number=1)),
        (topic, 2 * S, dsg_update(graphs[1], full=True, number=2)),
        (topic, 3 * S, dsg_update(b'', full=False, number=3)),
    ]
    found = read(write_messages(tmp_path / 'bag', updates), topic)
    header_found = found.semantic_map.header
    assert (header_found.frame_id, header_found.stamp_ns) == ('map', 2 * S)
    assert header_found.provenance.method == 'tried'
    assert [node.label for node in found.semantic_map.graph.nodes] == ['chair', 'chair']
    assert found.remarks == ('1 partial updates after the last full one are left out',)
    with pytest.raises(SequenceError, match='1 partial updates cannot be read without'):
        read(write_messages(tmp_path / 'partial', updates[2:]), topic)


def test_markers_are_read_where_there_is_nothing_better(tmp_path):
    shape = {'pose': pose_message(Pose.identity()), 'scale': xyz((1, 2, 3)), 'text': 'chair'}
    marker = make('visualization_msgs/Marker', header=header(S, 'map'), id=3, type=1, **shape)
    message = make('visualization_msgs/MarkerArray', markers=[marker])
    folder = write_messages(tmp_path / 'bag', [('/objects', S, message)])
    found = read(folder, '/objects').semantic_map
    assert [(node.id, node.label) for node in found.graph.nodes] == [(3, 'chair')]
    assert found.header.frame_id == 'map'


def test_the_map_topic_is_found_or_the_candidates_are_named():
    own = {'/semantic_map': map_kinds.SEMANTIC_MAP, '/semantic_map_points': POINT_CLOUD,
           '/semantic_map_markers': MARKERS, '/tf': 'tf2_msgs/msg/TFMessage'}  # fmt: skip
    assert map_kinds.choose_map_topic(own) == '/semantic_map'
    assert map_kinds.choose_map_topic(own, 'semantic_map_points') == '/semantic_map_points'
    assert map_kinds.choose_map_topic({**own, '/stack/cloud': POINT_CLOUD}) == '/semantic_map'
    assert map_kinds.choose_map_topic({'/a': map_kinds.DETECTIONS, '/b': MARKERS}) == '/a'
    assert map_kinds.choose_map_topic({'/b': MARKERS}) == '/b'
    with pytest.raises(ConfigError, match=r'/cloud_map .*/dsg .*--map-topic'):
        map_kinds.choose_map_topic({'/dsg': map_kinds.DSG_UPDATE, '/cloud_map': POINT_CLOUD})
    with pytest.raises(ConfigError, match=r'no topic of a type that holds maps.*it has /tf'):
        map_kinds.choose_map_topic({'/tf': 'tf2_msgs/msg/TFMessage'})
    with pytest.raises(ConfigError, match='Did you mean "/semantic_map"'):
        map_kinds.choose_map_topic(own, '/semantic_mop')
    with pytest.raises(ConfigError, match='TFMessage, which is not a map'):
        map_kinds.choose_map_topic(own, '/tf')
