"""Joins the reports of the runs of a matrix, also again from the folder of the runs."""

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import groupby, islice
from pathlib import Path
from typing import Any

from osmabench_ros.base import files
from osmabench_ros.base.processes import without_garbage_collection
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import ConfigError, RunError, choose
from osmabench_ros.metrics.record import COLUMNS, RUN_COLUMNS, MetricRecord
from osmabench_ros.reports.cells import write_csv_text
from osmabench_ros.reports.content import read_dialogue
from osmabench_ros.reports.page.page import RUNS_A_PAGE, PagedReport, write_page
from osmabench_ros.reports.tidy import Run, select_table_headlines
from osmabench_ros.runs import evaluation, matrix_on_disk, report_model, run_manifest
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunOnDisk
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.preparation import COVERAGE_FILE
from osmabench_ros.runs.report_model import MatrixReport, RunReport
from osmabench_ros.runs.shared_path import driven_trajectory
from osmabench_ros.simulation.schedule import Moment
from osmabench_ros.suites.hypo3d import suite as hypo3d
from osmabench_ros.suites.hypo3d.generation import SUITE as HYPO3D
from osmabench_ros.vqa.exact.generation import uneven_mix
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Question
from osmabench_ros.vqa.scores import common_accuracies

_MOST_NAMED = 3
# Runs in one file; the report of more is a first page and pages of runs.
MOST_ON_ONE_PAGE = 100


def write_matrix_report(
    config: MatrixConfig,
    plans: Sequence[RunPlan],
    reports: Iterable[RunReport],
    root: Path,
    unfinished: Sequence[str] = (),
    notes: Sequence[str] = (),
    digest: str = '',
) -> MatrixReport:
    """Write report.json, report.csv and report.html of a matrix into its folder.

    `unfinished` are the runs without a report, `digest` is of the configuration as it was run.
    With more than `MOST_ON_ONE_PAGE` runs, report.html is about the whole and the runs are on
    pages of `PAGES`, and metrics of single classes stay in the report.json of each run; then the
    returned report has only the headline metrics.
    """
    digest = digest or config_digest(config)
    make = partial(_make_matrix_report, config, plans, digest, unfinished)
    if len(plans) > MOST_ON_ONE_PAGE:
        with without_garbage_collection():
            return _write_large_report(config, plans, reports, root, partial(make, notes))
    runs = with_changed_scenes(with_common_accuracies(tuple(reports)), plans)
    judged = evaluation.collect_judged_records(plans, runs, config.requirements)
    report = make((*notes, *_list_uneven_mixes(plans)), runs, judged)
    files.write_json(root / 'report.json', report.model_dump(mode='json'))
    files.write_text(root / 'report.csv', write_csv_text(COLUMNS, map(vars, report.metrics)))
    write_page(report, plans, root)
    for page in (root / run_manifest.PAGES).glob('*.html'):
        files.discard(page)
    return report


def with_common_accuracies(runs: Sequence[RunReport]) -> tuple[RunReport, ...]:
    """Return reports with the accuracies over what every map of a scene can serve."""
    scenes: dict[tuple[object, ...], dict[str, list[MetricRecord]]] = defaultdict(dict)
    keys: dict[str, dict[str, Any]] = {}
    for run in runs:
        for item in run.metrics:
            if item.metric in report_model.ACCURACIES:
                scene = scenes[item.dataset, item.scene, item.seed, item.path_seed]
                scene.setdefault(run.run_id, []).append(item)
                keys[run.run_id] = {name: getattr(item, name) for name in RUN_COLUMNS}
    common = {key: item for one in scenes.values() for key, item in common_accuracies(one).items()}
    added = {key: [replace(x, **keys[key]) for x in records] for key, records in common.items()}
    return tuple(
        run.model_copy(update={'metrics': (*run.metrics, *added.get(run.run_id, ()))})
        for run in runs
    )


# A map knows a change if more than this share of the answers that it changes are right.
UPDATED = 0.5


def with_changed_scenes(
    reports: Sequence[RunReport], plans: Sequence[RunPlan]
) -> tuple[RunReport, ...]:
    """Return reports with the metrics of Hypo3D that need more runs than the matrix has.

    `accuracy_remapped` and `imagination_gap` are of maps of the changed scenes, the others of
    runs in which the scene changes halfway.
    """
    by_id = {plan.identity.run_id: plan for plan in plans}
    found = []
    for report in reports:
        plan = by_id.get(report.run_id)
        options = None if plan is None else hypo3d.hypo3d_options(plan.config.suites)
        is_complete = report.status is report_model.Status.COMPLETE
        if plan and is_complete and options and not options.before:
            records = (*_score_remapped(plan), *_score_live(plan))
            added = report_model.join_run(plan.identity, records)
            report = report.model_copy(update={'metrics': (*report.metrics, *added)})
        found.append(report)
    return tuple(found)


