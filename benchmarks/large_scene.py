"""A scene of any size: rooms of flat surfaces, sampled as truth and as a noisy map."""

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth

EXTENT_M = np.array([24.0, 20.0, 3.0], np.float32)
SPACING_M = np.array([2.4, 2.5, 1.5], np.float32)
AREA_M2 = 3200.0
NOISE_M = 0.01


def surface(n: int, classes: int, seed: int) -> LabelledCloud:
    """Return n points on parallel walls and floors with class patches of about a metre."""
    rng = np.random.default_rng(seed)
    points = rng.random((n, 3), np.float32) * EXTENT_M
    axis = rng.integers(0, 3, n)
    normals = np.zeros((n, 3), np.float32)
    for k in range(3):
        rows = axis == k
        points[rows, k] = np.floor(points[rows, k] / SPACING_M[k]) * SPACING_M[k]
        normals[rows, k] = 1.0
    patches = np.floor(points[:, 0] / 1.7) + 7 * np.floor(points[:, 1] / 1.3)
    labels = (patches.astype(np.int32) % classes + 1).astype(np.int32)
    return LabelledCloud(points, labels, labels, normals)


def ground_truth(n: int, classes: int) -> GroundTruth:
    """Return a truth of n surface points and as many depth-fused ones."""
    cloud = surface(n, classes, 0)
    labels = LabelSet.from_names('large', [f'class {i:03}' for i in range(classes)])
    camera = Intrinsics.from_hfov(640, 480, 1.5)
    return GroundTruth(
        dataset='benchmark',
        scene='large',
        label_set=labels,
        graph=SceneGraph(),
        surface=cloud,
        unseen=cloud.select(np.zeros(0, np.int64)),
        camera_poses=(Pose.identity(),),
        intrinsics=camera,
        seen_instances=(),
        fused=surface(n, classes, 1),
        max_depth_m=10.0,
        points_per_m2=n / AREA_M2,
    )


def semantic_map(n: int, truth: GroundTruth) -> SemanticMap:
    """Return a map of n points with depth noise."""
    cloud = surface(n, len(truth.label_set.classes), 2)
    noise: NDArray[np.float64] = np.random.default_rng(3).normal(0, NOISE_M, (n, 3))
    points = (cloud.points + noise).astype(np.float32)
    dense = DenseMap(points, labels=cloud.labels, instances=cloud.instances)
    return SemanticMap(MapHeader(Provenance('benchmark')), SceneGraph(), dense, truth.label_set)
