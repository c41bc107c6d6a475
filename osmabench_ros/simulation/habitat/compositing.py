"""One picture from the textures as they are and the light that falls on them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

LIT_GAMMA = 2.2
"""Habitat-Sim's shader encodes with this power instead of the sRGB curve."""

ENCODED_STEPS = 4096
"""Linear values are encoded by a table over their square root, within half a level."""


def srgb_decoded(levels: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return linear values of sRGB-encoded ones, both in [0, 1] (IEC 61966-2-1)."""
    return np.where(levels <= 0.04045, levels / 12.92, ((levels + 0.055) / 1.055) ** 2.4)


def srgb_encoded(linear: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sRGB-encoded values of linear ones, both in [0, 1] (IEC 61966-2-1)."""
    curved = 1.055 * np.maximum(linear, 0.0031308) ** (1 / 2.4) - 0.055
    return np.where(linear <= 0.0031308, 12.92 * linear, curved)


_LEVELS = np.arange(256) / 255.0
_UNLIT_LINEAR = srgb_decoded(_LEVELS).astype(np.float32)
_LIT_LINEAR = (_LEVELS**LIT_GAMMA).astype(np.float32)
_ENCODED = np.rint(255 * srgb_encoded((np.arange(ENCODED_STEPS + 1) / ENCODED_STEPS) ** 2)).astype(
    np.uint8
)


def encoded(linear: NDArray[np.float32]) -> NDArray[np.uint8]:
    """Encode linear colours; what is beyond 1 saturates."""
    steps = np.sqrt(np.clip(linear, 0.0, 1.0)) * ENCODED_STEPS + 0.5
    return _ENCODED[steps.astype(np.int16)]


def combined(
    unlit: NDArray[np.uint8] | None,
    lit: NDArray[np.uint8] | None,
    spots: Sequence[tuple[NDArray[np.uint8], NDArray[np.float32]]] = (),
    *,
    unlit_factor: float,
    lit_factor: float = 1.0,
    lit_is_srgb: bool = False,
) -> NDArray[np.uint8]:
    """Add ambient light on the textures, the lit image and the spots, in linear colours, as sRGB.

    Images are (height, width, 3), a spot is an image and its factor (height, width). `unlit` holds
    the textures in sRGB and `unlit_factor` is the ambient light on them; lit images are in sRGB if
    `lit_is_srgb`, else encoded with `LIT_GAMMA`.
    """
    if unlit is not None and lit is None and not spots and unlit_factor == 1.0:
        return unlit.copy()
    if lit is not None and unlit is None and not spots and lit_is_srgb and lit_factor == 1.0:
        return lit.copy()
    table = _UNLIT_LINEAR if lit_is_srgb else _LIT_LINEAR
    parts = []
    if unlit is not None:
        parts.append((_UNLIT_LINEAR * np.float32(unlit_factor))[unlit])
    if lit is not None:
        parts.append((table * np.float32(lit_factor))[lit])
    parts += [table[image] * share[..., None] for image, share in spots]
    total = parts[0]
    for part in parts[1:]:
        total += part
    return encoded(total)
