"""Which surface points a camera could see, by casting rays at the meshes."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import needing
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.semantics.cloud import LabelledCloud, joined
from osmabench_ros.semantics.labels import NO_INSTANCE


def sample_surface(scene: Scene, points_per_m2: float, seed: int) -> LabelledCloud:
    """Draw labelled world points, equally likely on equal areas, with their triangles' normals.

    The number of points on an object is its area times the density, rounded up or down at random,
    so that it is right on average for small objects too. Each object has its own random stream:
    one more object leaves the points of the others as they are.
    """
    rngs = [np.random.default_rng([seed, item.instance_id]) for item in scene.objects]
    drawn = zip(scene.objects, rngs, strict=True)
    return joined([label_points(x, *sample_object(x, points_per_m2, rng)) for x, rng in drawn])


def label_points(
    item: SceneObject, points: NDArray[np.float32], normals: NDArray[np.float32]
) -> LabelledCloud:
    """Return world points and normals (N, 3) of an object with its class and instance."""
    labels = np.full(len(points), item.class_id, np.int32)
    return LabelledCloud(points, labels, np.full(len(points), item.instance_id, np.int32), normals)


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
    shares = np.cumsum(doubled_areas) / doubled_areas.sum()
    faces = np.searchsorted(shares, rng.random(count), side='right')
    faces = np.minimum(faces, len(corners) - 1)
    # The square root makes the density even (Osada et al., Shape distributions, 2002, eq. 1).
    root = np.sqrt(rng.random((count, 1)))
    along = rng.random((count, 1))
    chosen = corners[faces]
    points = (1 - root) * chosen[:, 0] + root * (1 - along) * chosen[:, 1]
    points += root * along * chosen[:, 2]
    unit = normals[faces] / doubled_areas[faces, None]
    return points.astype(np.float32), unit.astype(np.float32)


# A ray may end this much before its point: far above rounding to float32, so that surfaces that
# touch, such as a rug and its floor, do not hide each other.
TOLERANCE_M = 0.005


class RayCaster:
    """Embree on the meshes of a scene; MissingDependencyError if Open3D is not installed."""

    def __init__(self, scene: Scene) -> None:
        with needing(
            'exact ground truth needs Open3D',
            f'{extra("geometry")}; apt-get install libusb-1.0-0 libgomp1',
        ):
            import open3d as o3d
        self._o3d: Any = o3d
        self._scene = o3d.t.geometry.RaycastingScene()
        self.instances = np.array([item.instance_id for item in scene.objects], np.int32)
        for item in scene.objects:
            self._scene.add_triangles(
                self._o3d.core.Tensor(np.ascontiguousarray(item.world_vertices)),
                self._o3d.core.Tensor(item.world_faces.astype(np.uint32)),
            )

    def distances(
        self, origins: NDArray[np.float32], directions: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """Return the first hits (N,) as multiples of the directions, inf where there is none."""
        return np.asarray(self._cast(origins, directions)['t_hit'].numpy())

    def find_first_hits(
        self, origins: NDArray[np.float32], directions: NDArray[np.float32]
    ) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
        """Return `distances` and the instances hit, both (N,); NO_INSTANCE where there is none."""
        hits = self._cast(origins, directions)
        distances = np.asarray(hits['t_hit'].numpy())
        instances = np.append(self.instances, np.int32(NO_INSTANCE))
        index = np.where(np.isfinite(distances), hits['geometry_ids'].numpy(), len(instances) - 1)
        return distances, instances[index.astype(np.int64)]

    def _cast(self, origins: NDArray[np.float32], directions: NDArray[np.float32]) -> Any:
        rays = np.concatenate([origins, directions], axis=1).astype(np.float32)
        return self._scene.cast_rays(self._o3d.core.Tensor(rays))

    def find_enclosed(self, points: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Return which points (N, 3) lie inside the surfaces, which should be closed."""
        inside = self._scene.compute_occupancy(self._o3d.core.Tensor(points), nsamples=3)
        return np.asarray(inside.numpy() > 0)


