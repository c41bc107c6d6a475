"""Colours, materials and procedural textures of the pieces of an apartment.

Textures are functions of their names and repeat: patterns to be tinted, and pictures.
"""

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.scenes.apartment.tables import Names, evaluate, read_table
from osmabench_ros.scenes.scene import Material

SIZE = 256
_v, _u = np.mgrid[0:SIZE, 0:SIZE] / SIZE
"""Of each pixel, from 0 to 1."""


Pattern = NDArray[np.float64]
"""Shape (SIZE, SIZE) if grey, or (SIZE, SIZE, 3), from 0 to 1."""
RGB = tuple[float, float, float]

COLORS: dict[str, RGB] = {
    name: (r, g, b) for name, (r, g, b) in read_table('finishes')['colors'].items()
}
"""sRGB of the colour names that attributes use."""

SHADE_SIGMA, HUE_SIGMA = 0.05, 0.012
"""Standard deviations of an instance's sRGB from its named colour: in common, a channel."""

BARE = ('silver', 'gold')
"""Metal of another colour is painted."""


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


def _draw_wood(rng: np.random.Generator) -> Pattern:
    grain = _generate_noise(rng, (8.0, 0.6), 1.0)
    rings = 0.5 + 0.5 * np.sin(2 * np.pi * (6 * grain + 8 * _v))
    return np.asarray(0.78 + 0.14 * grain + 0.08 * rings)


def _draw_planks(rng: np.random.Generator) -> Pattern:
    row = (_v * 4).astype(int)
    shift = rng.random(4)[row]
    column = ((_u + shift) % 1 * 2).astype(int)
    tone = rng.uniform(-0.1, 0.1, (4, 2))[row, column]
    seam = (_v * 4 % 1 < 0.03) | ((_u + shift) * 2 % 1 < 0.012)
    grain = _generate_noise(rng, (8.0, 0.7), 1.0)
    return np.where(seam, 0.5, 0.8 + tone + 0.12 * (grain - 0.5))


def _draw_tiles(rng: np.random.Generator) -> Pattern:
    column = (_u * 4).astype(int)
    row = (_v * 4).astype(int)
    tone = rng.uniform(-0.05, 0.05, (4, 4))[row, column]
    grout = (_u * 4 % 1 < 0.05) | (_v * 4 % 1 < 0.05)
    return np.where(grout, 0.6, 0.93 + tone + 0.04 * (_generate_noise(rng) - 0.5))


def _draw_checker(rng: np.random.Generator) -> Pattern:
    dark = ((_u * 4).astype(int) + (_v * 4).astype(int)) % 2 == 1
    return np.where(dark, 0.55, 0.95) + 0.05 * (_generate_noise(rng) - 0.5)


def _draw_marble(rng: np.random.Generator) -> Pattern:
    veins = np.abs(np.sin(np.pi * (2 * _u + _v + 2.5 * _generate_noise(rng, falloff=1.6))))
    return np.asarray(0.62 + 0.36 * veins**0.35)


def _draw_fabric(rng: np.random.Generator) -> Pattern:
    weave = np.sin(2 * np.pi * 32 * _u) * np.sin(2 * np.pi * 32 * _v)
    return np.asarray(0.84 + 0.08 * weave + 0.12 * (_generate_noise(rng, falloff=0.6) - 0.5))


def _draw_stripes(rng: np.random.Generator) -> Pattern:
    band = (_u * 8).astype(int) % 2
    return np.where(band == 1, 0.66, 0.95) + 0.06 * (_generate_noise(rng) - 0.5)


def _draw_dots(rng: np.random.Generator) -> Pattern:
    row = (_v * 8).astype(int)
    centre = np.hypot((_u * 8 + 0.5 * (row % 2)) % 1 - 0.5, _v * 8 % 1 - 0.5)
    return np.where(centre < 0.22, 0.68, 0.95) + 0.04 * (_generate_noise(rng) - 0.5)


def _draw_wicker(rng: np.random.Generator) -> Pattern:
    cell = ((_u * 16).astype(int) + (_v * 16).astype(int)) % 2
    bulge = np.where(cell == 1, np.abs(np.sin(np.pi * 16 * _u)), np.abs(np.sin(np.pi * 16 * _v)))
    return np.asarray(0.5 + 0.4 * bulge + 0.1 * (_generate_noise(rng) - 0.5))


