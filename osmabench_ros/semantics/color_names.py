"""Names colours with the common colour terms."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

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
