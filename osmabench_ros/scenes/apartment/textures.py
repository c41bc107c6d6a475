"""Procedural textures, functions of their names, repeating: patterns to be tinted, pictures."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import cache

import numpy as np
from numpy.typing import NDArray

SIZE = 256


def _rng(name: str) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(name.encode()))


def _noise(
    rng: np.random.Generator, stretch: tuple[float, float] = (1.0, 1.0), falloff: float = 1.2
) -> NDArray[np.float64]:
    """Return periodic noise in [0, 1] with a spectrum that falls as frequency ** -falloff."""
    frequency = np.fft.fftfreq(SIZE) * SIZE
    radius = np.hypot(frequency[None, :] * stretch[0], frequency[:, None] * stretch[1])
    radius[0, 0] = 1.0
    spectrum = np.fft.fft2(rng.standard_normal((SIZE, SIZE))) * radius**-falloff
    spectrum[0, 0] = 0.0
    field = np.fft.ifft2(spectrum).real
    low, high = np.quantile(field, [0.01, 0.99])
    return np.asarray(np.clip((field - low) / (high - low), 0, 1))


def _grid() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    v, u = np.mgrid[0:SIZE, 0:SIZE] / SIZE
    return u, v


def _grey(value: NDArray[np.float64]) -> NDArray[np.uint8]:
    shade = np.round(np.clip(value, 0, 1) * 255).astype(np.uint8)
    return np.repeat(shade[..., None], 3, axis=2)


def _wood(rng: np.random.Generator) -> NDArray[np.uint8]:
    grain = _noise(rng, (8.0, 0.6), 1.0)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (6 * grain + 8 * _grid()[1]))
    return _grey(0.78 + 0.14 * grain + 0.08 * rings)


def _planks(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    row = (v * 4).astype(int)
    shift = rng.random(4)[row]
    column = ((u + shift) % 1 * 2).astype(int)
    tone = rng.uniform(-0.1, 0.1, (4, 2))[row, column]
    seam = (v * 4 % 1 < 0.03) | ((u + shift) * 2 % 1 < 0.012)
    grain = _noise(rng, (8.0, 0.7), 1.0)
    return _grey(np.where(seam, 0.5, 0.8 + tone + 0.12 * (grain - 0.5)))


def _tiles(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    column, row = (u * 4).astype(int), (v * 4).astype(int)
    tone = rng.uniform(-0.05, 0.05, (4, 4))[row, column]
    grout = (u * 4 % 1 < 0.05) | (v * 4 % 1 < 0.05)
    return _grey(np.where(grout, 0.6, 0.93 + tone + 0.04 * (_noise(rng) - 0.5)))


def _checker(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    dark = ((u * 4).astype(int) + (v * 4).astype(int)) % 2 == 1
    return _grey(np.where(dark, 0.55, 0.95) + 0.05 * (_noise(rng) - 0.5))


def _marble(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    veins = np.abs(np.sin(np.pi * (2 * u + v + 2.5 * _noise(rng, falloff=1.6))))
    return _grey(0.62 + 0.36 * veins**0.35)


def _granite(rng: np.random.Generator) -> NDArray[np.uint8]:
    return _grey(0.55 + 0.4 * _noise(rng, falloff=0.3))


def _fabric(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    weave = np.sin(2 * np.pi * 32 * u) * np.sin(2 * np.pi * 32 * v)
    return _grey(0.84 + 0.08 * weave + 0.12 * (_noise(rng, falloff=0.6) - 0.5))


def _stripes(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, _ = _grid()
    band = (u * 8).astype(int) % 2
    return _grey(np.where(band == 1, 0.66, 0.95) + 0.06 * (_noise(rng) - 0.5))


def _dots(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    row = (v * 8).astype(int)
    centre = np.hypot((u * 8 + 0.5 * (row % 2)) % 1 - 0.5, v * 8 % 1 - 0.5)
    return _grey(np.where(centre < 0.22, 0.68, 0.95) + 0.04 * (_noise(rng) - 0.5))


def _plaster(rng: np.random.Generator) -> NDArray[np.uint8]:
    return _grey(0.93 + 0.07 * (_noise(rng, falloff=0.8) - 0.5))


def _brushed(rng: np.random.Generator) -> NDArray[np.uint8]:
    return _grey(0.82 + 0.2 * (_noise(rng, (12.0, 0.3), 0.7) - 0.5))


def _leather(rng: np.random.Generator) -> NDArray[np.uint8]:
    return _grey(0.84 + 0.2 * (_noise(rng, falloff=0.9) - 0.5))


def _wicker(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    cell = ((u * 16).astype(int) + (v * 16).astype(int)) % 2
    bulge = np.where(cell == 1, np.abs(np.sin(np.pi * 16 * u)), np.abs(np.sin(np.pi * 16 * v)))
    return _grey(0.5 + 0.4 * bulge + 0.1 * (_noise(rng) - 0.5))


def _rug(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    x, y = np.abs(u - 0.5) * 2, np.abs(v - 0.5) * 2
    edge = np.maximum(x, y)
    waves = 0.5 + 0.5 * np.sin(2 * np.pi * rng.integers(2, 5) * (x + y + 0.3 * x * y))
    value = 0.6 + 0.3 * (waves > 0.5)
    value = np.where((edge > 0.78) & (edge < 0.9), 0.95, value)
    return _grey(np.where(edge > 0.95, 0.5, value) + 0.1 * (_noise(rng, falloff=0.5) - 0.5))


def _picture(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    sky, land = rng.uniform(0.3, 1.0, 3), rng.uniform(0.05, 0.7, 3)
    horizon = 0.3 + 0.3 * rng.random() + 0.2 * (_noise(rng, (0.4, 4.0), 1.5) - 0.5)
    image = np.where((v < horizon)[..., None], land, sky)
    for _ in range(4):
        colour, centre = rng.random(3), rng.random(2)
        disc = np.hypot(u - centre[0], v - centre[1]) < rng.uniform(0.05, 0.2)
        image = np.where(disc[..., None], colour, image)
    return _colour(image + 0.15 * (_noise(rng)[..., None] - 0.5))


def _colour(image: NDArray[np.float64]) -> NDArray[np.uint8]:
    return np.round(np.clip(image, 0, 1) * 255).astype(np.uint8)


def _screen(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    image = np.stack([0.05 + 0.1 * v, 0.08 + 0.15 * u, 0.2 + 0.25 * v], axis=-1)
    window = (u > 0.12) & (u < 0.6) & (v > 0.25) & (v < 0.85)
    lines = window & (v * 24 % 1 < 0.4) & (u < 0.15 + 0.4 * rng.random(24)[(v * 24).astype(int)])
    image = np.where(window[..., None], [0.75, 0.78, 0.8], image)
    return _colour(np.where(lines[..., None], [0.2, 0.25, 0.3], image))


def _dial(rng: np.random.Generator) -> NDArray[np.uint8]:
    u, v = _grid()
    radius, angle = np.hypot(u - 0.5, v - 0.5), np.arctan2(v - 0.5, u - 0.5)
    ticks = (radius > 0.38) & (radius < 0.46) & (np.abs(np.sin(6 * angle)) < 0.12)
    hour, minute = rng.uniform(-np.pi, np.pi, 2)
    hands = ((radius < 0.24) & (np.cos(angle - hour) > 0.985)) | (
        (radius < 0.36) & (np.cos(angle - minute) > 0.995)
    )
    return _grey(np.where(ticks | hands, 0.08, 0.96))


_PATTERNS: dict[str, Callable[[np.random.Generator], NDArray[np.uint8]]] = {
    'wood': _wood,
    'planks': _planks,
    'tiles': _tiles,
    'checker': _checker,
    'marble': _marble,
    'granite': _granite,
    'fabric': _fabric,
    'stripes': _stripes,
    'dots': _dots,
    'plaster': _plaster,
    'brushed': _brushed,
    'leather': _leather,
    'wicker': _wicker,
    'screen': _screen,
    'dial': _dial,
    **{f'rug{i}': _rug for i in range(4)},
    **{f'picture{i}': _picture for i in range(8)},
}


@cache
def texture(name: str) -> NDArray[np.uint8]:
    """Return a texture of shape (256, 256, 3) by name, sRGB, read-only, row 0 at v = 0."""
    image = _PATTERNS[name](_rng(name))
    image.flags.writeable = False
    return image
