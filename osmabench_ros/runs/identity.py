"""A run is one (dataset, scene, condition, mapper, simulator, seed), in realtime at a speed."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

_LONGEST_WORD = 40
"""Five of them, a seed and a speed make one name, of which file systems take 255 bytes."""


@dataclass(frozen=True, order=True)
class SceneKey:
    """Dataset, scene and seed, by which runs share one trajectory, ground truth and questions."""

    dataset: str
    scene: str
    seed: int

    def __str__(self) -> str:
        return '.'.join((slug(self.dataset), slug(self.scene), str(self.seed)))


@dataclass(frozen=True, order=True)
class RunIdentity:
    """One run; `speed_factor` is stamp seconds per wall second in realtime, None in lockstep."""

    scene_key: SceneKey
    condition: str
    mapper: str
    simulator: str
    speed_factor: float | None = None

    @property
    def place(self) -> tuple[str, str, str]:
        """Scene, path in it and repetition on that, by which runs are paired and averaged."""
        key = self.scene_key
        return f'{slug(key.dataset)}.{slug(key.scene)}', str(key.seed), ''

    @property
    def run_id(self) -> str:
        """Unique name, also that of the run's folder."""
        key = self.scene_key
        parts = (key.dataset, key.scene, self.condition, self.mapper, self.simulator)
        speed = () if self.speed_factor is None else (f'x{slug(f"{self.speed_factor:g}")}',)
        return '.'.join((*(slug(part) for part in parts), str(key.seed), *speed))


def slug(text: str) -> str:
    """Return a name in the form of folder names; a long one ends in its hash."""
    plain = re.sub(r'[^A-Za-z0-9_-]+', '-', text) or '-'
    if len(plain) <= _LONGEST_WORD:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f'{plain[: _LONGEST_WORD - len(digest) - 1]}-{digest}'
