import numpy as np
import pytest

from osmabench_ros.maps.export import Holdings, list_holdings
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.scene_graph import NodeKind, SceneEdge, SceneGraph, SceneNode


def made(graph, method='test'):
    points = np.zeros((2, 3), np.float32)
    dense = DenseMap(points, instances=np.ones(2, np.int32))
    return SemanticMap(MapHeader(Provenance(method)), graph, dense)


@pytest.mark.parametrize('method', ['bbq', 'conceptgraphs', 'test'])
def test_what_a_map_holds_does_not_depend_on_the_name_of_its_method(method):
    room = SceneNode(9, NodeKind.ROOM)
    cup = SceneNode(1, attributes={'color': 'red'})
    table = SceneNode(2, captions=('a table',), parent=9)
    apart = SceneGraph((cup, table, room), (SceneEdge(2, 9, 'in'),))
    expected = Holdings(
        things=True,
        relations=False,
        attributes=frozenset({'color'}),
        captions=True,
        instances=True,
    )
    assert list_holdings(made(apart, method)) == expected
    related = SceneGraph(apart.nodes, (*apart.edges, SceneEdge(1, 2, 'on')))
    assert list_holdings(made(related, method)).relations


def test_a_map_of_nothing_holds_nothing():
    empty = SemanticMap(MapHeader(Provenance('test')))
    assert list_holdings(empty) == Holdings(False, False, frozenset(), False, False)
