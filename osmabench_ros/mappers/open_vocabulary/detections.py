"""What networks find in one image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Detections:
    """Masks of one image with what is known of each.

    Parameters
    ----------
    masks : ndarray of bool, shape (K, height, width)
        They may overlap.
    features : ndarray of float32, shape (K, D)
        One a mask, of any length.
    confidences : ndarray of float32, shape (K,)
        In [0, 1].
    names : tuple of str
        K names, '' where the network gives none.
    """

    masks: NDArray[np.bool_]
    features: NDArray[np.float32]
    confidences: NDArray[np.float32]
    names: tuple[str, ...]

    def __post_init__(self) -> None:
        count = len(self.masks)
        if not count == len(self.features) == len(self.confidences) == len(self.names):
            raise ValueError(
                f'{count} masks have {len(self.features)} features, {len(self.confidences)} '
                f'confidences and {len(self.names)} names'
            )
