"""Names colours with the common colour terms, whatever the brightness of the light."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

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


COLOR_EXAMPLES: Mapping[str, tuple[int, int, int]] = MappingProxyType(
    {
        'white': (237, 237, 232),
        'cream': (237, 222, 189),
        'light gray': (194, 196, 196),
        'gray': (140, 143, 145),
        'dark gray': (69, 71, 77),
        'black': (23, 23, 26),
        'silver': (189, 194, 199),
        'gold': (204, 163, 71),
        'red': (194, 33, 31),
        'pink': (232, 153, 168),
        'orange': (237, 128, 31),
        'yellow': (237, 201, 56),
        'green': (56, 133, 64),
        'olive': (115, 120, 56),
        'teal': (26, 120, 122),
        'light blue': (153, 199, 227),
        'blue': (38, 82, 173),
        'navy': (26, 36, 84),
        'purple': (112, 61, 140),
        'beige': (209, 189, 153),
        'light brown': (189, 140, 89),
        'brown': (128, 82, 46),
        'dark brown': (71, 43, 26),
    }
)
"""An sRGB example of each colour term; the procedural apartment uses the same terms."""


def lab_from_rgb(rgb: NDArray[np.uint8]) -> NDArray[np.float64]:
    """Return CIELAB (D65) of sRGB colours (..., 3)."""
    from skimage.color import rgb2lab

    return np.asarray(rgb2lab(rgb.astype(np.float64) / 255.0))


def color_indices(rgb: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Return for each colour (N, 3) the row (N,) of the nearest of COLOR_EXAMPLES in CIELAB."""
    examples = np.array(list(COLOR_EXAMPLES.values()), np.uint8)
    palette, inverse = np.unique(rgb.reshape(-1, 3), axis=0, return_inverse=True)
    difference = lab_from_rgb(palette)[:, None] - lab_from_rgb(examples)
    nearest = np.argmin((difference**2).sum(axis=2), axis=1)
    return np.asarray(nearest[inverse.reshape(-1)])


def most_frequent_color(indices: NDArray[np.integer], weights: NDArray[np.integer]) -> str:
    """Return the name with the greatest sum of weights; ties go to the first name."""
    votes = np.bincount(indices, weights=weights, minlength=len(COLOR_EXAMPLES))
    return list(COLOR_EXAMPLES)[int(votes.argmax())]
