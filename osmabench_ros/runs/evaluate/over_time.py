"""Scores over time, from the intermediate maps of a run."""

import dataclasses
from collections.abc import Collection, Iterator, Sequence
from functools import partial
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.base.progress import Progress
from osmabench_ros.base.strict import Strict, read_model
from osmabench_ros.errors import RunError, errors_as
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import list_snapshots, read_map
from osmabench_ros.metrics.over_time import ScoresAtTime, over_time_records
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import EvaluationInputs, make_suites, suite_context
from osmabench_ros.runs.evaluate.open_vocabulary import OpenVocabularyLabeller
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport, Status, join_run
from osmabench_ros.runs.timings import SUITE as TIMING_SUITE
from osmabench_ros.runs.timings import TIMINGS
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS
from osmabench_ros.suites.suite import Suite, SuiteContext, models_asked_by

SCHEMA = 'osmabench.growth/1'
GROWTH = 'growth.json'


class RecordsAtTime(Strict):
    """The metrics of the map at one time."""

    frames: int
    time_s: float
    metrics: tuple[MetricRecord, ...]


class ReportOverTime(Strict):
    """Model of growth.json: metrics of every map, and how fast they grew."""

    schema_name: str = SCHEMA
    run_id: str
    moments: tuple[RecordsAtTime, ...]
    final_only: tuple[str, ...] = ()
    """Suites that ask a language model and are scored for the final map only."""
    metrics: tuple[MetricRecord, ...]


def score_over_time(
    inputs: EvaluationInputs,
    suites: Sequence[SuiteConfig],
    snapshots_directory: Path,
    progress: Progress,
    first_stamp_ns: int = FIRST_STAMP_NS,
) -> ReportOverTime:
    """Score the maps of a run on the way and the final one, without suites that ask a model."""
    file = inputs.output_directory / GROWTH
    if file.exists():
        return read_model(ReportOverTime, file)
    final = read_map(inputs.map_directory)
    text = OpenVocabularyLabeller(final, inputs.text_features, inputs.device)
    truth = read_ground_truth(inputs.ground_truth_directory)
    context = suite_context(inputs, final, truth, text, inputs.output_directory, progress)
    folders = list_snapshots(snapshots_directory)
    made = make_suites(suites)
    free = [suite for suite in made if not models_asked_by(suite)]
    moments = list(_score_moments(context, folders, free, progress, first_stamp_ns))
    of_run = partial(join_run, inputs.identity)
    report = ReportOverTime(
        run_id=inputs.identity.run_id,
        moments=tuple(
            RecordsAtTime(frames=item.frames, time_s=item.time_s, metrics=of_run(item.records))
            for item in moments
        ),
        final_only=tuple(suite.name for suite in made if suite not in free),
        metrics=of_run(over_time_records(moments)),
    )
    write_json(file, report.model_dump(mode='json'))
    return report


def _score_moments(
    context: SuiteContext,
    folders: Sequence[Path],
    suites: Sequence[Suite],
    progress: Progress,
    first_ns: int,
) -> Iterator[ScoresAtTime]:
    """Yield the metrics of one map after the other, with one map in memory at a time."""
    frames, time_s, last_ns = 0, 0.0, context.semantic_map.header.stamp_ns
    for number, folder in enumerate([*folders, None]):
        progress(f'scoring map {number + 1} of {len(folders) + 1}', 1.0)
        semantic_map = context.semantic_map if folder is None else read_map(folder)
        header = semantic_map.header
        # A method that counts no frames has its maps numbered.
        used = header.provenance.frames_used or number + 1
        passed_s = (header.stamp_ns - first_ns) / 1e9
        # The last snapshot may be the final map; and before the second frame no time has passed.
        if used <= frames or passed_s <= time_s:
            continue
        if folder is not None and header.stamp_ns >= last_ns:
            continue
        frames, time_s = used, passed_s
        yield scores_at_time(context, semantic_map, frames, time_s, suites)


def scores_at_time(
    context: SuiteContext,
    semantic_map: SemanticMap,
    frames: int,
    time_s: float,
    suites: Sequence[Suite],
) -> ScoresAtTime:
    """Score a map against the ground truth of the whole run; no file is written."""
    here = dataclasses.replace(context, semantic_map=semantic_map, output_directory=None)
    records = tuple(record for suite in suites for record in suite.evaluate(here))
    return ScoresAtTime(frames, time_s, records)


def collect_judged_records(
    plans: Sequence[RunPlan], runs: Sequence[RunReport], required: Collection[Requirement]
) -> tuple[MetricRecord, ...]:
    """Return the records of report.json, timings.json and growth.json of all done runs.

    timings.json is not read where no requirement is about times: of many runs it takes long.
    """
    timed = any(item.suite == TIMING_SUITE for item in required)
    folders = {plan.identity.run_id: plan.directory for plan in plans}
    found: list[MetricRecord] = []
    for report in runs:
        found += report.metrics
        folder = folders.get(report.run_id)
        if folder is not None and report.status is Status.COMPLETE:
            if timed:
                found += _read_records(folder / TIMINGS, 'records')
            found += _read_records(folder / GROWTH, 'metrics')
    return tuple(found)


_RECORDS = TypeAdapter(list[MetricRecord])


def _read_records(file: Path, key: str) -> list[MetricRecord]:
    if not file.exists():
        return []
    caught, problem = (LookupError, TypeError, ValidationError), f'{file} is malformed'
    with errors_as(RunError, problem, caught, remedy='start over with --fresh'):
        return _RECORDS.validate_python(read_json(file)[key])
