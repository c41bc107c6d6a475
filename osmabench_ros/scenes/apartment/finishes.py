"""Colours, materials and procedural textures of the pieces of an apartment.

Textures are functions of their names and repeat: patterns to be tinted, and pictures.
"""

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.scenes.apartment.tables import Names, evaluate, read_table
from osmabench_ros.scenes.scene import Material

SIZE = 256
# Of each pixel, from 0 to 1.
_v, _u = np.mgrid[0:SIZE, 0:SIZE] / SIZE


# Shape (SIZE, SIZE) if grey, or (SIZE, SIZE, 3), from 0 to 1.
Pattern = NDArray[np.float64]
RGB = tuple[float, float, float]

# sRGB of the colour names that attributes use.
COLORS: dict[str, RGB] = {
    name: (r, g, b) for name, (r, g, b) in read_table('finishes')['colors'].items()
}

# Standard deviations of an instance's sRGB from its named colour: in common, a channel.
SHADE_SIGMA, HUE_SIGMA = 0.05, 0.012

# Metal of another colour is painted.
BARE = ('silver', 'gold')


@dataclass(frozen=True)
class Finish:
    """The look of a part: sRGB in [0, 1], names, a pattern ('' if plain) and its tile in m."""

    rgb: RGB
    color: str
    material: str
    pattern: str = ''
    tile_m: float = 1.0


@lru_cache(maxsize=4096)
def get_material(finish: Finish) -> Material:
    """Return the scene material of a finish; equal finishes share one."""
    pattern = texture(finish.pattern) if finish.pattern else None
    metallic = float(finish.material == 'metal' and finish.color in BARE)
    roughness = read_table('finishes')['roughness'].get(finish.material, 1.0)
    return Material(finish.rgb, pattern, metallic, roughness)


