import dataclasses

import numpy as np
import pytest
from support.world.graphs import as_map, thing

from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.metrics.map_statistics import map_statistics
from osmabench_ros.semantics import scene_graph
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

CUBE = (1, 1, 1)
NODES = (
    thing(1, 'chair', (0, 0, 0), CUBE),
    thing(2, 'Chair', (0.4, 0, 0), CUBE),  # shares 0.6 of 1.4 with 1: a duplicate
    thing(3, 'table', (0.1, 0, 0), CUBE),  # overlaps both under another name
    dataclasses.replace(thing(4, '', (8, 0, 0), CUBE), labels=()),
    thing(5, 'kitchen', (0, 0, 0), CUBE, kind=scene_graph.NodeKind.ROOM),
)
POINTS = np.array([[0, 0, 0], [2, 1, 0.5], [2.01, 1, 0.5], [4, 0, 0]], np.float32)


def figures(made):
    return {(item.metric, item.class_name): item.value for item in map_statistics(made)}


def test_a_map_is_counted():
    dense = DenseMap(POINTS, labels=np.array([1, 1, UNLABELLED, 1], np.int32))
    edges = (scene_graph.SceneEdge(1, 3, 'next to'),)
    made = as_map(
        scene_graph.SceneGraph(NODES, edges), LabelSet.from_names('room', ['chair']), dense
    )
    found = figures(made)
    expected = {
        ('nodes', ''): 5, ('nodes', 'kind room'): 1, ('objects', 'chair'): 2,
        ('objects', 'unlabelled'): 1, ('edges', 'next to'): 1, ('labelled_nodes', ''): 4 / 5,
        ('connected_nodes', ''): 2 / 5, ('points', ''): 4, ('labelled_points', ''): 3 / 4,
        ('points_in_nodes', ''): None,
    }  # fmt: skip
    assert {key: found[key] for key in expected} == expected
    assert [found[f'extent_{axis}_m', ''] for axis in 'xyz'] == [4, 1, 0.5]
    owned = dataclasses.replace(dense, instances=np.array([0, 1, 1, 3], np.int32))
    found = figures(dataclasses.replace(made, dense=owned))
    assert found['points_in_nodes', ''] == pytest.approx(3 / 4)
    assert found['occupied_volume_m3', ''] == pytest.approx(3 * 0.001)
    assert found['overlapping_objects', ''] == 3
    assert found['duplicate_objects', ''] == 2


def test_an_empty_map_is_said_to_be_empty():
    found = figures(as_map())
    assert found['nodes', ''] == 0
    for metric in ('points', 'labelled_nodes', 'duplicate_objects'):
        assert found[metric, ''] is None
