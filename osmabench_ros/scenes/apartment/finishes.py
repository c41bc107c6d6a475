"""Colours and materials that pieces of the apartment are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from osmabench_ros.scenes.apartment.tables import Names, evaluate, read_table
from osmabench_ros.scenes.apartment.textures import texture
from osmabench_ros.scenes.scene import Material

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
def material_of(finish: Finish) -> Material:
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
        pattern, tile_m = row['pattern'], row['tile_m']
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
    found, printed = names.get(words), read_table('finishes')['printed']
    if isinstance(found, Finish):
        return found
    if words in printed:
        return Finish((1.0, 1.0, 1.0), 'white', printed[words], words)
    color, _, material = words.rpartition(' ')
    return Finish(COLORS[color], color, material)
