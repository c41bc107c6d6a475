"""A small map with every part, for the tests of this room."""

from __future__ import annotations

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
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
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import (
    NodeKind,
    SceneEdge,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)

LABELS = LabelSet.from_names('small', ['cup', 'table', 'wall'], structure=['wall'])


def sample_map(points: int = 6) -> SemanticMap:
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
        membership=Membership(
            np.array([4, 7], np.int32), np.array([0, 3, 5]), np.array([0, 1, 2, 2, 3])
        ),
    )
    provenance = Provenance(
        'sample', '1.2', {'clip': 'ViT-H-14'}, 'apartment', 'baseline', 12, 'ab' * 32
    )
    return SemanticMap(
        MapHeader(provenance, stamp_ns=123456789, complete=False),
        SceneGraph(nodes, edges),
        dense,
        LABELS,
        {'clip': FeatureSpace('clip', vectors, 'ViT-H-14', 'laion2b', True, True, ('a {}',))},
        {'cfg': {'voxel_m': 0.02, 'tags': ['a', None]}},
        StampedTrajectory.from_poses(
            [(5, Pose.identity()), (123456789, Pose.from_yaw(0.25, (1.0, 0.5, 0.0)))], 'world'
        ),
    )
