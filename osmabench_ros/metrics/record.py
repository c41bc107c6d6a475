"""One metric of a report."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.statistics import wilson_interval


class Mode(str, Enum):
    """The rules of a metric: as published or strict."""

    NONE = ''
    COMPAT = 'compat'
    STRICT = 'strict'


@dataclass(frozen=True)
class MetricRecord:
    """The value of a metric with its interval and number of samples.

    Parameters
    ----------
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

    suite: str
    mode: str
    metric: str
    class_name: str = ''
    value: float | None = None
    low: float | None = None
    high: float | None = None
    n: int = 0
    higher_is_better: bool = True
    applicable: bool = True

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
        hits, total = sum(outcomes), len(outcomes)
        value, interval = hits / total if total else None, wilson_interval(hits, total)
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
        """Return a JSON-serialisable form; a value that does not exist is null."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> MetricRecord:
        """Rebuild from `to_json`; other keys, such as keys of the run, are ignored.

        Raises MetricError if a key is missing or a value is not a number.
        """
        try:
            return cls(**{name: data[name] for name in cls.__dataclass_fields__})
        except (KeyError, TypeError, ValueError) as error:
            raise MetricError(f'metric record {dict(data)} is malformed: {error!r}') from error
