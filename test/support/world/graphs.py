"""Scene graphs made by hand, their maps and their ground truth."""

import numpy as np
from pydantic import TypeAdapter

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)
from osmabench_ros.sequences.ground_truth import GroundTruth


def thing(node_id, label, low, size, *, kind=NodeKind.OBJECT, **attributes):
    """Return a node with a box given by its lowest corner and its size in metres."""
    box = AxisAlignedBox(np.array(low), np.array(low) + np.array(size))
    return SceneNode(
        id=node_id, kind=kind, labels=(ScoredLabel(label, 1.0),), attributes=attributes, box=box
    )


def living_room():
    """Return twenty-odd objects with colours, materials, boxes and relations."""
    nodes = (
        thing(1, 'floor', (0, 0, -0.1), (8, 6, 0.1), kind=NodeKind.BACKGROUND),
        thing(2, 'wall', (0, 6, 0), (8, 0.1, 2.6), kind=NodeKind.BACKGROUND),
        thing(3, 'sofa', (0.2, 0.2, 0), (2.0, 0.9, 0.8), color='gray', material='fabric'),
        thing(4, 'coffee table', (0.6, 1.6, 0), (1.1, 0.6, 0.45), color='brown', material='wood'),
        thing(5, 'chair', (4.0, 0.3, 0), (0.5, 0.5, 0.9), color='red', material='plastic'),
        thing(6, 'chair', (5.5, 0.3, 0), (0.5, 0.5, 0.9), color='black', material='metal'),
        thing(7, 'desk', (4.5, 1.2, 0), (1.4, 0.7, 0.75), color='white', material='wood'),
        thing(8, 'laptop', (4.9, 1.4, 0.75), (0.35, 0.25, 0.2), color='black', material='metal'),
        thing(9, 'mug', (0.9, 1.8, 0.45), (0.1, 0.1, 0.12), color='blue', material='ceramic'),
        thing(10, 'cabinet', (7.2, 3.0, 0), (0.7, 1.2, 2.0), color='brown', material='wood'),
        thing(11, 'bowl', (7.4, 3.3, 1.0), (0.25, 0.25, 0.1), color='green', material='ceramic'),
        thing(12, 'rug', (0.3, 1.2, 0), (2.2, 1.6, 0.02), color='red', material='wool'),
        thing(13, 'floor lamp', (2.5, 0.3, 0), (0.4, 0.4, 1.7), color='yellow', material='metal'),
        thing(14, 'picture', (3.0, 5.95, 1.4), (0.8, 0.05, 0.6), color='blue', material='paper'),
        thing(15, 'blinds', (5.0, 5.9, 1.0), (1.2, 0.08, 1.3), color='white', material='plastic'),
        thing(16, 'bookshelf', (0.1, 4.5, 0), (0.35, 1.2, 1.9), color='brown', material='wood'),
        thing(17, 'book', (0.15, 4.7, 1.2), (0.2, 0.05, 0.25), color='red', material='paper'),
        thing(18, 'vase', (7.5, 3.4, 2.0), (0.2, 0.2, 0.35), color='purple', material='glass'),
        thing(19, 'bed', (3.0, 3.6, 0), (2.0, 1.6, 0.5), color='white', material='fabric'),
        thing(20, 'pillow', (3.1, 4.0, 0.5), (0.5, 0.4, 0.15), color='yellow', material='cotton'),
        thing(21, 'stool', (6.5, 1.0, 0), (0.35, 0.35, 0.5), color='green', material='wood'),
        thing(22, 'television', (6.0, 4.8, 0.6), (1.0, 0.1, 0.6), color='black'),
        thing(23, 'tv stand', (5.9, 4.7, 0), (1.4, 0.4, 0.6), color='gray', material='wood'),
    )
    relations = (
        (9, 4, 'on'), (8, 7, 'on'), (18, 10, 'on'), (20, 19, 'on'), (22, 23, 'on'),
        (4, 12, 'on'), (11, 10, 'in'), (17, 16, 'in'), (12, 4, 'under'), (14, 2, 'attached to'),
        (3, 13, 'next to'), (5, 7, 'next to'), (21, 7, 'near'), (3, 4, 'near'),
    )  # fmt: skip
    return SceneGraph(nodes, tuple(SceneEdge(*relation) for relation in relations))


def large_graph(objects, labels, seed=0):
    """Return a hall of tables with objects on them."""
    colors = ('red', 'blue', 'green', 'yellow', 'black', 'white', 'brown', 'purple')
    materials = ('wood', 'metal', 'glass', 'plastic', 'leather', 'stone')
    rng = np.random.default_rng(seed)
    nodes = [thing(1, 'floor', (0, 0, -0.1), (60, 60, 0.1), kind=NodeKind.BACKGROUND)]
    edges = []
    for number in range(objects):
        node_id = number + 2
        x, y = (float(v) for v in rng.uniform(0, 58, 2))
        size = tuple(float(v) for v in rng.uniform(0.2, 1.8, 3))
        label = f'gadget{rng.integers(labels)}'
        color = colors[rng.integers(len(colors))]
        material = materials[rng.integers(len(materials))]
        stands_on = nodes[-1] if number % 3 == 2 else None
        low = (x, y, 0.0)
        if stands_on is not None and stands_on.box is not None:
            low = (*(float(v) for v in stands_on.box.minimum[:2]), float(stands_on.box.maximum[2]))
            edges.append(SceneEdge(node_id, stands_on.id, 'on'))
        nodes.append(thing(node_id, label, low, size, color=color, material=material))
    return SceneGraph(tuple(nodes), tuple(edges))


def seen(graph):
    """Return all ids of a graph."""
    return {node.id for node in graph.nodes}


def vocabulary(graph, *others):
    """Return a label set of the graph's labels and others, floor and wall as structure."""
    names = {node.label for node in graph.nodes} | set(others)
    return LabelSet.from_names('test', names, structure=('floor', 'wall'))


EMPTY = SceneGraph()


def as_map(graph=EMPTY, label_set=None, dense=None, method='test'):
    """Return a map that holds nothing but a graph or points."""
    return SemanticMap(MapHeader(Provenance(method)), graph, dense, label_set)


def nodes_of(boxes, label_set):
    """Return nodes numbered from 1 of labels and corners; floor and wall are background."""
    return tuple(
        SceneNode(
            number,
            NodeKind.BACKGROUND if label in ('floor', 'wall') else NodeKind.OBJECT,
            (ScoredLabel(label, 1.0, label_set.id_of(label)),),
            box=AxisAlignedBox(low, high),
        )
        for number, (label, low, high) in enumerate(boxes, start=1)
    )


def ground_truth_of(graph, surface=None, **changes):
    """Return ground truth of a graph, all of it seen, and of a surface, by default of none."""
    if surface is None:
        none = np.zeros(0, np.int32)
        surface = LabelledCloud(np.zeros((0, 3), np.float32), none, none)
    values = {
        'dataset': 'test',
        'scene': 'room',
        'label_set': changes.get('label_set') or vocabulary(graph),
        'unseen': surface.select(np.zeros(len(surface), bool)),
        'camera_poses': (Pose.identity(),),
        'intrinsics': Intrinsics.from_hfov(64, 48, 1.5),
        'seen_instances': tuple(sorted(seen(graph))),
        'max_depth_m': 10.0,
        'points_per_m2': 400.0,
    }
    return GroundTruth(graph=graph, surface=surface, **{**values, **changes})


def content_of(graph):
    """Return a graph as plain values that can be compared."""
    return TypeAdapter(SceneGraph).dump_python(graph, warnings=False)
