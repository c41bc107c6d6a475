"""Parts of a matrix, for machines that each run one."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import Field

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.plan import RunPlan

_Item = TypeVar('_Item')


class ShardPart(Strict):
    """The runs of a shard, for manifest and report; `of` is how many the matrix has."""

    shard: str
    runs: tuple[str, ...]
    of: int

    @property
    def description(self) -> str:
        """What a reader of the part has to know."""
        return f'part {self.shard} of the matrix: {len(self.runs)} of {self.of} runs'


class Shard(Strict):
    """One of `count` parts of a matrix, numbered from 1."""

    number: int = Field(ge=1)
    count: int = Field(ge=1)

    def __str__(self) -> str:
        return f'{self.number}/{self.count}'

    @classmethod
    def of_text(cls, text: str) -> Shard:
        """Read ``I/N``; ConfigError if it is anything else."""
        found = re.fullmatch(r'(\d{1,6})/(\d{1,6})', text, re.ASCII)
        number, count = map(int, found.groups()) if found else (0, 0)
        if not 1 <= number <= count:
            raise ConfigError(
                f'--shard {text} is no part of a matrix; give I/N with I from 1 to N, such as 2/8'
            )
        return cls(number=number, count=count)

    def plans(self, plans: Sequence[RunPlan]) -> list[RunPlan]:
        """Return the runs of this shard, which depend on the configuration alone.

        Up to one shard a prepared path, every path is whole in one of them; with more, each path
        is divided among shards of its own. Raises ConfigError if a shard would be empty.
        """
        if self.count > len(plans):
            raise ConfigError(
                f'--shard {self}: the matrix has {len(plans)} runs, and no more parts than that'
            )
        paths = list(dict.fromkeys(plan.shared_directory for plan in plans))
        if self.count <= len(paths):
            own = set(_part(paths, self.number - 1, self.count))
            return [plan for plan in plans if plan.shared_directory in own]
        for index, path in enumerate(paths):
            shards = _part(range(1, self.count + 1), index, len(paths))
            if self.number in shards:
                of_path = [plan for plan in plans if plan.shared_directory == path]
                return _part(of_path, shards.index(self.number), len(shards))
        raise AssertionError('every shard is of a path')

    def part(self, plans: Sequence[RunPlan]) -> ShardPart:
        """Return which of all runs of a matrix the shard has."""
        own = tuple(plan.identity.run_id for plan in self.plans(plans))
        return ShardPart(shard=str(self), runs=own, of=len(plans))


def _part(items: Sequence[_Item], index: int, count: int) -> list[_Item]:
    """Return one of `count` neighbouring parts, whose sizes differ by one at most."""
    return list(items[index * len(items) // count : (index + 1) * len(items) // count])


def results_root(config: MatrixConfig, out: Path, shard: Shard | None = None) -> Path:
    """Return the folder of results of a matrix in `out`, or that of a shard, beside the others."""
    if shard is None:
        return out / config.name
    return out / f'{config.name}.shard-{shard.number}-of-{shard.count}'
