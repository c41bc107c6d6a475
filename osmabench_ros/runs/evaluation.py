"""Scores a recorded map with the suites of a run and writes the run's report.

A queue runs such evaluations in the background, one after another.
"""

from __future__ import annotations

import dataclasses
import threading
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from pydantic import TypeAdapter, ValidationError

from osmabench_ros.base import files
from osmabench_ros.base.configuration import installed, version
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import Strict, read_model
from osmabench_ros.errors import ConfigError, IncompleteError, OsmabenchError, RunError, errors_as
from osmabench_ros.geometry.stamped_trajectory import read_tum
from osmabench_ros.language.embedding import PrecomputedEmbedder
from osmabench_ros.maps.semantic_map import Provenance, SemanticMap
from osmabench_ros.maps.storage import list_snapshots, read_map
from osmabench_ros.metrics.over_time import ScoresAtTime, make_over_time_records
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs import report_model
from osmabench_ros.runs.config import Requirement, Source, SuiteConfig
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.open_vocabulary import OpenVocabularyLabeller
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.timings import SUITE as TIMING_SUITE
from osmabench_ros.runs.timings import TIMINGS
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS
from osmabench_ros.suites.question_suite import AnswererOptions
from osmabench_ros.suites.suite import (
    Suite,
    SuiteContext,
    find_repetition,
    list_changed_options,
    make_suite,
    models_asked_by,
)
from osmabench_ros.vqa import question_files
from osmabench_ros.vqa.exact.generation import SUITE
from osmabench_ros.vqa.questions import Question

WAITING = 'waiting for another evaluation'
# How long an evaluation gets to notice that it was cancelled before its thread is left behind.
STOP_TIMEOUT_S = 3.0
_FILES = (question_files.QUESTIONS, question_files.ANSWERS, question_files.VERDICTS)


def set_questions_aside(folder: Path, suite: str) -> None:
    """Move the question files that a suite has just written to a folder with its name."""
    if not (folder / question_files.QUESTIONS).exists():
        return
    (folder / suite).mkdir()
    for file in _FILES:
        if (folder / file).exists():
            (folder / file).rename(folder / suite / file)


def settle_questions(folder: Path, suites: Sequence[str], *, complete: bool) -> None:
    """Move the question files of the main suite into the folder itself.

    It is the suite of exact questions, else the first that asked, once all are `complete`: which
    one that is must not depend on the suites that a failing server left to another evaluation.
    """
    answered = [suite for suite in suites if (folder / suite / question_files.QUESTIONS).exists()]
    main = SUITE if SUITE in suites else next(iter(answered), '')
    if main not in answered or (main != SUITE and not complete):
        return
    for file in _FILES:
        files.discard(folder / file)
        if (folder / main / file).exists():
            (folder / main / file).rename(folder / file)
    (folder / main).rmdir()


ANSWERS_FOLDER = 'vqa'
# Condition or simulator of a map that no run recorded.
UNKNOWN = 'unknown'
REPORT, INCOMPLETE = 'report.json', 'incomplete.json'
# Next to the folder of a map: the images that the run kept.
FRAMES_FOLDER = 'frames'
# Next to the folder of a map: the true poses of the camera, by stamp.
TRUE_TRAJECTORY = 'true_trajectory.tum'
# Name of the digest of suites and options in incomplete.json.
SUITES = 'suites'


@dataclass(frozen=True)
class EvaluationInputs:
    """Folders of the map, the ground truth and the results of an evaluation.

    The identity names the run, or for a map that no run recorded an `identify_unnamed_run`.

    `output_directory` gets report.json and the folder of answers; `text_features` are as
    `OpenVocabularyLabeller` takes them; `device` is 'auto', 'cpu' or 'cuda'; a map that was cut
    off may pass if `allow_partial`.
    """

    identity: RunIdentity
    map_directory: Path
    ground_truth_directory: Path
    output_directory: Path
    questions_file: Path | None = None
    device: str = 'auto'
    text_features: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    allow_partial: bool = False

    @classmethod
    def of_plan(cls, plan: RunPlan) -> EvaluationInputs:
        """Return the inputs of a run that recorded its map."""
        return cls(
            plan.identity,
            plan.map_directory,
            plan.ground_truth_directory,
            plan.directory,
            plan.questions_file,
            text_features=plan.config.text_features,
            allow_partial=plan.mapper.allow_partial,
        )


