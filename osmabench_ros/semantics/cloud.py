"""Points with classes and instances, of the ground truth or of a map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class LabelledCloud:
    """Points in the world, z-up metres.

    Parameters
    ----------
    points : ndarray of float32, shape (N, 3)
        Metres.
    labels : ndarray of int32, shape (N,)
        Class id, UNLABELLED where there is none.
    instances : ndarray of int32, shape (N,)
        Instance id, 0 where there is none.
    normals : ndarray of float32, shape (N, 3), optional
        Unit normals.
    """

    points: NDArray[np.float32]
    labels: NDArray[np.int32]
    instances: NDArray[np.int32]
    normals: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        n = len(self.points)
        if (
            self.points.shape != (n, 3)
            or self.labels.shape != (n,)
            or self.instances.shape != (n,)
        ):
            raise ValueError(
                f'a labelled cloud needs (N, 3), (N,), (N,), not {self.points.shape}, '
                f'{self.labels.shape}, {self.instances.shape}'
            )

    def __len__(self) -> int:
        return len(self.points)

    def select(self, mask: NDArray[np.bool_] | NDArray[np.integer]) -> LabelledCloud:
        """Return the points that a mask or index array picks."""
        normals = None if self.normals is None else self.normals[mask]
        return LabelledCloud(self.points[mask], self.labels[mask], self.instances[mask], normals)


def joined(clouds: Sequence[LabelledCloud]) -> LabelledCloud:
    """Return the points of several clouds; with normals if all have them."""
    normals = [cloud.normals for cloud in clouds if cloud.normals is not None]
    return LabelledCloud(
        np.concatenate([cloud.points for cloud in clouds]),
        np.concatenate([cloud.labels for cloud in clouds]),
        np.concatenate([cloud.instances for cloud in clouds]),
        np.concatenate(normals) if len(normals) == len(clouds) else None,
    )
