"""Colours of classes and outcomes."""

import hashlib
import math
from collections.abc import Mapping, Sequence
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.images import encode_srgb_image
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

_GOLDEN_ANGLE_DEG = 137.50776405003785
_RINGS = ((0.68, 0.13), (0.55, 0.14), (0.79, 0.10))
_STRUCTURE_RINGS = tuple((0.88 - 0.055 * step, 0.022) for step in range(4))
_NO_CLASS = (125, 125, 125)

Rgb = tuple[int, int, int]


class PointOutcome(Enum):
    """Outcome of a point of the ground-truth surface, with a colour-blind-safe colour."""

    CORRECT = ('right class', (0, 114, 178))
    WRONG = ('wrong class', (230, 120, 0))
    UNLABELLED = ('mapped without a class', (240, 228, 66))
    MISSING = ('not in the map', (204, 90, 160))

    def __init__(self, title: str, color: Rgb) -> None:
        self.title = title
        self.color = color


# Colour of map points where the scene is empty.
HALLUCINATED: Rgb = (150, 20, 20)


def assign_class_colors(label_set: LabelSet) -> Mapping[int, Rgb]:
    """Return one colour per class: vivid for objects, pale for structure, fixed for all maps."""
    colors: dict[int, Rgb] = {UNLABELLED: _NO_CLASS}
    objects = [item for item in label_set.classes if not item.structure]
    structures = [item for item in label_set.classes if item.structure]
    for classes, rings, first_deg in ((objects, _RINGS, 0), (structures, _STRUCTURE_RINGS, 80)):
        for i, item in enumerate(classes):
            hue_deg = first_deg + i * _GOLDEN_ANGLE_DEG
            colors[item.id] = _convert_from_oklch(*rings[i % len(rings)], hue_deg)
    return colors


def color_labels(labels: NDArray[np.integer], colors: Mapping[int, Rgb]) -> NDArray[np.uint8]:
    """Return RGB (N, 3) of class ids (N,); ids without a colour look unlabelled."""
    table = np.full((UNLABELLED + 1, 3), _NO_CLASS, np.uint8)
    for class_id, color in colors.items():
        table[class_id] = color
    known = (labels >= 0) & (labels <= UNLABELLED)
    return np.asarray(table[np.where(known, labels, UNLABELLED)])


def name_color(name: str) -> Rgb:
    """Return the colour of a class name without an id, the same in every map and run."""
    digest = hashlib.sha256(name.encode()).digest()
    lightness, chroma = _RINGS[digest[0] % len(_RINGS)]
    return _convert_from_oklch(lightness, chroma, 360 * int.from_bytes(digest[1:3], 'big') / 65536)


def format_hex_color(color: Sequence[int]) -> str:
    """Return a colour as CSS writes it."""
    return '#' + ''.join(f'{channel:02x}' for channel in color)


_CONES_OF_OKLAB = np.array([
    [1, 0.3963377774, 0.2158037573],
    [1, -0.1055613458, -0.0638541728],
    [1, -0.0894841775, -1.2914855480],
])  # fmt: skip
_RGB_OF_CONES = np.array([
    [4.0767416621, -3.3077115913, 0.2309699292],
    [-1.2684380046, 2.6097574011, -0.3413193965],
    [-0.0041960863, -0.7034186147, 1.7076147010],
])  # fmt: skip


def _convert_from_oklch(lightness: float, chroma: float, hue_deg: float) -> Rgb:
    """Return sRGB of an OKLCH colour (Ottosson 2020), clipped to the gamut."""
    hue = math.radians(hue_deg)
    cones = _CONES_OF_OKLAB @ (lightness, chroma * math.cos(hue), chroma * math.sin(hue))
    red, green, blue = encode_srgb_image(np.clip(_RGB_OF_CONES @ cones**3, 0.0, 1.0)).tolist()
    return red, green, blue