def identify_unnamed_run(
    seed: int = 0, condition: str = '', mapper: str = '', simulator: str = ''
) -> RunIdentity:
    """Return the identity of a map without a run; '' is filled from map and ground truth."""
    return RunIdentity(SceneKey('', '', seed), condition, mapper, simulator)


def complete_identity(
    known: RunIdentity, dataset: str, scene: str, provenance: Provenance
) -> RunIdentity:
    """Fill an `identify_unnamed_run`, with UNKNOWN where the map says nothing either."""
    return RunIdentity(
        SceneKey(dataset, scene, known.scene_key.seed),
        known.condition or provenance.condition or UNKNOWN,
        known.mapper or provenance.method or UNKNOWN,
        known.simulator or UNKNOWN,
    )


def evaluate_run(
    inputs: EvaluationInputs,
    suites: Sequence[SuiteConfig],
    requirements: Sequence[Requirement] = (),
    progress: Progress = silent,
) -> report_model.RunReport:
    """Evaluate one map, write report.json and return it.

    Of `requirements` only those count that concern this run and metrics of the suites. `progress`
    may raise to stop; nothing is written then, nor if map, ground truth or an option is at fault.
    Raises IncompleteError if a server failed; the next evaluation goes on from incomplete.json.
    """
    make_suites(suites)
    progress('reading the map', 0.0)
    semantic_map = read_map(inputs.map_directory)
    progress('reading the ground truth', 0.0)
    truth = read_ground_truth(inputs.ground_truth_directory)
    if not inputs.identity.scene_key.scene:
        provenance = semantic_map.header.provenance
        named = complete_identity(inputs.identity, truth.dataset, truth.scene, provenance)
        inputs = dataclasses.replace(inputs, identity=named)
    return evaluate_loaded(inputs, semantic_map, truth, suites, requirements, progress)


def evaluate_map(
    inputs: EvaluationInputs,
    suites: Sequence[SuiteConfig],
    requirements: Sequence[Requirement] = (),
    *,
    replace: bool = False,
    progress: Progress = silent,
) -> report_model.RunReport:
    """Evaluate a map that was not recorded in a run; the files give what `inputs` leave out.

    A map outside the scene is scored with a remark; requirements of other mappers and
    conditions are left out. Raises RunError if a report is there and `replace` is not set.
    """
    files.check_folder(inputs.output_directory, files.Existing.MERGE)
    check_report(inputs.output_directory, 'replace it', replace=replace)
    check_sources(suites, inputs.text_features, inputs.questions_file)
    return evaluate_run(inputs, suites, requirements, progress)


def check_report(directory: Path, forced: str, *, replace: bool) -> None:
    """Raise RunError if a report is there that `replace` does not allow to replace."""
    if not replace and (report := directory / REPORT).exists():
        raise RunError(f'{report} exists; use --force to {forced}, or choose another --out')


def check_sources(
    suites: Sequence[SuiteConfig], text_features: Mapping[str, Path], questions_file: Path | None
) -> None:
    """Check cheap conditions before anything large is read."""
    make_suites(suites)
    for file in text_features.values():
        PrecomputedEmbedder(file)
    if questions_file is not None and not questions_file.exists():
        raise RunError(f'there are no questions at {questions_file}')


