"""Geometry of a map against the true surface."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MetricError

_BITS = 21
_HALF = 1 << (_BITS - 1)

# Radius of the disc that a map point represents, along the true surface.
#
# It is the same for every map: discs that grew with the spacing of a map would close its holes as
# it gets sparser. It closes the gaps of a lattice of 5.6 cm.
POINT_RADIUS_M = 0.04


def find_occupied_voxels(points: NDArray[np.floating], edge_m: float) -> NDArray[np.int64]:
    """Return the keys of the cells that hold a point, ascending and without repeats.

    Cells are aligned with the origin of the world, so keys of several clouds can be compared.

    Parameters
    ----------
    points : ndarray, shape (N, 3)
        Finite coordinates in metres.
    edge_m : float
        Edge of a cell, > 0.

    Raises
    ------
    MetricError
        If a point is more than 2**20 cells away from the origin.
    """
    return np.unique(compute_voxel_keys(points, edge_m))


def compute_voxel_keys(points: NDArray[np.floating], edge_m: float) -> NDArray[np.int64]:
    """Return the key of each point's cell, shape (N,); see `find_occupied_voxels`."""
    if not edge_m > 0:
        raise MetricError(f'a voxel needs an edge > 0, not {edge_m} m')
    keys = np.zeros(len(points), np.int64)
    for axis in range(3):
        cells = np.floor(points[:, axis].astype(np.float64) / edge_m).astype(np.int64) + _HALF
        if len(cells) and not (cells.min() >= 0 and cells.max() < 1 << _BITS):
            raise MetricError(
                f'points reach beyond {_HALF} voxels of {edge_m} m around the origin; '
                'take larger voxels or check the units of the map'
            )
        keys = (keys << _BITS) | cells
    return keys


@dataclass(frozen=True)
class GeometryScores:
    r"""Distances in both directions; NaN where a direction has no points.

    With d(p) the distance of a predicted point to the true surface and d(q) the distance of a
    true point to the prediction:

    Parameters
    ----------
    accuracy_m : float
        Mean of d(p) in metres, lower is better, >= 0.
    completeness_m : float
        Mean of d(q) in metres, lower is better, >= 0.
    chamfer_m : float
        (accuracy + completeness) / 2 in metres, lower is better, >= 0.
    precision, recall : tuple of float
        Fraction of d(p), d(q) <= t for each threshold, in [0, 1], higher is better. Recall is also
        called coverage or completion ratio.
    f_score : tuple of float
        Harmonic mean of the two, in [0, 1], higher is better (Knapitsch et al., Tanks and
        Temples, 2017).
    """

    accuracy_m: float
    completeness_m: float
    chamfer_m: float
    precision: tuple[float, ...]
    recall: tuple[float, ...]
    f_score: tuple[float, ...]


def score_geometry(
    map_to_truth_m: NDArray[np.floating],
    truth_to_map_m: NDArray[np.floating],
    thresholds_m: Sequence[float],
) -> GeometryScores:
    """Score the distances between a map and the truth.

    Parameters
    ----------
    map_to_truth_m : ndarray, shape (N,)
        Distance of every predicted point to the true surface.
    truth_to_map_m : ndarray, shape (M,)
        Distance of every true point to the prediction, +inf if that is empty.
    thresholds_m : sequence of float
        Thresholds of precision, recall and F-score, each inclusive.

    Notes
    -----
    An empty map has recall and F-score 0; its accuracy, completeness and chamfer distance do not
    exist.
    """
    _check(map_to_truth_m, 'map to truth')
    _check(truth_to_map_m, 'truth to map')
    precision = tuple(share_within(map_to_truth_m, t) for t in thresholds_m)
    recall = tuple(share_within(truth_to_map_m, t) for t in thresholds_m)
    accuracy = mean_distance(map_to_truth_m)
    completeness = mean_distance(truth_to_map_m)
    return GeometryScores(
        accuracy,
        completeness,
        (accuracy + completeness) / 2,
        precision,
        recall,
        tuple(harmonic_mean(p, r) for p, r in zip(precision, recall, strict=True)),
    )


def mean_distance(distances_m: NDArray[np.floating]) -> float:
    """Return the mean in float64, NaN without finite distances."""
    mean = float(distances_m.mean(dtype=np.float64)) if len(distances_m) else float('nan')
    return mean if np.isfinite(mean) else float('nan')


def share_within(distances_m: NDArray[np.floating], threshold_m: float) -> float:
    """Return the share of distances up to a threshold, in [0, 1]; NaN without distances."""
    if not len(distances_m):
        return float('nan')
    return int(np.count_nonzero(distances_m <= threshold_m)) / len(distances_m)


