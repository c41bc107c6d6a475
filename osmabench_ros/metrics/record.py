"""One metric of a report: the one type of row from a suite to report.csv."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Annotated, Any, ClassVar

from pydantic import BeforeValidator, ConfigDict, PlainSerializer, Strict

from osmabench_ros.metrics.statistics import wilson_interval


class Mode(str, Enum):
    """The rules of a metric: as published or strict."""

    NONE = ''
    COMPAT = 'compat'
    STRICT = 'strict'


Whole = Annotated[int, Strict()]
Real = Annotated[float, Strict()]
Flag = Annotated[bool, Strict()]
_NULL = PlainSerializer(lambda mode: mode or None, return_type=str | None)
# A `Mode` value, in JSON null for ''.
ModeText = Annotated[str, BeforeValidator(lambda mode: '' if mode is None else mode), _NULL]


@dataclass(frozen=True)
class MetricRecord:
    """The value of a metric with its interval and number of samples, and the run that it is of.

    Parameters
    ----------
    run_id, dataset, scene, condition, mapper, simulator : str
        Keys of the run; '' before a suite's record is joined with its run.
    seed : int
        Seed of the scene.
    path_seed, method_seed : int, optional
        Seeds of path and method, where the configuration lists some.
    speed_factor : float, optional
        Stamp seconds per wall second in realtime.
    suite : str
        Name of the suite, e.g. ``'osma_segmentation'``.
    mode : str
        A `Mode` value: 'compat' for the published code's rules, 'strict' for the protocol done
        right, '' where the two do not differ.
    metric : str
        Name of the metric with its unit if it has one, e.g. ``'macc'``, ``'chamfer_m'``.
    class_name : str
        Class, room or other group that the value is of; '' for all.
    value : float, optional
        None if the metric is not applicable.
    low, high : float, optional
        Bounds of the interval; None without one.
    n : int
        Samples behind the value.
    higher_is_better : bool
        Direction.
    applicable : bool
        False if the method does not give the data of the metric; such a record leaves every
        average, it is not a zero.
    """

    # JSON texts are validated by it: numbers are never texts, and no key is unknown.
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra='forbid', allow_inf_nan=False)

    run_id: str = field(default='', kw_only=True)
    dataset: str = field(default='', kw_only=True)
    scene: str = field(default='', kw_only=True)
    condition: str = field(default='', kw_only=True)
    mapper: str = field(default='', kw_only=True)
    simulator: str = field(default='', kw_only=True)
    seed: Whole = field(default=0, kw_only=True)
    path_seed: Whole | None = field(default=None, kw_only=True)
    method_seed: Whole | None = field(default=None, kw_only=True)
    speed_factor: Real | None = field(default=None, kw_only=True)
    suite: str
    mode: ModeText
    metric: str
    class_name: str = ''
    value: Real | None = None
    low: Real | None = None
    high: Real | None = None
    n: Whole = 0
    higher_is_better: Flag = True
    applicable: Flag = True

    def __post_init__(self) -> None:
        for name in ('value', 'low', 'high'):
            number = getattr(self, name)
            if number is not None:
                number = float(number)
                object.__setattr__(self, name, number if math.isfinite(number) else None)
        object.__setattr__(self, 'n', int(self.n))
        object.__setattr__(self, 'applicable', bool(self.applicable and self.value is not None))

    @classmethod
    def not_applicable(
        cls, suite: str, mode: str, metric: str, *, higher_is_better: bool = True
    ) -> MetricRecord:
        """Return the record of a metric for which the method gives no data."""
        return cls(suite, mode, metric, higher_is_better=higher_is_better, applicable=False)

    @classmethod
    def of_share(
        cls,
        suite: str,
        mode: str,
        metric: str,
        outcomes: Sequence[bool],
        class_name: str = '',
        *,
        higher_is_better: bool = True,
    ) -> MetricRecord:
        """Return the share of true outcomes with its Wilson interval; not applicable of none."""
        hits = sum(outcomes)
        total = len(outcomes)
        value = hits / total if total else None
        interval = wilson_interval(hits, total)
        return cls(suite, mode, metric, class_name, value, *interval, total, higher_is_better)

    @classmethod
    def of_mean(
        cls,
        suite: str,
        mode: str,
        metric: str,
        values: Sequence[float],
        class_name: str = '',
        *,
        higher_is_better: bool = True,
    ) -> MetricRecord:
        """Return the mean of values; not applicable of none."""
        n = len(values)
        value = math.fsum(values) / n if n else None
        return cls(suite, mode, metric, class_name, value, n=n, higher_is_better=higher_is_better)

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Identity of a record: suite, mode, metric, class name."""
        return self.suite, self.mode, self.metric, self.class_name

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form without the run; a value that does not exist is null."""
        return {name: getattr(self, name) for name in METRIC_COLUMNS}


# Columns of the one table of scores, as report.csv has them.
COLUMNS = tuple(item.name for item in fields(MetricRecord))

# Columns of the run, and of the metric.
RUN_COLUMNS, METRIC_COLUMNS = COLUMNS[:10], COLUMNS[10:]
