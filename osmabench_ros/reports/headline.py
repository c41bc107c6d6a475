"""The headline metrics of a run in tables and plots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import yaml

from osmabench_ros.metrics.record import MetricRecord

NOT_APPLICABLE = '–'  # noqa: RUF001 - the en dash is the sign for it
_FILE = Path(__file__).with_name('headlines.yaml')


@dataclass(frozen=True)
class Headline:
    """A value that tables show, by suite, mode and metric; times 100 if `percent`."""

    title: str
    suite: str
    metric: str
    mode: str = ''
    explanation: str = ''
    percent: bool = True
    in_charts: bool = True

    @property
    def key(self) -> tuple[str, str, str]:
        """Suite, mode and metric."""
        return self.suite, self.mode, self.metric

    def find_record(
        self, records: Iterable[MetricRecord], suffix: str = ''
    ) -> MetricRecord | None:
        """Return the record over all classes, None if there is none; `suffix` is of the metric."""
        wanted = (self.suite, self.mode, f'{self.metric}{suffix}', '')
        for record in records:
            if (record.suite, record.mode, record.metric, record.class_name) == wanted:
                return record
        return None

    def format_record(self, record: MetricRecord | None) -> str:
        """Return the cell of a table; an en dash if the metric is not applicable."""
        if record is None or record.value is None:
            return NOT_APPLICABLE
        return self.format_value(record.value)

    def format_value(self, value: float) -> str:
        """Return a value as tables write it."""
        return f'{100 * value:.1f}' if self.percent else f'{value:.3f}'

    @property
    def is_baseline(self) -> bool:
        """Whether it is a property of the questions, not of a map."""
        return self.metric.startswith('baseline_')


@cache
def read_headlines() -> tuple[Headline, ...]:
    """Return the headline metrics of all suites."""
    rows = yaml.safe_load(_FILE.read_text(encoding='utf-8'))
    return tuple(Headline(**row) for row in rows)


def select_map_headlines(reports: Sequence[Collection[MetricRecord]]) -> list[Headline]:
    """Return the headline metrics of maps that some of the reports have a record of."""
    return [
        item
        for item in read_headlines()
        if item.in_charts
        and not item.is_baseline
        and any(item.find_record(records) for records in reports)
    ]


def select_table_headlines(reports: Iterable[Collection[MetricRecord]]) -> list[Headline]:
    """Return the metrics that a table of runs shows: those that have a value in some run.

    A suite without a headline metric, such as one of another package, gives its first metric.
    Where no metric has a value, those that were computed stay, so that the table shows that.
    """
    computed: dict[tuple[str, str, str], bool] = {}
    for records in reports:
        for item in records:
            if not item.class_name:
                key = item.suite, item.mode, item.metric
                computed[key] = computed.get(key, False) or item.value is not None
    columns = [item for item in read_headlines() if item.key in computed]
    seen = {item.suite for item in read_headlines()}
    for suite, mode, metric in computed:
        if suite not in seen:
            seen.add(suite)
            explanation = f'{metric} of the suite {suite}, in its own unit.'
            title = f'{suite} {metric}'
            columns.append(Headline(title, suite, metric, mode, explanation, percent=False))
    return [item for item in columns if computed[item.key]] or columns
