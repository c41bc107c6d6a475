"""Speed and memory of the runs, from the one file that holds what differs between repeats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import RunError
from osmabench_ros.reports.headline import NOT_APPLICABLE
from osmabench_ros.reports.run_view import Run

TIMINGS = 'timings.json'


@dataclass(frozen=True)
class CostRow:
    """What mapping cost in a run; texts, with the sign for "not applicable" where unknown."""

    title: str
    frames: str
    mapping_s: str
    frames_per_second: str
    mapper_memory_mib: str
    mapper_gpu_memory_mib: str


def cost_rows(runs: Sequence[Run]) -> list[CostRow]:
    """Return a row for every run that was timed; raises RunError on a malformed timings.json."""
    rows = []
    for run in runs:
        file = run.plan.directory / TIMINGS
        if not file.exists():
            continue
        data = read_json(file)
        if not isinstance(data, dict):
            raise RunError(f'{file}: must hold an object of timings; delete it')
        rows.append(
            CostRow(
                f'{run.title} · {run.scene}',
                _text(data.get('frames'), 0),
                _text(data.get('mapping_s'), 1),
                _text(data.get('mapping_frames_per_second'), 2),
                _mebibytes(data.get('mapper_peak_memory_bytes')),
                _mebibytes(data.get('mapper_peak_gpu_memory_bytes')),
            )
        )
    return rows


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _mebibytes(value: Any) -> str:
    number = _number(value)
    return _text(None if number is None else number / 2**20, 0)


def _text(value: Any, digits: int) -> str:
    number = _number(value)
    return NOT_APPLICABLE if number is None else f'{number:.{digits}f}'
