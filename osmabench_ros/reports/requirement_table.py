"""The thresholds of a configuration and what they were held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import plain
from osmabench_ros.runs.config import Requirement
from osmabench_ros.runs.report_model import Record, unmet


@dataclass(frozen=True)
class RequirementRow:
    """A threshold of the configuration and what was found."""

    figure: str
    where: str
    bound: str
    found: str
    holds: bool


def requirement_rows(
    records: Sequence[Record], requirements: Sequence[Requirement]
) -> list[RequirementRow]:
    """Return every requirement with the values it was held against."""
    return [
        RequirementRow(
            ' '.join(filter(None, (item.suite, item.mode, item.metric, item.class_name))),
            ', '.join(filter(None, (item.mapper, item.condition))) or 'every run',
            _bound(item),
            ', '.join(_found(item, records)) or 'no such figure',
            not unmet((item,), tuple(records)),
        )
        for item in requirements
    ]


def _bound(requirement: Requirement) -> str:
    bounds = (('≥', requirement.at_least), ('≤', requirement.at_most))
    return ' and '.join(f'{sign} {value:g}' for sign, value in bounds if value is not None)


def _found(requirement: Requirement, records: Sequence[Record]) -> list[str]:
    return [
        f'{record.condition}: {plain(record.value)}'
        if requirement.mapper
        else f'{record.mapper} · {record.condition}: {plain(record.value)}'
        for record in records
        if (record.suite, record.metric, record.class_name)
        == (requirement.suite, requirement.metric, requirement.class_name)
        and requirement.mode in (None, record.mode)
        and requirement.mapper in (None, record.mapper)
        and requirement.condition in (None, record.condition)
    ]
