"""A room of a floor, a table top and a chair seat, and the map of a faultless method."""

from dataclasses import replace

import numpy as np
import pytest
from support.world.graphs import as_map, ground_truth_of, nodes_of

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import DenseMap, FeatureSpace
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)
from osmabench_ros.suites.suite import SuiteContext

LABELS = LabelSet.from_names('room', ['chair', 'floor', 'lamp', 'table'], structure=['floor'])
PLANES = {
    'floor': (1, (0.0, 0.0, 0.0), (4.0, 4.0)),
    'table': (2, (1.0, 1.0, 0.8), (2.0, 1.0)),
    'chair': (3, (3.2, 3.2, 0.5), (0.5, 0.5)),
}
POINTS_PER_M2 = 400.0  # as ground truth has it by default


def plane(name, seed):
    instance, corner, size = PLANES[name]
    n = round(size[0] * size[1] * POINTS_PER_M2)
    offsets = np.random.default_rng(seed).random((n, 3)) * [*size, 0.0]
    return LabelledCloud(
        (offsets + corner).astype(np.float32),
        np.full(n, LABELS.id_of(name), np.int32),
        np.full(n, instance, np.int32),
        np.tile(np.array([[0, 0, 1]], np.float32), (n, 1)),
    )


def joined(clouds):
    parts = ('points', 'labels', 'instances', 'normals')
    return LabelledCloud(*(np.concatenate([getattr(c, part) for c in clouds]) for part in parts))


def scene_graph():
    boxes = (
        (name, corner, np.add(corner, [*size, 0.02])) for name, (_, corner, size) in PLANES.items()
    )
    nodes = (
        replace(node, attributes={'color': 'brown'}, parent=9) for node in nodes_of(boxes, LABELS)
    )
    room = SceneNode(
        9, NodeKind.ROOM, (ScoredLabel('kitchen'),), box=AxisAlignedBox([0, 0, -0.1], [4, 4, 3])
    )
    edges = (SceneEdge(3, 2, 'next to'), SceneEdge(2, 1, 'on'), SceneEdge(3, 1, 'on'))
    return SceneGraph((*nodes, room), edges)


@pytest.fixture(scope='session')
def ground_truth():
    surface = joined([plane(name, seed) for seed, name in enumerate(PLANES)])
    return ground_truth_of(scene_graph(), surface, label_set=LABELS, fused=surface,
                           seen_instances=(1, 2, 3))  # fmt: skip


def map_of(cloud):
    dense = DenseMap(cloud.points, labels=cloud.labels, instances=cloud.instances)
    return as_map(scene_graph(), LABELS, dense)


@pytest.fixture(scope='session')
def perfect_map():
    """The same surfaces, sampled elsewhere."""
    return map_of(joined([plane(name, 10 + seed) for seed, name in enumerate(PLANES)]))


@pytest.fixture
def with_map(context):
    """Return the context of a map of which the graph, the label set, or arrays are replaced."""

    def edit(**parts):
        full = context.semantic_map
        own = {name: parts.pop(name) for name in ('graph', 'label_set') if name in parts}
        dense = replace(full.dense, **parts)
        return replace(context, semantic_map=replace(full, dense=dense, **own))

    return edit


@pytest.fixture
def context(ground_truth, perfect_map):
    return SuiteContext('room', perfect_map, ground_truth, device='cpu')


@pytest.fixture
def asking(context, perfect_map):
    """Returns a context of a map of features alone that asks a labeller; notes what it offers."""

    def ask(choose):
        def labeller(semantic_map, names):
            offered.append(list(names))
            return np.full(len(semantic_map.dense.points), names.index(choose(names)))

        offered = []
        dense = replace(perfect_map.dense, labels=None)
        spaces = {'clip': FeatureSpace('clip', np.zeros((1, 4), np.float32), 'ViT-B-32')}
        bare = replace(perfect_map, graph=SceneGraph(), dense=dense, feature_spaces=spaces)
        return replace(context, semantic_map=bare, labeller=labeller), offered

    return ask