def evaluate_loaded(
    inputs: EvaluationInputs,
    semantic_map: SemanticMap,
    ground_truth: GroundTruth,
    suites: Sequence[SuiteConfig],
    requirements: Sequence[Requirement] = (),
    progress: Progress = silent,
) -> report_model.RunReport:
    """As `evaluate_run`, for a map that was read already."""
    made = make_suites(suites)
    text = OpenVocabularyLabeller(semantic_map, inputs.text_features, inputs.device)
    hashes = {**_hashes(inputs), **_hash_settings(suites)}
    asked = files.sha256_of_data([suite.model_dump(mode='json') for suite in suites])
    same = (inputs.identity.run_id, {**hashes, SUITES: asked}, versions())
    earlier = incomplete_report(inputs.output_directory)
    if earlier and (earlier.run_id, earlier.hashes, earlier.versions) != same:
        earlier = None
    records: list[MetricRecord] = []
    failures: dict[str, str] = {}

    def report_suite(text: str, fraction: float) -> None:
        progress(f'{suite.name}: {text}', (number + fraction) / len(made))

    files.claim_folder(inputs.output_directory)
    answers_folder = inputs.output_directory / ANSWERS_FOLDER
    with files.atomic_directory(answers_folder, files.Existing.MERGE) as answers:
        context = suite_context(inputs, semantic_map, ground_truth, text, answers, report_suite)
        for number, suite in enumerate(made):
            progress(suite.name, number / len(made))
            if earlier and (known := [x for x in earlier.metrics if x.suite == suite.name]):
                records += known
                continue
            try:
                records += report_model.join_run(inputs.identity, suite.evaluate(context))
            except IncompleteError as error:
                failures[suite.name] = str(error)
            set_questions_aside(answers, suite.name)
        progress('writing the report', 1.0)
    for suite in made:
        if changed := list_changed_options(suite):
            context.remark(suite.name, f'computed with {", ".join(changed)}')
    settle_questions(answers_folder, [suite.name for suite in made], complete=not failures)
    header = semantic_map.header
    whole = header.complete or inputs.allow_partial
    report = report_model.RunReport(
        run_id=inputs.identity.run_id,
        status=report_model.Status.INCOMPLETE if failures else report_model.Status.COMPLETE,
        error='; '.join(f'{suite}: {reason}' for suite, reason in failures.items()),
        metrics=tuple(records),
        failed_requirements=(
            *(() if whole else (report_model.partial_fault(inputs.identity.run_id),)),
            *report_model.unmet(
                report_model.for_run(requirements, inputs.identity, Source.MAP),
                tuple(records),
            ),
        ),
        map_complete=header.complete,
        remarks=tuple(
            dict.fromkeys(
                (
                    *report_model.map_remarks(header),
                    *report_model.place_remarks(semantic_map, ground_truth),
                    *report_model.label_remarks(semantic_map, ground_truth.label_set),
                    *(earlier.remarks if earlier else ()),
                    *context.remarks,
                )
            )
        ),
        versions=versions(),
        hashes={**hashes, SUITES: asked} if failures else hashes,
        encoders={**(earlier.encoders if earlier else {}), **text.encoders},
    )
    written, other = (INCOMPLETE, REPORT) if failures else (REPORT, INCOMPLETE)
    files.write_json(inputs.output_directory / written, report.model_dump(mode='json'))
    # An earlier report does not belong to the answers any more.
    files.discard(inputs.output_directory / other)
    if failures:
        raise IncompleteError(report.error)
    return report


def incomplete_report(directory: Path) -> report_model.RunReport | None:
    """Return the report of an evaluation that a server's failure ended; None if there is none."""
    try:
        return read_model(report_model.RunReport, directory / INCOMPLETE)
    except RunError:
        return None


def make_suites(suites: Sequence[SuiteConfig]) -> list[Suite]:
    """Return the suites of a configuration; raises ConfigError if one is unknown."""
    made = [make_suite(item.name, item.options) for item in suites]
    if fault := find_repetition(suite.name for suite in made):
        raise ConfigError(f'{fault}; name it once, or evaluate twice')
    return made


def suite_context(
    inputs: EvaluationInputs,
    semantic_map: SemanticMap,
    ground_truth: GroundTruth,
    text: OpenVocabularyLabeller,
    answers: Path,
    progress: Progress,
) -> SuiteContext:
    """Return the context of the suites; `answers` is the folder for questions and answers."""
    questions = inputs.questions_file
    poses = inputs.map_directory.absolute().parent / TRUE_TRAJECTORY
    return SuiteContext(
        scene_name=inputs.identity.scene_key.scene,
        semantic_map=semantic_map,
        ground_truth=ground_truth,
        device=inputs.device,
        seed=inputs.identity.scene_key.seed,
        output_directory=answers,
        questions=question_files.read_records(questions, Question)
        if questions and questions.exists()
        else (),
        labeller=text.labeller,
        node_labeller=text.node_labeller,
        similarity=text.similarity,
        text_encoder=text.text_encoder,
        progress=progress,
        true_trajectory=read_tum(poses) if poses.is_file() else None,
        frames_directory=poses.with_name(FRAMES_FOLDER),
        question_images=questions.parent if questions else None,
    )