def _draw_rug(rng: np.random.Generator) -> Pattern:
    x = np.abs(_u - 0.5) * 2
    y = np.abs(_v - 0.5) * 2
    edge = np.maximum(x, y)
    waves = 0.5 + 0.5 * np.sin(2 * np.pi * rng.integers(2, 5) * (x + y + 0.3 * x * y))
    value = 0.6 + 0.3 * (waves > 0.5)
    value = np.where((edge > 0.78) & (edge < 0.9), 0.95, value)
    return np.where(edge > 0.95, 0.5, value) + 0.1 * (_generate_noise(rng, falloff=0.5) - 0.5)


def _draw_picture(rng: np.random.Generator) -> Pattern:
    sky = rng.uniform(0.3, 1.0, 3)
    land = rng.uniform(0.05, 0.7, 3)
    horizon = 0.3 + 0.3 * rng.random() + 0.2 * (_generate_noise(rng, (0.4, 4.0), 1.5) - 0.5)
    image = np.where((_v < horizon)[..., None], land, sky)
    for _ in range(4):
        colour = rng.random(3)
        centre = rng.random(2)
        disc = np.hypot(_u - centre[0], _v - centre[1]) < rng.uniform(0.05, 0.2)
        image = np.where(disc[..., None], colour, image)
    return image + 0.15 * (_generate_noise(rng)[..., None] - 0.5)


def _draw_screen(rng: np.random.Generator) -> Pattern:
    image = np.stack([0.05 + 0.1 * _v, 0.08 + 0.15 * _u, 0.2 + 0.25 * _v], axis=-1)
    window = (_u > 0.12) & (_u < 0.6) & (_v > 0.25) & (_v < 0.85)
    ends = 0.15 + 0.4 * rng.random(24)[(_v * 24).astype(int)]
    lines = window & (_v * 24 % 1 < 0.4) & (_u < ends)
    image = np.where(window[..., None], [0.75, 0.78, 0.8], image)
    return np.where(lines[..., None], [0.2, 0.25, 0.3], image)


def _draw_dial(rng: np.random.Generator) -> Pattern:
    radius = np.hypot(_u - 0.5, _v - 0.5)
    angle = np.arctan2(_v - 0.5, _u - 0.5)
    ticks = (radius > 0.38) & (radius < 0.46) & (np.abs(np.sin(6 * angle)) < 0.12)
    hour, minute = rng.uniform(-np.pi, np.pi, 2)
    hands = ((radius < 0.24) & (np.cos(angle - hour) > 0.985)) | (
        (radius < 0.36) & (np.cos(angle - minute) > 0.995)
    )
    return np.where(ticks | hands, 0.08, 0.96)


_PATTERNS: dict[str, Callable[[np.random.Generator], Pattern]] = {
    'wood': _draw_wood,
    'planks': _draw_planks,
    'tiles': _draw_tiles,
    'checker': _draw_checker,
    'marble': _draw_marble,
    'granite': lambda rng: 0.55 + 0.4 * _generate_noise(rng, falloff=0.3),
    'fabric': _draw_fabric,
    'stripes': _draw_stripes,
    'dots': _draw_dots,
    'plaster': lambda rng: 0.93 + 0.07 * (_generate_noise(rng, falloff=0.8) - 0.5),
    'brushed': lambda rng: 0.82 + 0.2 * (_generate_noise(rng, (12.0, 0.3), 0.7) - 0.5),
    'leather': lambda rng: 0.84 + 0.2 * (_generate_noise(rng, falloff=0.9) - 0.5),
    'wicker': _draw_wicker,
    'screen': _draw_screen,
    'dial': _draw_dial,
    **{f'rug{i}': _draw_rug for i in range(4)},
    **{f'picture{i}': _draw_picture for i in range(8)},
}


@cache
def texture(name: str) -> NDArray[np.uint8]:
    """Return a texture of shape (256, 256, 3) by name, sRGB, read-only, row 0 at v = 0."""
    rng = np.random.default_rng(zlib.crc32(name.encode()))
    image = np.round(np.clip(_PATTERNS[name](rng), 0, 1) * 255).astype(np.uint8)
    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, axis=2)
    image.flags.writeable = False
    return image
