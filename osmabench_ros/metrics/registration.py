"""Alignment of a map's points with true points: ICP from coarse to fine, through Open3D."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.errors import MetricError, needing
from osmabench_ros.geometry.pose import Pose, Similarity

# Inlier distances, coarse to fine; the first bounds how far off the initial guess may be.
DISTANCES_M = (1.0, 0.5, 0.2, 0.1, 0.05)

# Least share of map points with a true point near; below, the alignment is refused.
MIN_FITNESS = 0.3

# Below this share the alignment is doubtful.
GOOD_FITNESS = 0.6

# Least ratio of the constraint on a motion to that on the best constrained one.
MIN_OBSERVABILITY = 1e-3

_ITERATIONS = 60
_JUDGED_AT_M = 0.1
_LEAST_VOXEL_M = 0.02


@dataclass(frozen=True, eq=False)
class Registration:
    """What ICP found.

    Parameters
    ----------
    similarity : Similarity
        Takes map points to the ground truth; the scale is the one of the initial guess.
    fitness : float
        Fraction of map points with a true point within `inlier_distance_m`, in [0, 1].
    rmse_m : float
        Root mean square distance of those points to their true points.
    inlier_distance_m : float
        At which fitness and error are taken.
    observability : float
        Constraint that the surfaces put on the worst constrained motion, relative to the best
        one, in [0, 1]; near 0 the map may slide or turn along the surfaces.
    """

    similarity: Similarity
    fitness: float
    rmse_m: float
    inlier_distance_m: float
    observability: float

    @property
    def doubts(self) -> tuple[str, ...]:
        """Reasons to doubt the alignment, for people."""
        found = []
        if self.fitness < GOOD_FITNESS:
            found.append(
                f'only {self.fitness:.0%} of the map points lie within '
                f'{self.inlier_distance_m:g} m of a true point after ICP'
            )
        if self.observability < MIN_OBSERVABILITY:
            found.append('the surfaces leave a direction open, so ICP may have slid along them')
        return tuple(found)


def registered(
    points: NDArray[np.floating],
    true_points: NDArray[np.floating],
    true_normals: NDArray[np.floating] | None,
    initial: Similarity,
) -> Registration:
    """Align map points with true points by point-to-plane ICP, coarse to fine.

    Parameters
    ----------
    points : ndarray, shape (N, 3)
        Of the map, metres.
    true_points : ndarray, shape (M, 3)
        Metres.
    true_normals : ndarray, shape (M, 3), optional
        Unit normals; estimated if there are none.
    initial : Similarity
        First guess, e.g. from TF or from a trajectory.

    Raises
    ------
    MetricError
        If there are too few points, or the alignment fits less than `MIN_FITNESS` of them.
    MissingDependencyError
        If Open3D is not installed.
    """
    with needing('alignment by ICP needs open3d', extra('geometry')):
        import open3d as o3d
    if min(len(points), len(true_points)) < 10:
        raise MetricError(
            f'ICP needs points: the map has {len(points)}, the truth {len(true_points)}; '
            'align by --align known or trajectory'
        )
    target = _cloud(o3d, true_points, true_normals)
    source = _cloud(o3d, initial.transform(points), None)
    icp = o3d.pipelines.registration
    found = np.eye(4)
    for distance_m in DISTANCES_M:
        voxel_m = max(distance_m / 4, _LEAST_VOXEL_M)
        found = icp.registration_icp(
            source.voxel_down_sample(voxel_m),
            target,
            distance_m,
            found,
            icp.TransformationEstimationPointToPlane(),
            icp.ICPConvergenceCriteria(max_iteration=_ITERATIONS),
        ).transformation
    even = source.voxel_down_sample(_LEAST_VOXEL_M)
    result = icp.evaluate_registration(even, target, _JUDGED_AT_M, found)
    if result.fitness < MIN_FITNESS:
        raise MetricError(
            f'ICP brings only {result.fitness:.0%} of the map within {_JUDGED_AT_M:g} m of the '
            f'truth, less than {MIN_FITNESS:.0%}; give a first guess with --transform, or align '
            'by --align trajectory. Is it the same place?'
        )
    pairs = np.asarray(result.correspondence_set)
    observability = _measure_observability(
        np.asarray(target.points)[pairs[:, 1]], np.asarray(target.normals)[pairs[:, 1]]
    )
    matrix = np.array(found)
    left, _, right = np.linalg.svd(matrix[:3, :3])
    step = Similarity(Pose(left @ right, matrix[:3, 3]))
    return Registration(
        step @ initial,
        float(result.fitness),
        float(result.inlier_rmse),
        _JUDGED_AT_M,
        observability,
    )


def _measure_observability(points: NDArray[np.float64], normals: NDArray[np.float64]) -> float:
    """Return the smallest over the largest eigenvalue of the constraints on a motion.

    Rows (p x n, n) of a point p, in units of the cloud's extent, with normal n (Gelfand et al.,
    Geometrically Stable Sampling for the ICP Algorithm, 3DIM 2003).
    """
    centred = points - points.mean(axis=0)
    extent = np.linalg.norm(centred, axis=1).mean()
    rows = np.hstack([np.cross(centred / max(extent, 1e-9), normals), normals])
    values = np.linalg.eigvalsh(rows.T @ rows)
    return float(max(values[0], 0.0) / values[-1])


def _cloud(o3d: Any, points: NDArray[np.floating], normals: NDArray[np.floating] | None) -> Any:
    cloud = o3d.geometry.PointCloud(o3d.utility.Vector3dVector(np.asarray(points, np.float64)))
    if normals is None:
        cloud.estimate_normals(o3d.geometry.KDTreeSearchParamHybrid(0.2, 30))
    else:
        cloud.normals = o3d.utility.Vector3dVector(np.asarray(normals, np.float64))
    return cloud