def versions() -> dict[str, str]:
    """Return the versions of all packages that the numbers depend on."""
    others = {name: installed(name) or 'absent' for name in ('numpy', 'scipy', 'torch')}
    return {'osmabench_ros': version(), **others}


def _hashes(inputs: EvaluationInputs) -> dict[str, str]:
    surface = sorted(inputs.ground_truth_directory.glob('surface_*.npy'))
    hashes = {
        'map': files.sha256_of(inputs.map_directory),
        'ground_truth': files.sha256_of(inputs.ground_truth_directory),
        report_model.TRUE_SURFACE: files.sha256_of_data(
            [files.sha256_of(item) for item in surface]
        ),
    }
    if inputs.questions_file and inputs.questions_file.exists():
        hashes['questions'] = files.sha256_of(inputs.questions_file)
        by_suite: dict[str, list[str]] = {}
        for item in question_files.read_records(inputs.questions_file, Question):
            by_suite.setdefault(f'questions of {item.suite}', []).append(
                question_files.to_json_line(item)
            )
        hashes |= {name: files.sha256_of_data(lines) for name, lines in by_suite.items()}
    for name, file in sorted(inputs.text_features.items()):
        hashes[f'text_features:{name}'] = files.sha256_of(file)
    return hashes


_GATES = ('max_distance_m', 'gate_m')


def _hash_settings(suites: Sequence[SuiteConfig]) -> dict[str, str]:
    """Return digests of the gate and of the other options of each suite, except who answers."""
    found = {}
    for suite in suites:
        rest = {k: v for k, v in suite.options.items() if k not in AnswererOptions.model_fields}
        gate = [rest.pop(name) for name in _GATES if name in rest]
        found[f'gate of {suite.name}'] = files.sha256_of_data(gate)
        found[f'settings of {suite.name}'] = files.sha256_of_data(rest)
    return found


class EvaluationCancelledError(RunError):
    """An evaluation was stopped on request."""