def precision_by_place(
    points: NDArray[np.floating],
    distances_m: NDArray[np.floating],
    threshold_m: float,
    edge_m: float = POINT_RADIUS_M,
) -> float:
    """Return the mean over occupied cells of the share of their points up to a threshold.

    Copies of points do not change it, unlike `share_within`; NaN without points.
    """
    if not len(points):
        return float('nan')
    _, places = np.unique(compute_voxel_keys(points, edge_m), return_inverse=True)
    near = np.bincount(places, distances_m <= threshold_m)
    return float((near / np.bincount(places)).mean())


def harmonic_mean(precision: float, recall: float) -> float:
    """Return the F-score, 0 if either is 0 or precision does not exist because nothing is there.

    In [0, 1], higher is better; NaN only if there is no truth to recall.
    """
    if np.isnan(recall):
        return float('nan')
    total = precision + recall
    return 2 * precision * recall / total if total > 0 else 0.0


def measure_volume(points: NDArray[np.floating], edge_m: float) -> float:
    """Return the volume of the cells that hold a point, cubic metres.

    Of points far from the truth it is the hallucinated volume, of true points far from the map
    the missed one; lower is better, >= 0. Cells make it independent of the density.
    """
    return len(find_occupied_voxels(points, edge_m)) * edge_m**3


def find_surfel_distances(
    points: NDArray[np.floating],
    centers: NDArray[np.floating],
    normals: NDArray[np.floating],
    radius_m: float,
) -> NDArray[np.float32]:
    r"""Return the distance of points to the discs that sampled surface points represent.

    With v from centre to point, n the unit normal and a = |v . n|, t = |v - (v . n) n|:
    d = a inside the disc (t <= r), else hypot(a, t - r). The distance to the sampled points
    themselves would add about half their spacing to a perfect map.

    Parameters
    ----------
    points, centers, normals : ndarray, shape (N, 3)
        Each point with the nearest sampled point and its unit normal.
    radius_m : float
        Radius of a disc; 1 / sqrt(points per square metre) closes the gaps between them.

    Returns
    -------
    ndarray of float32, shape (N,)
        Metres, never more than the distance to the centre.
    """
    away = points.astype(np.float32, copy=False) - centers
    height = np.einsum('ij,ij->i', away, normals)
    sideways = np.sqrt(np.maximum(np.einsum('ij,ij->i', away, away) - height**2, 0))
    return np.asarray(np.hypot(height, np.maximum(sideways - radius_m, 0)), np.float32)


def normal_consistency(
    normals: NDArray[np.floating], other: NDArray[np.floating]
) -> tuple[float, int]:
    """Return the mean absolute cosine between matched unit normals, and the number of pairs.

    Parameters
    ----------
    normals, other : ndarray, shape (N, 3)
        Normals of matched points. Pairs with a NaN or a zero vector are left out.

    Returns
    -------
    value : float
        In [0, 1], higher is better; NaN without pairs. As in Mescheder et al., Occupancy
        Networks, 2019, with the orientation left out, since maps do not agree on it.
    n : int
        Pairs that were compared.
    """
    if normals.shape != other.shape:
        raise MetricError(f'normals {normals.shape} do not match {other.shape}')
    with np.errstate(invalid='ignore', divide='ignore'):
        lengths = np.linalg.norm(normals, axis=1) * np.linalg.norm(other, axis=1)
        cosine = np.abs((normals * other).sum(axis=1)) / lengths
    known = cosine[np.isfinite(cosine)].clip(0, 1)
    return mean_distance(known), len(known)


def estimate_normals(
    points: NDArray[np.floating], rows: NDArray[np.integer], neighbours: int = 12
) -> NDArray[np.float64]:
    """Return unit normals of some points of a cloud, from the plane through their neighbours.

    Parameters
    ----------
    points : ndarray, shape (N, 3)
        The cloud in metres.
    rows : ndarray of int, shape (K,)
        Points that want a normal.
    neighbours : int
        Points a plane is fitted to.

    Returns
    -------
    ndarray of float64, shape (K, 3)
        NaN where the cloud has fewer than three different points.
    """
    from scipy.spatial import cKDTree

    wanted = points[rows]
    # Twelve copies of one point span no plane.
    points = np.unique(points, axis=0)
    if len(points) < 3:
        return np.full((len(rows), 3), np.nan)
    tree = cKDTree(points, balanced_tree=False, compact_nodes=False)
    _, near = tree.query(wanted, k=min(neighbours, len(points)), workers=-1)
    centred = points[near] - points[near].mean(axis=1, keepdims=True)
    _, vectors = np.linalg.eigh(np.einsum('nki,nkj->nij', centred, centred, dtype=np.float64))
    return np.asarray(vectors[:, :, 0])


def _check(distances_m: NDArray[np.floating], what: str) -> None:
    if distances_m.ndim != 1 or np.isnan(distances_m).any() or (distances_m < 0).any():
        raise MetricError(f'distances from {what} must be one row of numbers >= 0')
