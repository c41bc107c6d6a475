"""Points spread uniformly over the meshes of a scene."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.semantics.cloud import LabelledCloud


def sample_surface(scene: Scene, points_per_m2: float, seed: int) -> LabelledCloud:
    """Draw labelled world points, equally likely on equal areas, with their triangles' normals.

    An object's number is its area times the density, rounded at random so that small objects are
    not lost on average. Each has a stream of its own, so that adding one leaves the others as they
    are.
    """
    parts = [
        sample_object(item, points_per_m2, np.random.default_rng([seed, item.instance_id]))
        for item in scene.objects
    ]
    points, normals = (np.concatenate(column) for column in zip(*parts, strict=True))
    counts = [len(part[0]) for part in parts]
    labels = np.repeat([item.class_id for item in scene.objects], counts)
    instances = np.repeat([item.instance_id for item in scene.objects], counts)
    return LabelledCloud(points, labels.astype(np.int32), instances.astype(np.int32), normals)


def sample_object(
    item: SceneObject, points_per_m2: float, rng: np.random.Generator
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Draw points on one object; returns world points and normals, both (N, 3)."""
    corners = item.world_vertices.astype(np.float64)[item.world_faces]
    edges = corners[:, 1:] - corners[:, :1]
    normals = np.cross(edges[:, 0], edges[:, 1])
    doubled_areas = np.linalg.norm(normals, axis=1)
    total = doubled_areas.sum() / 2
    if total <= 0:
        return np.zeros((0, 3), np.float32), np.zeros((0, 3), np.float32)
    count = int(np.floor(total * points_per_m2 + rng.random()))
    faces = np.searchsorted(
        np.cumsum(doubled_areas) / doubled_areas.sum(), rng.random(count), side='right'
    )
    faces = np.minimum(faces, len(corners) - 1)
    # The square root makes the density even (Osada et al., Shape distributions, 2002, eq. 1).
    root, along = np.sqrt(rng.random((count, 1))), rng.random((count, 1))
    chosen = corners[faces]
    points = (1 - root) * chosen[:, 0] + root * (1 - along) * chosen[:, 1]
    points += root * along * chosen[:, 2]
    unit = normals[faces] / doubled_areas[faces, None]
    return points.astype(np.float32), unit.astype(np.float32)