class Style:
    """Draws finishes, colours and proportions from `rng`; the same seed draws the same ones."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def uniform(self, low: float, high: float) -> float:
        """Return a length or proportion between two bounds, on a grid of 1 mm."""
        return round(float(self.rng.uniform(low, high)), 3)

    def pick(self, choices: Sequence[str]) -> str:
        """Return one of several names."""
        return choices[int(self.rng.integers(len(choices)))]

    def draw(self, wanted: Any, names: Names) -> Any:
        """Draw a length or finish of a table.

        ====================================  ==================================================
        ``[low, high]``                       a length between these
        ``{integer: [low, high]}``            a whole number from `low` to less than `high`
        ``{chance: c, then: a, else: b}``     as `a` with probability `c`, otherwise as `b`
        ``{MATERIAL: [COLOR, ...]}``          a finish in one of the colours, with the `pattern`
                                              and `tile_m` named here or for the material;
                                              `patterns` are so many of the name with a number,
                                              or names with their `tile_m`, one of which is drawn
        ``{printed: MATERIAL, pattern: ..}``  a finish with an image that is not tinted
        another                               a number or formula over `names`, not drawn
        ====================================  ==================================================
        """
        match wanted:
            case [low, high]:
                return self.uniform(low, high)
            case {'integer': [low, high]}:
                return int(self.rng.integers(low, high))
            case {'chance': chance, 'then': first, 'else': second}:
                return self.draw(first if self.rng.random() < chance else second, names)
            case dict():
                return self._finish(wanted)
        return evaluate(wanted, names)

    def _finish(self, wanted: Mapping[str, Any]) -> Finish:
        material = next(iter(wanted))
        row: dict[str, Any] = {'pattern': '', 'tile_m': 1.0, 'patterns': None}
        row |= {**read_table('finishes')['materials'].get(material, {}), **wanted}
        pattern = row['pattern']
        tile_m = row['tile_m']
        match row['patterns']:
            case int(count):
                pattern = f'{pattern}{int(self.rng.integers(count))}'
            case dict(tiles):
                pattern = self.pick(list(tiles))
                tile_m = tiles[pattern]
        if material == 'printed':
            return Finish((1.0, 1.0, 1.0), 'white', row['printed'], pattern)
        color = self.pick(row[material] or row['colors'])
        deviation = self.rng.normal(0.0, SHADE_SIGMA) + self.rng.normal(0.0, HUE_SIGMA, 3)
        shade = np.clip(np.array(COLORS[color]) + deviation, 0.02, 0.98)
        rgb = (round(float(shade[0]), 3), round(float(shade[1]), 3), round(float(shade[2]), 3))
        return Finish(rgb, color, material, pattern, tile_m)


def find_finish(words: str, names: Names) -> Finish:
    """Return the finish of a name, an image, or a colour and material without deviation."""
    found = names.get(words)
    printed = read_table('finishes')['printed']
    if isinstance(found, Finish):
        return found
    if words in printed:
        return Finish((1.0, 1.0, 1.0), 'white', printed[words], words)
    color, _, material = words.rpartition(' ')
    return Finish(COLORS[color], color, material)


def _generate_noise(
    rng: np.random.Generator, stretch_u: float, stretch_v: float, falloff: float
) -> Pattern:
    """Return periodic noise in [0, 1] with a spectrum that falls as frequency ** -falloff."""
    frequency = np.fft.fftfreq(SIZE) * SIZE
    radius = np.hypot(frequency[None, :] * stretch_u, frequency[:, None] * stretch_v)
    radius[0, 0] = 1.0
    spectrum = np.fft.fft2(rng.standard_normal((SIZE, SIZE))) * radius**-falloff
    spectrum[0, 0] = 0.0
    field = np.fft.ifft2(spectrum).real
    low, high = np.quantile(field, [0.01, 0.99])
    return np.asarray(np.clip((field - low) / (high - low), 0, 1))


def _scatter(
    rng: np.random.Generator, low: float, high: float, *indices: NDArray[np.int64]
) -> Pattern:
    """Return for each pixel a number that is drawn for every combination of indices."""
    drawn = rng.uniform(low, high, [index.max() + 1 for index in indices])
    return np.asarray(drawn[indices])


def _draw_picture(rng: np.random.Generator) -> Pattern:
    sky = rng.uniform(0.3, 1.0, 3)
    land = rng.uniform(0.05, 0.7, 3)
    horizon = 0.3 + 0.3 * rng.random() + 0.2 * (_generate_noise(rng, 0.4, 4.0, 1.5) - 0.5)
    image = np.where((_v < horizon)[..., None], land, sky)
    for _ in range(4):
        colour = rng.random(3)
        centre = rng.random(2)
        disc = np.hypot(_u - centre[0], _v - centre[1]) < rng.uniform(0.05, 0.2)
        image = np.where(disc[..., None], colour, image)
    return image + 0.15 * (_generate_noise(rng, 1, 1, 1.2)[..., None] - 0.5)


def _draw_screen(rng: np.random.Generator) -> Pattern:
    image = np.stack([0.05 + 0.1 * _v, 0.08 + 0.15 * _u, 0.2 + 0.25 * _v], axis=-1)
    window = (_u > 0.12) & (_u < 0.6) & (_v > 0.25) & (_v < 0.85)
    ends = 0.15 + 0.4 * rng.random(24)[(_v * 24).astype(int)]
    lines = window & (_v * 24 % 1 < 0.4) & (_u < ends)
    image = np.where(window[..., None], [0.75, 0.78, 0.8], image)
    return np.where(lines[..., None], [0.2, 0.25, 0.3], image)


# Textures in colour; the others are in a table.
_IMAGES = {'picture': _draw_picture, 'screen': _draw_screen}


@cache
def texture(name: str) -> NDArray[np.uint8]:
    """Return a texture of shape (256, 256, 3) by name, sRGB, read-only, row 0 at v = 0.

    Names with different numbers at the end are textures of one kind.
    """
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    kind = name.rstrip('0123456789')
    pattern = _IMAGES[kind](rng) if kind in _IMAGES else _compute_pattern(kind, rng)
    image: NDArray[np.uint8] = np.round(np.clip(pattern, 0, 1) * 255).astype(np.uint8)
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=2)
    image.flags.writeable = False
    return image


def _compute_pattern(kind: str, rng: np.random.Generator) -> Pattern:
    """Return a texture of the table; the generator draws in the order of its formulas."""
    names: dict[str, Any] = {'u': _u, 'v': _v, 'integer': rng.integers, 'uniform': rng.uniform}
    names |= {'noise': partial(_generate_noise, rng), 'scatter': partial(_scatter, rng)}
    for key, formula in read_table('textures')[kind].items():
        names[key] = evaluate(formula, names)
    return np.asarray(names['image'])