def _score_remapped(plan: RunPlan) -> Iterator[MetricRecord]:
    remapped = matrix_on_disk.find_derived_runs(plan, matrix_on_disk.REMAPPED)
    found = [read_dialogue(other.directory) for other in remapped]
    questions = [item for dialogue in found for item in dialogue.questions]
    verdicts = [item for dialogue in found for item in dialogue.verdicts]
    if questions:
        yield from hypo3d.accuracies(questions, verdicts)
        own = read_dialogue(plan.directory)
        yield from hypo3d.imagination_gap([*own.questions, *questions], [*own.verdicts, *verdicts])


def _score_live(plan: RunPlan) -> Iterator[MetricRecord]:
    """Yield how far the map of a run in which the scene changed came, and how soon.

    `accuracy_live` is the accuracy of the last map over the answers that the change changes,
    `frames_until_updated` how many frames after the change its maps begin to have more than half
    of them right for good; not applicable if they never do.
    """
    for other in matrix_on_disk.find_derived_runs(plan, matrix_on_disk.LIVE):
        report = read_model(evaluation.ReportOverTime, other.directory / evaluation.OVER_TIME)
        seen = [
            (moment.frames, record)
            for moment in report.moments
            for record in moment.metrics
            if (record.suite, record.metric, record.class_name) == (HYPO3D, hypo3d.AFFECTED, '')
        ]
        first = _find_first_changed_frame(other)
        if not seen or first is None:
            continue
        _, last = seen[-1]
        make = partial(MetricRecord, HYPO3D, '')
        yield make('accuracy_live', '', last.value, last.low, last.high, last.n)
        late = [frames for frames, record in seen if (record.value or 0.0) <= UPDATED]
        after = [frames for frames, _ in seen if frames > max((first, *late))]
        frames = after[0] - first if after else None
        yield make('frames_until_updated', '', frames, n=last.n, higher_is_better=False)


def _find_first_changed_frame(plan: RunPlan) -> int | None:
    """Return the number of frames before the scene of a run changes, None if it does not."""
    change = plan.condition.scene_change
    if change is None:
        return None
    for number, item in enumerate(driven_trajectory(plan).frames):
        if change.span.contains(Moment(item.segment, item.segment_progress, item.time_s)):
            return number
    return None


def _make_matrix_report(
    config: MatrixConfig,
    plans: Sequence[RunPlan],
    digest: str,
    unfinished: Sequence[str],
    notes: Sequence[str],
    runs: Sequence[RunReport],
    judged: Sequence[MetricRecord],
) -> MatrixReport:
    report_model.check_alike(runs)
    may_be_partial = {plan.identity.run_id for plan in plans if plan.mapper.allow_partial}
    partial = {run.run_id for run in runs if not run.map_complete} - may_be_partial
    faults = (report_model.partial_fault(x.run_id) for x in runs if x.run_id in partial)
    failed = (*faults, *report_model.unmet(config.requirements, tuple(judged)))
    complete = all(run.status is report_model.Status.COMPLETE for run in runs)
    return MatrixReport(
        name=config.name,
        passed=complete and not failed and not unfinished,
        runs=tuple(runs),
        failed_requirements=failed,
        versions=evaluation.versions(),
        hashes={'config': digest},
        warnings=(
            *_describe_unfinished(unfinished, len(plans)),
            *notes,
            *run_manifest.read_warnings(plans),
            *_list_doubts(plans, runs),
            *list_common_limits(runs),
            *(f'{run.run_id}: {text}' for run in runs for text in run.remarks),
        ),
    )


