"""What mapping cost: the one file of a run that differs between repeats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.report_model import Record

SUITE = 'timing'


def timings_of(
    identity: RunIdentity,
    *,
    frames: int,
    frames_mapped: int,
    pacing: str,
    mapping_s: float,
    peak_memory_bytes: Mapping[str, int],
    mapper: str,
) -> dict[str, Any]:
    """Return what timings.json of a run holds.

    Parameters
    ----------
    identity : RunIdentity
        The run.
    frames : int
        Frames that were published.
    frames_mapped : int
        Frames that the mapper acknowledged; the others were dropped.
    pacing : str
        'lockstep' or 'realtime', as it really was.
    mapping_s : float
        Time the mapper spent on them; 0 if unknown.
    peak_memory_bytes : mapping of str to int
        Resident host memory by node, as sampled.
    mapper : str
        Node of the mapping method.

    Returns
    -------
    dict
        The figures by name, and under ``'records'`` speed and memory of the mapper in the form
        of the records of report.json, suite 'timing'; what was not measured is null and not
        applicable.
    """
    rate = frames_mapped / mapping_s if mapping_s > 0 and frames_mapped > 0 else None
    memory = peak_memory_bytes.get(mapper) or None
    return {
        'run_id': identity.run_id,
        'frames': frames,
        'frames_mapped': frames_mapped,
        'frames_dropped': frames - frames_mapped,
        'pacing': pacing,
        'mapping_s': mapping_s,
        'mapping_frames_per_second': rate,
        'peak_memory_bytes': dict(sorted(peak_memory_bytes.items())),
        'mapper_peak_memory_bytes': memory,
        'records': [
            Record.of(identity, record).model_dump(mode='json')
            for record in _records(frames_mapped, rate, memory)
        ],
    }


def _records(frames: int, rate: float | None, memory: int | None) -> list[MetricRecord]:
    return [
        MetricRecord(SUITE, '', 'mapping_frames_per_second', value=rate, n=frames),
        MetricRecord(
            SUITE,
            '',
            'mapper_peak_memory_bytes',
            value=memory,
            n=0 if memory is None else 1,
            higher_is_better=False,
        ),
    ]