@dataclass(eq=False)
class EvaluationJob:
    """One evaluation in a separate thread; `on_done` is called in the thread that polls."""

    work: Callable[[Progress], report_model.RunReport]
    on_done: Callable[[EvaluationJob], None]
    # The current step, and the fraction done.
    at: tuple[str, float] = field(default=(WAITING, 0.0), kw_only=True)
    report: report_model.RunReport | None = field(default=None, kw_only=True)
    error: OsmabenchError | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        self._is_cancelled = False
        # A thread that hangs in native code must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name='evaluation', daemon=True)

    @property
    def begun(self) -> bool:
        """Whether its thread was started."""
        return self._thread.ident is not None

    @property
    def done(self) -> bool:
        """Whether there is a report or an error."""
        return self.error is not None or (self.begun and not self._thread.is_alive())

    @property
    def cancelled(self) -> bool:
        """Whether it ended because it was cancelled."""
        return isinstance(self.error, EvaluationCancelledError)

    def start(self) -> None:
        """Start the thread."""
        self.at = ('starting', 0.0)
        self._thread.start()

    def cancel(self) -> None:
        """Stop at the next progress report; at once if the job is still waiting."""
        self._is_cancelled = True
        if not self.begun:
            self.error = EvaluationCancelledError('the evaluation was cancelled before it began')

    def join(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Wait for the end of its thread."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            self.report = self.work(self._report_progress)
        except OsmabenchError as error:
            self.error = error
        except Exception as error:  # an error of a suite must not pass in silence
            failure = RunError(f'the evaluation failed: {type(error).__name__}: {error}')
            failure.__cause__ = error
            self.error = failure

    def _report_progress(self, text: str, fraction: float) -> None:
        if self._is_cancelled:
            raise EvaluationCancelledError(f'the evaluation was cancelled at "{self.at[0]}"')
        self.at = (text, fraction)


class EvaluationQueue:
    """Runs one job at a time, in order of submission; not thread-safe."""

    def __init__(self) -> None:
        self._jobs: deque[EvaluationJob] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def current(self) -> EvaluationJob | None:
        """The job that runs."""
        return self._jobs[0] if self._jobs and self._jobs[0].begun else None

    def submit(self, job: EvaluationJob) -> None:
        """Append a job."""
        self._jobs.append(job)

    def poll(self, *, start: bool = True) -> None:
        """Call the callbacks of ended jobs, and start the next job if allowed."""
        for job in [job for job in self._jobs if job.done]:
            self._jobs.remove(job)
            job.on_done(job)
        if start and self._jobs and not self._jobs[0].begun:
            self._jobs[0].start()

    def stop(self) -> None:
        """Cancel all jobs, and call their callbacks."""
        jobs, running = list(self._jobs), self.current
        self._jobs.clear()
        for job in jobs:
            job.cancel()
        if running is not None:
            running.join()
        for job in jobs:
            job.on_done(job)


SCHEMA = 'osmabench.growth/1'
# File of the scores over time, next to the report of the run.
OVER_TIME = 'growth.json'


class ReportOverTime(Strict):
    """Model of growth.json: metrics of every map, and how fast they grew."""

    schema_name: str = SCHEMA
    run_id: str
    moments: tuple[ScoresAtTime, ...]
    # Suites that ask a language model and are scored for the final map only.
    final_only: tuple[str, ...] = ()
    metrics: tuple[MetricRecord, ...]


def score_over_time(
    inputs: EvaluationInputs,
    suites: Sequence[SuiteConfig],
    snapshots_directory: Path,
    progress: Progress,
    first_stamp_ns: int = FIRST_STAMP_NS,
) -> ReportOverTime:
    """Score the maps of a run on the way and the final one, without suites that ask a model."""
    file = inputs.output_directory / OVER_TIME
    if file.exists():
        return read_model(ReportOverTime, file)
    final = read_map(inputs.map_directory)
    text = OpenVocabularyLabeller(final, inputs.text_features, inputs.device)
    truth = read_ground_truth(inputs.ground_truth_directory)
    context = suite_context(inputs, final, truth, text, inputs.output_directory, progress)
    folders = list_snapshots(snapshots_directory)
    made = make_suites(suites)
    free = [suite for suite in made if not models_asked_by(suite)]
    identity = inputs.identity

    def score_moments() -> Iterator[ScoresAtTime]:
        """Score one map after the other, with one map in memory at a time."""
        frames = 0
        time_s = 0.0
        for number, folder in enumerate([*folders, None]):
            progress(f'scoring map {number + 1} of {len(folders) + 1}', 1.0)
            semantic_map = final if folder is None else read_map(folder)
            header = semantic_map.header
            # A method that counts no frames has its maps numbered.
            used = header.provenance.frames_used or number + 1
            passed_s = (header.stamp_ns - first_stamp_ns) / 1e9
            # The last snapshot may be the final map; and before the second frame no time has
            # passed.
            if used <= frames or passed_s <= time_s:
                continue
            if folder is not None and header.stamp_ns >= final.header.stamp_ns:
                continue
            frames, time_s = used, passed_s
            here = dataclasses.replace(context, semantic_map=semantic_map, output_directory=None)
            records = (record for suite in free for record in suite.evaluate(here))
            metrics = report_model.join_run(identity, tuple(records))
            yield ScoresAtTime(frames, time_s, metrics)

    moments = tuple(score_moments())
    report = ReportOverTime(
        run_id=identity.run_id,
        moments=moments,
        final_only=tuple(suite.name for suite in made if suite not in free),
        metrics=report_model.join_run(identity, make_over_time_records(moments)),
    )
    files.write_json(file, report.model_dump(mode='json'))
    return report


def collect_judged_records(
    plans: Sequence[RunPlan],
    runs: Sequence[report_model.RunReport],
    required: Collection[Requirement],
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
        if folder is not None and report.status is report_model.Status.COMPLETE:
            if timed:
                found += _read_records(folder / TIMINGS, 'records')
            found += _read_records(folder / OVER_TIME, 'metrics')
    return tuple(found)


_RECORDS = TypeAdapter(list[MetricRecord])


def _read_records(file: Path, key: str) -> list[MetricRecord]:
    if not file.exists():
        return []
    caught, problem = (LookupError, TypeError, ValidationError), f'{file} is malformed'
    with errors_as(RunError, problem, caught, remedy='start over with --fresh'):
        return _RECORDS.validate_python(files.read_json(file)[key])
