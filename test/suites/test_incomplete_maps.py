"""What a map lacks is not applicable: never zero, never silently absent, never an error."""

from dataclasses import replace
from types import MappingProxyType

import numpy as np
import pytest

from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.suites.instances import InstancesSuite
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.openlex3d import OpenLex3DSuite
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite
from osmabench_ros.suites.scene_graph import SceneGraphSuite

SUITES = {
    'segmentation': OsmaSegmentationSuite,
    'geometry': MapGeometrySuite,
    'instances': InstancesSuite,
    'scene_graph': SceneGraphSuite,
    'openlex3d': OpenLex3DSuite,
}
NOTHING = np.zeros((0, 3), np.float32)


def of_nodes(semantic_map, **changes):
    nodes = tuple(replace(node, **changes) for node in semantic_map.graph.nodes)
    return replace(semantic_map, graph=replace(semantic_map.graph, nodes=nodes))


def of_points(semantic_map, **changes):
    return replace(semantic_map, dense=replace(semantic_map.dense, **changes))


LACKING = {
    'nothing': lambda full: full,
    'points': lambda full: replace(full, dense=None),
    'every point': lambda full: replace(full, dense=DenseMap(NOTHING)),
    'every point of known kinds': lambda full: replace(
        full,
        dense=DenseMap(NOTHING, labels=np.zeros(0, np.int32), instances=np.zeros(0, np.int32)),
    ),
    'every valid point': lambda full: of_points(
        full, valid=np.zeros(len(full.dense.points), bool)
    ),
    'labels': lambda full: of_nodes(of_points(full, labels=None), labels=()),
    'labels of points': lambda full: of_points(full, labels=None),
    'labels of nodes': lambda full: of_nodes(full, labels=()),
    'instances': lambda full: of_points(full, instances=None),
    'graph': lambda full: replace(full, graph=SceneGraph()),
    'relations': lambda full: replace(full, graph=SceneGraph(full.graph.nodes)),
    'boxes': lambda full: of_nodes(full, box=None),
    'boxes and instances': lambda full: of_nodes(of_points(full, instances=None), box=None),
    'attributes': lambda full: of_nodes(full, attributes=MappingProxyType({})),
    'everything': lambda full: SemanticMap(full.header),
}


def evaluate(suite, context):
    made = SUITES[suite](options={})
    records = made.evaluate(context)
    found = {(item.mode, item.metric, item.class_name): item for item in records}
    assert len(found) == len(records)
    return found


@pytest.mark.parametrize('suite', SUITES)
@pytest.mark.parametrize('lacking', LACKING)
def test_a_map_without_a_part_has_the_same_figures_some_not_applicable(
    suite, lacking, context, perfect_map
):
    full = evaluate(suite, context)
    bare = evaluate(suite, replace(context, semantic_map=LACKING[lacking](perfect_map)))
    overall = {key for key in full if not key[2]}
    assert overall <= bare.keys()
    for key, record in bare.items():
        assert record.applicable == (record.value is not None), key
        if key in full:
            assert record.higher_is_better == full[key].higher_is_better, key


@pytest.mark.parametrize('suite', SUITES)
@pytest.mark.parametrize('lacking', ['points', 'everything'])
def test_what_is_not_there_is_never_zero(suite, lacking, context, perfect_map):
    bare = replace(context, semantic_map=LACKING[lacking](perfect_map))
    found = evaluate(suite, bare).values()
    assert found
    assert lacking == 'points' or not any(item.applicable for item in found)
    assert not [item.metric for item in found if item.value == 0.0 and item.higher_is_better]
