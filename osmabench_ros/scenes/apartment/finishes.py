"""Colours and materials that pieces of the apartment are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from osmabench_ros.scenes.apartment.textures import texture
from osmabench_ros.scenes.scene import Material

RGB = tuple[float, float, float]

COLORS: dict[str, RGB] = {
    'white': (0.93, 0.93, 0.91),
    'cream': (0.93, 0.87, 0.74),
    'gray': (0.55, 0.56, 0.57),
    'light gray': (0.76, 0.77, 0.77),
    'dark gray': (0.27, 0.28, 0.3),
    'black': (0.09, 0.09, 0.1),
    'silver': (0.74, 0.76, 0.78),
    'gold': (0.8, 0.64, 0.28),
    'red': (0.76, 0.13, 0.12),
    'pink': (0.91, 0.6, 0.66),
    'orange': (0.93, 0.5, 0.12),
    'yellow': (0.93, 0.79, 0.22),
    'green': (0.22, 0.52, 0.25),
    'olive': (0.45, 0.47, 0.22),
    'teal': (0.1, 0.47, 0.48),
    'light blue': (0.6, 0.78, 0.89),
    'blue': (0.15, 0.32, 0.68),
    'navy': (0.1, 0.14, 0.33),
    'purple': (0.44, 0.24, 0.55),
    'beige': (0.82, 0.74, 0.6),
    'light brown': (0.74, 0.55, 0.35),
    'brown': (0.5, 0.32, 0.18),
    'dark brown': (0.28, 0.17, 0.1),
}
"""sRGB of the colour names that attributes use."""

SHADE_SIGMA, HUE_SIGMA = 0.05, 0.012
"""Standard deviations of an instance's sRGB from its named colour: in common, a channel."""

ROUGHNESS = {
    'metal': 0.4, 'glass': 0.1, 'ceramic': 0.2, 'stone': 0.35, 'plastic': 0.45, 'leather': 0.5,
    'wood': 0.6,
}  # fmt: skip
"""Of materials that shine; the others are matt."""

BARE = ('silver', 'gold')
"""Metal of another colour is painted."""


@dataclass(frozen=True)
class Finish:
    """What a part is made of: sRGB in [0, 1], names, a pattern ('' if plain) and its tile in m."""

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
    return Material(finish.rgb, pattern, metallic, ROUGHNESS.get(finish.material, 1.0))


class Style:
    """Draws finishes, colours and proportions from `rng`; the same seed draws the same ones."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng

    def uniform(self, low: float, high: float) -> float:
        """Return a length or proportion between two bounds, on a grid of 1 mm."""
        return round(float(self.rng.uniform(low, high)), 3)

    def pick(self, choices: tuple[str, ...]) -> str:
        """Return one of several names."""
        return choices[int(self.rng.integers(len(choices)))]

    def finish(
        self, colors: tuple[str, ...], material: str, pattern: str = '', tile_m: float = 1.0
    ) -> Finish:
        """Return a finish in one of the colours, each instance a little different."""
        color = self.pick(colors)
        deviation = self.rng.normal(0.0, SHADE_SIGMA) + self.rng.normal(0.0, HUE_SIGMA, 3)
        shade = np.clip(np.array(COLORS[color]) + deviation, 0.02, 0.98)
        rgb = (round(float(shade[0]), 3), round(float(shade[1]), 3), round(float(shade[2]), 3))
        return Finish(rgb, color, material, pattern, tile_m)

    def wood(self, *colors: str) -> Finish:
        """Return a wooden finish, in brown tones unless colours are named."""
        tones = colors or ('light brown', 'brown', 'dark brown')
        return self.finish(tones, 'wood', 'wood', 0.9)

    def fabric(self, *colors: str, pattern: str = 'fabric', tile_m: float = 0.35) -> Finish:
        """Return a textile finish."""
        return self.finish(colors, 'fabric', pattern, tile_m)

    def metal(self, *colors: str) -> Finish:
        """Return a metal finish, silver unless colours are named."""
        return self.finish(colors or ('silver',), 'metal', 'brushed', 0.6)

    def ceramic(self, *colors: str) -> Finish:
        """Return a glazed finish."""
        return self.finish(colors or ('white',), 'ceramic')

    def plastic(self, *colors: str) -> Finish:
        """Return a plain plastic finish."""
        return self.finish(colors, 'plastic')

    def glass(self, *colors: str) -> Finish:
        """Return an opaque stand-in for glass; the renderer knows no transparency."""
        return self.finish(colors or ('light blue',), 'glass')

    def stone(self, *colors: str) -> Finish:
        """Return a stone finish."""
        return self.finish(colors or ('white', 'light gray', 'dark gray'), 'stone', 'marble', 0.8)

    def paper(self, *colors: str) -> Finish:
        """Return a paper or cardboard finish."""
        return self.finish(colors, 'paper')

    def leather(self, *colors: str) -> Finish:
        """Return a leather finish."""
        return self.finish(colors, 'leather', 'leather', 0.5)


def plain(color: str, material: str) -> Finish:
    """Return a named colour without deviation, for parts that look alike everywhere."""
    return Finish(COLORS[color], color, material)
