"""Scores over time: how good the map of a run was on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.snapshots import snapshots_in
from osmabench_ros.maps.storage import read_map
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluation import EvaluationInputs, made_suites, suite_context
from osmabench_ros.runs.report_model import Record
from osmabench_ros.runs.text_matching import TextMatching
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS
from osmabench_ros.suites.incremental import Moment, Snapshot, growth_records, score_snapshots
from osmabench_ros.suites.suite import Suite, SuiteContext, models_asked_by

SCHEMA = 'osmabench.growth/1'
GROWTH = 'growth.json'

Progress = Callable[[str, float], None]


class MomentReport(BaseModel):
    """The figures of the map at one moment."""

    model_config = ConfigDict(extra='forbid', frozen=True)

    frames: int
    time_s: float
    metrics: tuple[Record, ...]


class GrowthReport(BaseModel):
    """What growth.json says: figures of every map, and how fast they grew."""

    model_config = ConfigDict(extra='forbid', frozen=True)

    schema_name: str = SCHEMA
    run_id: str
    moments: tuple[MomentReport, ...]
    final_only: tuple[str, ...] = ()
    """Suites that ask a language model and are scored for the final map only."""
    metrics: tuple[Record, ...]


def score_growth(
    inputs: EvaluationInputs,
    suites: Sequence[SuiteConfig],
    snapshots_directory: Path,
    progress: Progress,
    first_stamp_ns: int = FIRST_STAMP_NS,
) -> GrowthReport:
    """Score the maps that a method had on the way, and the final one, unless that is done.

    Every map is compared with the same ground truth, that of the whole path. Suites that ask a
    language model are left out: every map would cost as much as the final one. The output folder
    of `inputs` gets growth.json; nothing is written if a map or the ground truth is at fault.
    """
    file = inputs.output_directory / GROWTH
    if file.exists():
        return GrowthReport.model_validate(read_json(file))
    final = read_map(inputs.map_directory)
    text = TextMatching(final, inputs.text_features, inputs.device)
    truth = read_ground_truth(inputs.ground_truth_directory)
    context = suite_context(inputs, final, truth, text, inputs.output_directory, progress)
    folders = snapshots_in(snapshots_directory)
    made = made_suites(suites)
    free = [suite for suite in made if not models_asked_by(suite)]
    moments = list(_moments(context, folders, free, progress, first_stamp_ns))

    def of_run(records: Sequence[MetricRecord]) -> tuple[Record, ...]:
        return tuple(Record.of(inputs.identity, record) for record in records)

    report = GrowthReport(
        run_id=inputs.identity.run_id,
        moments=tuple(
            MomentReport(frames=item.frames, time_s=item.time_s, metrics=of_run(item.records))
            for item in moments
        ),
        final_only=tuple(suite.name for suite in made if suite not in free),
        metrics=of_run(growth_records(moments)),
    )
    write_json(file, report.model_dump(mode='json'))
    return report


def _moments(
    context: SuiteContext,
    folders: Sequence[Path],
    suites: Sequence[Suite],
    progress: Progress,
    first_ns: int,
) -> Iterator[Moment]:
    """Yield the figures of one map after the other, so that one is in memory at a time."""
    frames, time_s, last_ns = 0, 0.0, context.semantic_map.header.stamp_ns
    for number, folder in enumerate([*folders, None]):
        progress(f'scoring map {number + 1} of {len(folders) + 1}', 1.0)
        semantic_map = context.semantic_map if folder is None else read_map(folder)
        snapshot = _snapshot(semantic_map, number + 1, first_ns)
        # The last snapshot may be the final map; and before the second frame no time has passed.
        if snapshot.frames <= frames or snapshot.time_s <= time_s:
            continue
        if folder is not None and semantic_map.header.stamp_ns >= last_ns:
            continue
        frames, time_s = snapshot.frames, snapshot.time_s
        yield from score_snapshots(context, [snapshot], suites)


def _snapshot(semantic_map: SemanticMap, number: int, first_ns: int) -> Snapshot:
    """Return a map with its moment; a method that counts no frames has its maps numbered."""
    header = semantic_map.header
    used = header.provenance.frames_used or number
    return Snapshot(used, (header.stamp_ns - first_ns) / 1e9, semantic_map)
