"""Takes the brightness of the light out of the colours of a map."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.color import decoded, encoded_image

COLUMN_M = 1.0
BRIGHT_SHARE = 0.9
"""The luminance that this share of a column stays below counts as white."""

WHITE_LUMINANCE = 0.85
MAX_GAIN = 8.0

_REC709 = np.array([0.2126, 0.7152, 0.0722])


def without_light(points: NDArray[np.floating], colors: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return sRGB colours as if every column of the map were lit brightly; none gets darker."""
    if not len(points):
        return colors
    linear = decoded(colors / 255.0)
    luminance = linear @ _REC709
    columns = np.floor(points[:, :2] / COLUMN_M).astype(np.int64)
    _, column = np.unique(columns, axis=0, return_inverse=True)
    column = column.reshape(-1)
    order = np.lexsort((luminance, column))
    sizes = np.bincount(column)
    starts = np.cumsum(sizes) - sizes
    white = luminance[order][starts + (BRIGHT_SHARE * (sizes - 1)).astype(np.int64)]
    gain = np.clip(WHITE_LUMINANCE / np.maximum(white, 1e-6), 1.0, MAX_GAIN)
    return encoded_image(linear * gain[column][:, None])
