"""One picture from the textures as they are and the light that falls on them."""

from __future__ import annotations

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
    *,
    ambient: float,
    exposure: float,
    lit_is_srgb: bool,
) -> NDArray[np.uint8]:
    """Add ambient light on the textures to the lit image, in linear colours.

    Parameters
    ----------
    unlit : ndarray of uint8, shape (height, width, 3), optional
        Textures as they are, sRGB.
    lit : ndarray of uint8, shape (height, width, 3), optional
        What the lights add.
    ambient, exposure : float
        Factor on the textures, and on the sum.
    lit_is_srgb : bool
        Whether the lit image is encoded as sRGB, else with `LIT_GAMMA`.

    Returns
    -------
    ndarray of uint8, shape (height, width, 3)
        sRGB.
    """
    if lit is None and unlit is not None and ambient * exposure == 1.0:
        return unlit.copy()
    if unlit is None and lit is not None and lit_is_srgb and exposure == 1.0:
        return lit.copy()
    parts = []
    if unlit is not None:
        parts.append((_UNLIT_LINEAR * np.float32(ambient * exposure))[unlit])
    if lit is not None:
        table = _UNLIT_LINEAR if lit_is_srgb else _LIT_LINEAR
        parts.append((table * np.float32(exposure))[lit])
    return encoded(parts[0] if len(parts) == 1 else parts[0] + parts[1])
