import math
from dataclasses import replace

import numpy as np
import pytest
from std_msgs.msg import Header
from support.world.graphs import content_of
from support.world.maps import sample_map

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.announced_map import MapAssembler, convert_graph
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.maps.standard_messages import convert_records, read_records
from osmabench_ros.maps.storage import unpack_map
from osmabench_ros.ros.messages import map_messages


def test_graphs_survive_the_message():
    nodes = sample_map().graph.nodes
    # The message has no features.
    table = replace(nodes[0], feature_row=None, feature_space='')
    graph = replace(sample_map().graph, nodes=(table, *nodes[1:]))
    again = convert_graph(map_messages.graph_to_message(graph), 't')
    rotation = again.nodes[0].oriented_box.pose.rotation
    np.testing.assert_allclose(rotation, graph.nodes[0].oriented_box.pose.rotation, atol=1e-12)
    sent, received = content_of(graph), content_of(again)
    del sent['nodes'][0]['oriented_box'], received['nodes'][0]['oriented_box']
    assert received == sent
    assert math.isnan(again.nodes[0].labels[1].score)


def test_an_edge_to_nowhere_is_refused_with_the_topic():
    message = map_messages.graph_to_message(sample_map().graph)
    message.relations[0].target = 99
    with pytest.raises(ContractError, match='"semantic_map".*node 99'):
        convert_graph(message, 'semantic_map')


def test_a_large_map_travels_in_chunks_of_any_order():
    sent = sample_map(1_500_000)
    announcement, chunks = map_messages.map_to_messages(sent, 'mapper', is_final=True)
    assert len(chunks) > 1
    assembler = MapAssembler()
    assert all(assembler.add(chunk) is None for chunk in reversed(chunks))
    complete = assembler.announce(announcement)
    again = unpack_map(complete[1])
    np.testing.assert_array_equal(again.dense.points, sent.dense.points)


def messages(points=6, *, is_final=True):
    return map_messages.map_to_messages(sample_map(points), 'mapper', is_final=is_final)


@pytest.mark.parametrize('damaged', ['chunk', 'size'])
def test_a_damaged_chunk_and_another_size_are_noticed(damaged):
    announcement, chunks = messages()
    if damaged == 'chunk':
        chunks[0].data[10] ^= 1
    else:
        announcement.payload_size += 1
    assembler = MapAssembler()
    assembler.announce(announcement)
    with pytest.raises(ContractError, match='sha256'):
        assembler.add(chunks[0])


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'payload_size': 2**40}, 'payload'),
        ({'chunk_count': 2**32 - 1}, '4294967295 are announced'),
        ({'chunk_count': 0, 'digest': ''}, 'from mapper'),
        ({'payload_size': 0, 'digest': ''}, 'from mapper'),
        ({'payload_size': 0, 'chunk_count': 0}, 'from mapper'),
    ],
)
def test_an_announcement_that_is_oversized_or_half_is_refused(changes, words):
    announcement, _ = messages()
    for name, value in changes.items():
        setattr(announcement, name, value)
    with pytest.raises(ContractError, match=words):
        MapAssembler().announce(announcement)


def test_chunks_never_announced_are_not_kept_for_ever():
    _, chunks = messages(200_000)
    assembler = MapAssembler(max_bytes=1000)
    with pytest.raises(ContractError, match='wait for their announcement'):
        assembler.add(chunks[0])


@pytest.mark.parametrize(
    ('change', 'words'),
    [
        ({'data': b''}, 'with 0 bytes'),
        ({'index': 1}, 'chunk 1 of 1'),
        ({'count': 2**31}, 'chunk 0 of 2147483648'),
        ({'digest': 'x' * 1_000_000}, 'not a hexadecimal sha256'),
    ],
)
def test_a_chunk_out_of_bounds_is_refused(change, words):
    _, [chunk] = messages()
    for name, value in change.items():
        setattr(chunk, name, value)
    with pytest.raises(ContractError, match=words) as reported:
        MapAssembler().add(chunk)
    assert len(str(reported.value)) < 300


def test_a_chunk_that_comes_again_is_held_once():
    announcement, [chunk] = messages()
    assembler = MapAssembler(max_bytes=len(chunk.data))
    for _ in range(10):
        assert assembler.add(chunk) is None
    assert assembler.announce(announcement) is not None


def test_many_small_chunks_never_announced_are_refused():
    _, [chunk] = messages()
    chunk.data, chunk.count = b'x', 16_384
    assembler = MapAssembler()
    for number in range(32_768):
        chunk.digest = f'{number:064x}'
        assembler.add(chunk)
    chunk.digest = 'f' * 64
    with pytest.raises(ContractError, match='in 32768 chunks wait for their announcement'):
        assembler.add(chunk)


def test_a_scene_graph_alone_is_complete_at_once():
    announcement, chunks = messages(is_final=False)
    assembler = MapAssembler()
    assert assembler.announce(announcement) is None
    assert assembler.missing_chunks == len(chunks)
    alone, _ = messages()
    alone.payload_size, alone.chunk_count, alone.digest, alone.payload_format = 0, 0, '', ''
    assert assembler.announce(alone) == (alone, b'')
    assert assembler.missing_chunks == 0


def test_chunks_of_maps_that_do_not_matter_take_no_room():
    announcement, chunks = messages()
    assembler = MapAssembler(max_bytes=announcement.payload_size)
    for points in range(7, 17):
        other, foreign = map_messages.map_to_messages(sample_map(points), 'other', is_final=True)
        assembler.add(foreign[0])
        assembler.ignore(other.digest)
        assert assembler.add(foreign[0]) is None
    assembler.announce(announcement)
    assert assembler.add(chunks[0]) is not None


def cloud(count):
    rng = np.random.default_rng(0)
    return DenseMap(
        rng.normal(size=(count, 3)).astype(np.float32),
        rng.integers(0, 256, (count, 3)).astype(np.uint8),
        rng.integers(0, 50, count).astype(np.int32),
        rng.integers(0, 9, count).astype(np.int32),
    )


def read(message):
    return convert_records(read_records(message))[0]


def test_points_labels_instances_and_colours_survive_the_message():
    dense = cloud(20)
    message = map_messages.point_cloud_message(dense, Header(frame_id='world'))
    again = read(message)
    for name in ('points', 'colors', 'labels', 'instances'):
        np.testing.assert_array_equal(getattr(again, name), getattr(dense, name))
    assert message.header.frame_id == 'world'
    assert message.row_step == message.point_step * message.width == len(message.data)


def test_a_large_cloud_is_thinned_evenly_from_end_to_end():
    dense = cloud(1000)
    again = read(map_messages.point_cloud_message(dense, Header(), max_points=100))
    assert len(again.points) == 100
    np.testing.assert_array_equal(again.points[[0, -1]], dense.points[[0, -1]])