def find_visible_points(
    scene: Scene,
    cloud: LabelledCloud,
    camera_poses: Sequence[Pose],
    intrinsics: Intrinsics,
    max_depth_m: float,
    *,
    max_extent_m: float = np.inf,
) -> NDArray[np.bool_]:
    """Return which points at least one camera sees.

    A point is seen if it projects into the image at a depth up to `max_depth_m`, a pixel there
    covers at most `max_extent_m` of the surface, from either side, and the ray from the
    camera meets nothing before it. Nothing of a rendered image is used.

    Parameters
    ----------
    scene : Scene
        What blocks rays.
    cloud : LabelledCloud
        N points on its surfaces.
    camera_poses : sequence of Pose
        Optical frames in the world.
    intrinsics : Intrinsics
        Camera.
    max_depth_m : float
        Farthest depth along the optical axis.
    max_extent_m : float
        Longest stretch of the surface that a pixel may cover: distance / (f cos(incidence)).
        A surface farther away or more oblique is a sliver in the image that no map can resolve.
        A finite bound needs a cloud with normals.

    Returns
    -------
    ndarray of bool, shape (N,)
        True where seen.
    """
    caster = RayCaster(scene)
    seen = np.zeros(len(cloud), bool)
    for pose in camera_poses:
        # What another camera saw already needs no ray.
        candidates = np.flatnonzero(~seen)
        inside = _find_in_view(cloud.points[candidates], pose, intrinsics, max_depth_m)
        candidates = candidates[inside]
        if not len(candidates):
            continue
        origin = pose.translation.astype(np.float32)
        directions = cloud.points[candidates] - origin
        distance = np.linalg.norm(directions, axis=1)
        if np.isfinite(max_extent_m):
            extent_m = _compute_pixel_extent(cloud, candidates, directions, intrinsics)
            resolved = extent_m <= max_extent_m
            candidates = candidates[resolved]
            directions = directions[resolved]
            distance = distance[resolved]
        reach = caster.distances(np.broadcast_to(origin, directions.shape), directions)
        seen[candidates] = reach * distance > distance - TOLERANCE_M
    return seen


def _compute_pixel_extent(
    cloud: LabelledCloud,
    index: NDArray[np.int64],
    directions: NDArray[np.float32],
    intrinsics: Intrinsics,
) -> NDArray[np.floating]:
    """Return the length of surface around each point that one pixel covers, metres."""
    if cloud.normals is None:
        raise ValueError('the extent of a pixel needs a cloud with normals')
    # distance / cos(incidence) = distance^2 / |direction . normal|
    facing = np.abs(np.einsum('ij,ij->i', directions, cloud.normals[index]))
    squared = np.einsum('ij,ij->i', directions, directions)
    focal = min(intrinsics.fx, intrinsics.fy)
    return np.asarray(squared / np.maximum(facing, 1e-9) / focal)


def _find_in_view(
    points: NDArray[np.float32], pose: Pose, intrinsics: Intrinsics, max_depth_m: float
) -> NDArray[np.int64]:
    """Return the indices of the points up to a depth that project into the image.

    Centres of pixels have whole numbers.
    """
    camera = pose.inverse()
    rotation = camera.rotation.astype(np.float32)
    shift = camera.translation.astype(np.float32)
    # Depth first: this test already drops half of the points.
    z = points @ rotation[2] + shift[2]
    index = np.flatnonzero((z > 0) & (z <= max_depth_m))
    z = z[index]
    for row, focal, center, size in (
        (0, intrinsics.fx, intrinsics.cx, intrinsics.width),
        (1, intrinsics.fy, intrinsics.cy, intrinsics.height),
    ):
        pixel = (points[index] @ rotation[row] + shift[row]) * np.float32(focal) / z + center
        inside = (pixel >= -0.5) & (pixel < size - 0.5)
        index = index[inside]
        z = z[inside]
    return index
