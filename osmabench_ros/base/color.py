"""Conversion between sRGB and linear light (IEC 61966-2-1)."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Number = TypeVar('Number', bound=np.floating)


def decoded(srgb: NDArray[Number]) -> NDArray[Number]:
    """Return linear values of sRGB-encoded ones, both in [0, 1]."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def encoded(linear: NDArray[Number]) -> NDArray[Number]:
    """Return sRGB-encoded values of linear ones, both in [0, 1]."""
    curved = 1.055 * np.maximum(linear, 0.0031308) ** (1 / 2.4) - 0.055
    return np.where(linear <= 0.0031308, 12.92 * linear, curved)


# Linear value of each 8-bit code, shape (256,).
LINEAR_OF_CODE: NDArray[np.float32] = decoded(np.arange(256) / 255.0).astype(np.float32)


def decoded_image(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return linear light in [0, 1] of an 8-bit sRGB image."""
    return LINEAR_OF_CODE[image]


def encoded_image(linear: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the 8-bit sRGB image of linear light, clipped to [0, 1]."""
    return np.asarray(np.rint(encoded(np.clip(linear, 0.0, 1.0)) * 255.0), np.uint8)