def _write_large_report(
    config: MatrixConfig,
    plans: Sequence[RunPlan],
    reports: Iterable[RunReport],
    root: Path,
    make: Callable[[Sequence[RunReport], Sequence[MetricRecord]], MatrixReport],
) -> MatrixReport:
    """Write the report while the reports of the runs are read; keeps only their headlines."""
    required = list_required_metrics(config)
    kept: list[Run] = []
    judged: list[MetricRecord] = []
    with (
        files.atomic_directory(root / run_manifest.PAGES, files.Existing.MERGE) as folder,
        files.atomic_write(root / 'report.json') as json_draft,
        files.atomic_write(root / 'report.csv') as csv_draft,
        json_draft.open('w') as text,
        csv_draft.open('w') as table,
    ):
        pages = PagedReport(config.name, len(plans), folder)
        text.write('{"runs": [')
        table.write(write_csv_text(COLUMNS, ()))
        grouped = _group_by_scene(plans, reports)
        runs = (Run(plan, _drop_classes(report, required)) for plan, report in grouped)
        while batch := list(islice(runs, RUNS_A_PAGE)):
            for run in batch:
                text.write((',\n' if kept else '') + run.report.model_dump_json())
                table.write(write_csv_text(COLUMNS, map(vars, run.report.metrics), names=False))
                if required:
                    own = evaluation.collect_judged_records(
                        [run.plan], [run.report], config.requirements
                    )
                    judged += (item for item in own if _make_key(item) in required)
                kept.append(Run(run.plan, _select_headlines(run.report)))
            pages.write_runs(batch)
        report = make([run.report for run in kept], judged)
        rest = json.dumps(report.model_dump(mode='json', exclude={'runs'}), sort_keys=True)
        text.write(f'],\n{rest[1:]}\n')
    pages.write_first_page(report, kept, root)
    return report


def _group_by_scene(
    plans: Sequence[RunPlan], reports: Iterable[RunReport]
) -> Iterator[tuple[RunPlan, RunReport]]:
    """Yield reports with what all maps of a scene can serve; they follow each other."""
    pairs = zip(plans, reports, strict=True)
    for _, group in groupby(pairs, lambda pair: pair[0].identity.scene_key):
        of_scene, found = zip(*group, strict=True)
        whole = with_changed_scenes(with_common_accuracies(found), of_scene)
        yield from zip(of_scene, whole, strict=True)


def list_required_metrics(config: MatrixConfig) -> set[tuple[str, str, str]]:
    """Return suite, metric and class of the values that have thresholds."""
    return {(item.suite, item.metric, item.class_name) for item in config.requirements}


def _drop_classes(report: RunReport, required: Collection[tuple[str, str, str]]) -> RunReport:
    """Return a report without metrics of single classes, except required ones."""
    kept = tuple(x for x in report.metrics if not x.class_name or _make_key(x) in required)
    return report.model_copy(update={'metrics': kept})


def _make_key(record: MetricRecord) -> tuple[str, str, str]:
    return record.suite, record.metric, record.class_name


def _select_headlines(report: RunReport) -> RunReport:
    columns = select_table_headlines([report.metrics])
    shown = (item.find_record(report.metrics) for item in columns)
    return report.model_copy(update={'metrics': tuple(item for item in shown if item)})


# Of the visible surface a path should see that fraction, and of a suite ask that many.
LEAST_SEEN, FEWEST_QUESTIONS = 0.5, 50


def _list_doubts(plans: Sequence[RunPlan], runs: Sequence[RunReport]) -> Iterator[str]:
    """Yield the reasons to doubt the scores of a scene: a path that sees little, few questions."""
    by_id = {report.run_id: report for report in runs}
    scenes = {plan.shared_directory: plan for plan in reversed(plans)}
    for folder, plan in reversed(scenes.items()):
        key, report = plan.identity.scene_key, by_id.get(plan.identity.run_id)
        coverage = folder / COVERAGE_FILE
        seen = float(files.read_json(coverage)['share']) if coverage.exists() else 1.0
        if seen < LEAST_SEEN:
            yield (
                f'{key}: the path sees only {seen:.0%} of the surface that can be seen, and '
                'metrics are over that part; it needs more frames (trajectory.max_frames) or '
                'goals (trajectory.goals)'
            )
        for item in () if report is None else report.metrics:
            is_accuracy = item.metric == 'accuracy' and not item.class_name
            if is_accuracy and item.mode != 'compat' and 0 < item.n < FEWEST_QUESTIONS:
                yield (
                    f'{key}: {item.suite} asks only {item.n} questions, so that one answer weighs '
                    f'{100 / item.n:.1f} points'
                )


def list_common_limits(runs: Iterable[RunReport]) -> Iterator[str]:
    """Yield which share of questions common accuracies are over, and the maps that limit it.

    Another map that serves little changes that metric of all maps of a matrix.
    """
    totals: dict[str, Counter[str]] = defaultdict(Counter)
    limiting: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        asked = {x.suite: x.n for x in run.metrics if (x.metric, x.class_name) == ('accuracy', '')}
        for item in run.metrics:
            if item.metric == 'accuracy_of_common':
                totals[item.suite] += Counter(common=item.n, asked=asked[item.suite])
            elif item.metric == 'accuracy' and item.class_name and item.value is None:
                limiting[item.suite][item.mapper] = None
    for suite, total in totals.items():
        share = total['common'] / total['asked']
        names = ', '.join(limiting[suite])
        due = f', due to {names}' if names else ''
        yield f'{suite}: accuracy_of_common is over {share:.0%} of the questions{due}'


