"""Conversion between encoded images and linear light (IEC 61966-2-1)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_CODE = np.arange(256) / 255.0

LINEAR_OF_CODE: NDArray[np.float32] = np.where(
    _CODE <= 0.04045, _CODE / 12.92, ((_CODE + 0.055) / 1.055) ** 2.4
).astype(np.float32)
"""Linear value of each 8-bit code, shape (256,)."""


def to_linear(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return linear light in [0, 1] of an 8-bit sRGB image."""
    return LINEAR_OF_CODE[image]


def to_srgb(linear: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the 8-bit sRGB image of linear light, clipped to [0, 1]."""
    clipped = np.clip(linear, 0.0, 1.0)
    encoded = np.where(clipped <= 0.0031308, clipped * 12.92, 1.055 * clipped ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(encoded * 255.0), np.uint8)
