"""Thresholds of a configuration, and the results that can check them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from enum import Enum

from pydantic import model_validator

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError
from osmabench_ros.metrics.map_statistics import SUITE as STATISTICS
from osmabench_ros.metrics.trajectory_records import ALIGNED
from osmabench_ros.metrics.trajectory_records import SUITE as TRAJECTORY

TIMING_SUITES = ('timing',)
"""Figures of timings.json of a run, frames and latencies with the node as class name."""

BAG_SUITES = (TRAJECTORY, f'{TRAJECTORY}{ALIGNED}', 'alignment', 'bag_timing', STATISTICS)
"""Suites of the evaluation of a bag next to those that are configured."""

GROWTH_SUFFIXES = ('_over_frames', '_over_time', '_frames_until_90', '_seconds_until_90')
"""What follows the name of a metric in growth.json."""


class Source(str, Enum):
    """The results that a requirement is checked against."""

    MAP = 'map'
    TIMING = 'timing'
    GROWTH = 'growth'
    BAG = 'bag'


class Requirement(Strict):
    """A threshold that must hold for every matching record of the report.

    Apart from the suites of the configuration there are metrics that only a run has (suite
    `timing`, and how metrics grew), and some that only the evaluation of a bag has (`BAG_SUITES`
    and, after an alignment, ``SUITE@aligned``).
    """

    suite: str
    """Whose figure it is."""
    metric: str
    """Name of the figure, as in report.csv."""
    mode: str | None = None
    """compat or strict; both by default."""
    class_name: str = ''
    """Class, or node of a figure of `timing`."""
    mapper: str | None = None
    """Which mapper it is for; all by default."""
    condition: str | None = None
    """Which condition it is for; all by default."""
    at_least: float | None = None
    """The lowest value that passes."""
    at_most: float | None = None
    """The highest value that passes."""

    @model_validator(mode='after')
    def _require_bound(self) -> Requirement:
        if self.at_least is None and self.at_most is None:
            raise ValueError('a requirement needs at_least or at_most')
        return self

    @property
    def source(self) -> Source:
        """The results that it can be checked against."""
        if self.suite in TIMING_SUITES:
            return Source.TIMING
        if self.suite in BAG_SUITES or self.suite.endswith(ALIGNED):
            return Source.BAG
        return Source.GROWTH if self.metric.endswith(GROWTH_SUFFIXES) else Source.MAP


def list_known_suites(configured: Sequence[str]) -> list[str]:
    """Return the suite names that a requirement may have, from the suites of a configuration."""
    aligned = [f'{name}{ALIGNED}' for name in configured]
    return [*configured, *TIMING_SUITES, *BAG_SUITES, *aligned]


def of_sources(requirements: Iterable[Requirement], *sources: Source) -> tuple[Requirement, ...]:
    """Return the requirements that the given sources can check."""
    return tuple(item for item in requirements if item.source in sources)


def check_for_runs(
    requirements: Iterable[Requirement], *, grows: bool, final_only: Collection[str] = ()
) -> None:
    """Refuse requirements that no run could fulfil: of bags, or of growth that is not measured."""
    for item in requirements:
        if item.source is Source.BAG:
            where = 'which a run does not have, only `osmabench bag evaluate`'
            raise ConfigError(f'a requirement names suite "{item.suite}", {where}')
        named = f'a requirement names metric "{item.metric}" of suite "{item.suite}"'
        if item.source is Source.GROWTH and not grows:
            why = 'which needs maps on the way; set evaluation: {map_every_frames: 10}'
            raise ConfigError(f'{named}, {why}')
        if item.source is Source.GROWTH and item.suite in final_only:
            why = 'which asks a language model and is scored for the final map only'
            raise ConfigError(f'{named}, {why}; let the rules answer and judge')
