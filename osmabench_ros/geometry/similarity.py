"""Similarity transformations, Sim(3), and the one that fits points best."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose

_STRAIGHT = 1e-9
"""Second singular value over the first, below which points lie on a line."""


@dataclass(frozen=True, eq=False)
class Similarity:
    """A rigid transformation after a scaling by a positive factor: p -> R (s p) + t, metres."""

    pose: Pose
    scale: float = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.scale) and self.scale > 0):
            raise ValueError(f'a scale must be a positive number, not {self.scale}')

    @classmethod
    def identity(cls) -> Similarity:
        """Return the transformation that changes nothing."""
        return cls(Pose.identity())

    def transform(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the images of points of shape (..., 3)."""
        return self.pose.transform(np.asarray(points, np.float64) * self.scale)

    def __matmul__(self, other: Similarity) -> Similarity:
        """Chain: the right one is applied first."""
        translation = self.transform(other.pose.translation)
        rotation = self.pose.rotation @ other.pose.rotation
        return Similarity(Pose(rotation, translation), self.scale * other.scale)

    @property
    def distance_m(self) -> float:
        """Length of the translation."""
        return float(np.linalg.norm(self.pose.translation))

    @property
    def angle_deg(self) -> float:
        """Angle of the rotation in degrees, in [0, 180]."""
        # Rounding may take the trace of a rotation slightly out of [-1, 3].
        cosine = np.clip((np.trace(self.pose.rotation) - 1) / 2, -1, 1)
        return float(np.degrees(np.arccos(cosine)))


def fitted_similarity(
    source: NDArray[np.floating], target: NDArray[np.floating], *, with_scale: bool = False
) -> Similarity:
    r"""Return the transformation of source points that comes nearest to the target points.

    Least squares in closed form: with the covariance :math:`U D V^T` of target and source,
    :math:`R = U S V^T`, :math:`s = tr(D S) / \sigma^2` and :math:`t = \mu_y - s R \mu_x`
    (Umeyama, Least-squares estimation of transformation parameters between two point patterns,
    IEEE PAMI 13 (4), 1991, equations 40 to 43).

    Parameters
    ----------
    source, target : ndarray, shape (N, 3)
        Corresponding points in metres.
    with_scale : bool
        Whether the scale is fitted too; else it is 1.

    Raises
    ------
    ValueError
        If the shapes differ, there are fewer than three points, or they lie on a line, which
        leaves the rotation open.
    """
    if source.shape != target.shape or source.ndim != 2 or source.shape[1] != 3:
        raise ValueError(f'points of shape {source.shape} do not match {target.shape}')
    if len(source) < 3:
        raise ValueError(f'{len(source)} points; an alignment needs at least three')
    mean_x, mean_y = source.mean(axis=0), target.mean(axis=0)
    x, y = source - mean_x, target - mean_y
    u, d, vt = np.linalg.svd(y.T @ x / len(x))
    if d[1] <= _STRAIGHT * max(d[0], np.finfo(np.float64).tiny):
        raise ValueError('the points lie on a line, so their alignment is not unique')
    signs = np.array([1.0, 1.0, np.sign(np.linalg.det(u) * np.linalg.det(vt))])
    rotation = u * signs @ vt
    scale = float((d * signs).sum() / (x**2).sum(axis=1).mean()) if with_scale else 1.0
    return Similarity(Pose(rotation, mean_y - scale * rotation @ mean_x), scale)
