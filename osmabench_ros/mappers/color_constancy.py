"""Discounts the brightness of the light before colours are named.

People call a white wall white in the dark too. What is brightest around a place is taken for
white there (Land and McCann, Lightness and retinex theory, 1971, the white-patch rule, here on
luminance alone and in columns of the map).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

COLUMN_M = 1.0
BRIGHT_SHARE = 0.9
"""The luminance that this share of a column stays below counts as white."""

WHITE_LUMINANCE = 0.85
MAX_GAIN = 8.0

_REC709 = np.array([0.2126, 0.7152, 0.0722])


def linear_from_srgb(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return linear RGB in [0, 1] of sRGB colours (IEC 61966-2-1)."""
    value = rgb / 255.0
    return np.where(value <= 0.04045, value / 12.92, ((value + 0.055) / 1.055) ** 2.4)


def srgb_from_linear(linear: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return sRGB colours of linear RGB, cut off at white."""
    value = np.clip(linear, 0.0, 1.0)
    encoded = np.where(value <= 0.0031308, 12.92 * value, 1.055 * value ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(encoded * 255), np.uint8)


def without_light(points: NDArray[np.floating], colors: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return sRGB colours as if every column of the map were lit brightly; none gets darker."""
    if not len(points):
        return colors
    linear = linear_from_srgb(colors)
    luminance = linear @ _REC709
    columns = np.floor(points[:, :2] / COLUMN_M).astype(np.int64)
    _, column = np.unique(columns, axis=0, return_inverse=True)
    column = column.reshape(-1)
    order = np.lexsort((luminance, column))
    sizes = np.bincount(column)
    starts = np.cumsum(sizes) - sizes
    white = luminance[order][starts + (BRIGHT_SHARE * (sizes - 1)).astype(np.int64)]
    gain = np.clip(WHITE_LUMINANCE / np.maximum(white, 1e-6), 1.0, MAX_GAIN)
    return srgb_from_linear(linear * gain[column][:, None])