def _list_uneven_mixes(plans: Sequence[RunPlan]) -> Iterator[str]:
    """Yield which scenes do not ask each category alike, and what that means for means."""
    scenes = {plan.questions_file: plan for plan in reversed(plans)}
    found = [
        f'{plan.identity.scene_key}: {text}'
        for file, plan in reversed(scenes.items())
        if file.exists() and (text := uneven_mix(read_records(file, Question)))
    ]
    yield from found
    if found and len(scenes) > 1:
        yield 'VQA macro weighs categories alike; over scenes compare that, not VQA'


def _describe_unfinished(unfinished: Sequence[str], others: int) -> Iterator[str]:
    if unfinished:
        named = ', '.join(unfinished[:_MOST_NAMED])
        more = ' and others' if len(unfinished) > _MOST_NAMED else ''
        count = f'{len(unfinished)} of {len(unfinished) + others} runs'
        yield f'the report is of a part: {count} have no metrics yet: {named}{more}'


# Reports between two lines of progress.
_READ_AT_ONCE = 100


def rebuild_report(
    matrix: MatrixOnDisk,
    out: Path | None = None,
    *,
    reference: str = '',
    progress: Progress = silent,
) -> MatrixReport:
    """Write report.json, report.csv and report.html of the finished runs in a folder.

    Parameters
    ----------
    matrix : MatrixOnDisk
        The folder. Runs may have been copied there that other machines made.
    out : Path, optional
        Folder of the report; by default the folder of the runs.
    reference : str
        Mapper that comes first, with which the others are compared; by default the one in the
        configuration.
    progress : callable
        Gets how many reports were read.

    Raises
    ------
    RunError
        If no run has a report, a run was made with another configuration, or the folder is in
        use.
    ConfigError
        If no mapper is called `reference`.
    """
    target = matrix.root if out is None else out
    if out is None:
        _refuse_other_report(target)
    else:
        files.claim_folder(target)
    with run_manifest.lock_results(target):
        runs = list(matrix.runs())
        left = tuple(run.run_id for run in runs if not run.has_report)
        if len(left) == len(runs):
            raise RunError(f'no run in {matrix.root} is done yet')
        planned = [(run, matrix.plan(run.run_id)) for run in runs if run.has_report]
        for _, plan in planned:
            _check_configuration(plan)
        if reference:
            names = {plan.identity.mapper for _, plan in planned}
            choose(reference, names, ConfigError, f'no run is of mapper "{reference}"')
            planned.sort(key=lambda item: item[1].identity.mapper != reference)
        return write_matrix_report(
            matrix.config,
            [plan for _, plan in planned],
            _read_reports(matrix, planned, progress),
            target,
            left,
            tuple(_describe_mixed_versions(matrix)),
            matrix.config_digest,
        )


def _check_configuration(plan: RunPlan) -> None:
    noted = run_manifest.read_manifest(plan.directory)
    own = run_manifest.config_of_run(plan)
    found = run_manifest.compare_configs(noted.get('config', own), own)
    # Thresholds judge metrics and change none.
    changed = '; '.join(str(item) for item in found if item.key != run_manifest.REQUIREMENTS)
    if changed:
        raise RunError(
            f'{plan.directory} was made with another configuration than {plan.root}: {changed}; '
            'move it away, or copy runs of one configuration'
        )


def _refuse_other_report(root: Path) -> None:
    file = root / 'report.json'
    own = report_model.MATRIX_SCHEMA
    schema = read_model(dict[str, Any], file).get('schema_name') if file.exists() else own
    if schema != own:
        raise RunError(f'{file} is not a report of a matrix ({schema}); choose another --out')


def _describe_mixed_versions(matrix: MatrixOnDisk) -> Iterator[str]:
    for name, found in matrix.versions.items():
        if len(found) > 1:
            versions = ' or '.join(sorted(found))
            yield f'the runs in {matrix.root} were scored with {name} {versions}'


def _read_reports(
    matrix: MatrixOnDisk, planned: Sequence[tuple[RunOnDisk, RunPlan]], progress: Progress
) -> Iterator[RunReport]:
    classes = list_required_metrics(matrix.config) if len(planned) > MOST_ON_ONE_PAGE else None
    for number, (run, _) in enumerate(planned):
        if number % _READ_AT_ONCE == 0:
            progress(f'reading report {number + 1} of {len(planned)}', number / len(planned))
        report = matrix.report(run, classes)
        assert report is not None
        yield report
