"""Maps of a plain room that know it in several ways, its ground truth, and a map of every part."""

import json
from dataclasses import replace

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.point_files import write_ply
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    Membership,
    Provenance,
    SemanticMap,
)
from osmabench_ros.maps.storage import write_map
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)
from osmabench_ros.sequences.ground_truth import write_ground_truth
from support.world.graphs import ground_truth_of, nodes_of

NAMES = ('chair', 'floor', 'table')
LABELS = LabelSet.from_names('room', NAMES, structure=['floor'])
CORNERS = {'chair': (3.0, 3.0, 0.5), 'floor': (0.0, 0.0, 0.0), 'table': (1.0, 1.0, 0.8)}
CAPTIONS = {
    'chair': 'a wooden chair to sit on',
    'floor': 'the bare floor of a room',
    'table': 'a dining table',
}


def cloud():
    """Return 10 x 10 points a surface, 1 m2 each."""
    cells = np.stack(np.meshgrid(np.arange(10), np.arange(10)), axis=-1).reshape(-1, 2) / 10
    flat = np.column_stack([cells, np.zeros(100)])
    points = np.concatenate([flat + CORNERS[name] for name in NAMES])
    ids = np.repeat(np.arange(1, 4, dtype=np.int32), 100)
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (300, 1))
    return LabelledCloud(points.astype(np.float32), ids, ids, normals)


def nodes():
    """Return the surfaces as nodes."""
    return nodes_of(
        ((name, CORNERS[name], np.add(CORNERS[name], [1, 1, 0.1])) for name in NAMES), LABELS
    )


def ground_truth():
    """Return the ground truth of the room, all of it seen."""
    return ground_truth_of(
        SceneGraph(nodes()), cloud(), label_set=LABELS, fused=cloud(), points_per_m2=100.0
    )


def labelled_map():
    """Return the map of a faultless method."""
    seen = cloud()
    dense = DenseMap(seen.points, labels=seen.labels, instances=seen.instances)
    header = MapHeader(Provenance('faultless', condition='baseline'))
    return SemanticMap(header, SceneGraph(nodes()), dense, LABELS)


def featured_map(**space):
    """Return a map of axis-aligned features, one axis a class: chair, floor, table."""
    seen = cloud()
    named = {'model': 'ToyCLIP', 'pretrained': 'toys', **space}
    dense = DenseMap(
        seen.points, feature_rows=(seen.labels - 1).astype(np.int32), feature_space='clip'
    )
    return SemanticMap(
        MapHeader(Provenance('open')),
        dense=dense,
        feature_spaces={'clip': FeatureSpace('clip', np.eye(3, dtype=np.float32), **named)},
    )


def captioned_map():
    """Return a map that knows its objects only by sentences."""
    described = tuple(
        replace(node, labels=(), captions=(CAPTIONS[name],))
        for node, name in zip(nodes(), NAMES, strict=True)
    )
    seen = cloud()
    dense = DenseMap(seen.points, instances=seen.instances)
    return SemanticMap(MapHeader(Provenance('teller')), SceneGraph(described), dense)


def write_text_features(path, texts):
    """Write precomputed text features as the configuration names them."""
    np.save(path, np.array(list(texts.values()), np.float32))
    path.with_suffix('.json').write_text(json.dumps(list(texts)))
    return path


def write_inputs(directory, semantic_map):
    """Write a map and the ground truth; return both folders."""
    write_map(semantic_map, directory / 'map')
    write_ground_truth(ground_truth(), directory / 'ground_truth')
    return directory / 'map', directory / 'ground_truth'


def sample_map(points=6):
    """Return a map of a cup on a table in a kitchen, with every part there is."""
    random = np.random.default_rng(3)
    box = AxisAlignedBox([0.0, 0.0, 0.0], [1.0, 2.0, 0.8])
    nodes = (
        SceneNode(
            4,
            labels=(ScoredLabel('table', 0.75, 2), ScoredLabel('desk')),
            captions=('a wooden table, naïve',),
            attributes={'color': 'brown', 'height_m': 0.8, 'movable': True},
            box=box,
            oriented_box=OrientedBox(Pose.from_yaw(0.3, box.center), box.size),
            parent=9,
            source_id='uuid-4',
            feature_row=0,
            feature_space='clip',
            observations=12,
        ),
        SceneNode(7, labels=(ScoredLabel('cup', class_id=1),), parent=9),
        SceneNode(9, NodeKind.ROOM, labels=(ScoredLabel('kitchen'),)),
    )
    edges = (SceneEdge(7, 4, 'on', 'stands on', 0.5), SceneEdge(4, 7, 'under'))
    vectors = random.normal(size=(2, 5)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    dense = DenseMap(
        points=random.normal(size=(points, 3)).astype(np.float32),
        colors=random.integers(0, 256, (points, 3)).astype(np.uint8),
        labels=np.resize(np.array([1, 2, UNLABELLED], np.int32), points),
        instances=np.resize(np.array([7, 4, 0], np.int32), points),
        scores=np.resize(np.array([0.5, 1.0, np.nan], np.float32), points),
        feature_rows=np.resize(np.array([0, 1, -1], np.int32), points),
        feature_space='clip',
        valid=np.resize(np.array([True, True, False]), points),
        membership=membership_of({4: [0, 1, 2], 7: [2, 3]}),
    )
    provenance = Provenance(
        'sample', '1.2', {'clip': 'ViT-H-14'}, 'apartment', 'baseline', 12, 'ab' * 32
    )
    return SemanticMap(
        MapHeader(provenance, stamp_ns=123456789, complete=False),
        SceneGraph(nodes, edges),
        dense,
        LabelSet.from_names('small', ['cup', 'table', 'wall'], structure=['wall']),
        {'clip': FeatureSpace('clip', vectors, 'ViT-H-14', 'laion2b', True, True, ('a {}',))},
        {'cfg': {'voxel_m': 0.02, 'tags': ['a', None]}},
        StampedTrajectory.from_poses(
            [(5, Pose.identity()), (123456789, Pose.from_yaw(0.25, (1.0, 0.5, 0.0)))], 'world'
        ),
    )


def membership_of(rows):
    """Return the membership of points in nodes, from the rows of the points of each node."""
    offsets = np.cumsum([0, *map(len, rows.values())])
    indices = np.concatenate(list(rows.values())).astype(np.int64)
    return Membership(np.array(list(rows), np.int32), offsets, indices)


def write_scan(path, points, **more):
    with path.open('wb') as stream:
        write_ply(stream, {**dict(zip('xyz', points.T, strict=True)), **more})
    return path
