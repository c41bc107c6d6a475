"""A run is one (dataset, scene, condition, mapper, simulator, seeds), in realtime at a speed."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

# Five of them, a seed and a speed make one name, of which file systems take 255 bytes.
_LONGEST_WORD = 40
# RunInfo.PACING_REALTIME.
_REALTIME = 1
# dataset.scene.condition.mapper.simulator.seeds, in realtime followed by the speed.
_RUN_NAME = re.compile(r'(?:[^.]+\.){5}\d+(?:-p(\d+))?(?:-m(\d+))?(?:\.x[\w-]+)?', re.ASCII)


@dataclass(frozen=True)
class Seeds:
    """Seeds of scene, path and method; None, and absent from names, for the scene's seed."""

    scene: int
    path: int | None = None
    method: int | None = None

    def __str__(self) -> str:
        parts = (('-p', self.path), ('-m', self.method))
        return str(self.scene) + ''.join(f'{sign}{n}' for sign, n in parts if n is not None)

    @classmethod
    def of_run(cls, run_id: str, seed: int) -> Seeds:
        """Read the seeds from a run's name; another name has only the `seed` of the scene."""
        found = _RUN_NAME.fullmatch(run_id)
        numbers = found.groups() if found else ()
        return cls(seed, *(None if number is None else int(number) for number in numbers))


@dataclass(frozen=True, order=True)
class SceneKey:
    """Dataset, scene and seeds, by which runs share one trajectory, ground truth and questions."""

    dataset: str
    scene: str
    seed: int
    path_seed: int | None = None

    def __str__(self) -> str:
        seeds = Seeds(self.seed, self.path_seed)
        return '.'.join((slug(self.dataset), slug(self.scene), str(seeds)))


@dataclass(frozen=True, order=True)
class RunIdentity:
    """One run; `speed_factor` is stamp seconds per wall second in realtime, None in lockstep."""

    scene_key: SceneKey
    condition: str
    mapper: str
    simulator: str
    speed_factor: float | None = None
    method_seed: int | None = None

    @classmethod
    def of_info(cls, info: Any) -> RunIdentity:
        """Return the identity of the run that an osmabench_ros/RunInfo message announces."""
        seeds = Seeds.of_run(info.run_id, int(info.seed))
        return cls(
            SceneKey(info.dataset, info.scene, seeds.scene, seeds.path),
            info.condition,
            info.mapper,
            info.simulator,
            float(info.speed_factor) if info.pacing == _REALTIME else None,
            seeds.method,
        )

    @property
    def seeds(self) -> Seeds:
        """The seeds that its name has."""
        return Seeds(self.scene_key.seed, self.scene_key.path_seed, self.method_seed)

    @cached_property
    def place(self) -> tuple[str, str, str]:
        """Scene, path in it and repetition on that, by which runs are paired and averaged."""
        key = self.scene_key
        path, repetition = Seeds(key.seed, key.path_seed), self.method_seed
        name = '' if repetition is None else str(repetition)
        return f'{slug(key.dataset)}.{slug(key.scene)}', str(path), name

    @property
    def run_id(self) -> str:
        """Unique name, also of the run's folder."""
        key = self.scene_key
        parts = (key.dataset, key.scene, self.condition, self.mapper, self.simulator)
        speed = () if self.speed_factor is None else (f'x{slug(f"{self.speed_factor:g}")}',)
        return '.'.join((*(slug(part) for part in parts), str(self.seeds), *speed))


@lru_cache(maxsize=65_536)
def slug(text: str) -> str:
    """Return a name in the form of folder names; a long one ends in its hash."""
    plain = re.sub(r'[^A-Za-z0-9_-]+', '-', text) or '-'
    if len(plain) <= _LONGEST_WORD:
        return plain
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    return f'{plain[: _LONGEST_WORD - len(digest) - 1]}-{digest}'


def is_run_name(name: str) -> bool:
    """Return whether a folder's name is one that runs have."""
    return _RUN_NAME.fullmatch(name) is not None
