"""Builds the report of the runs in the folder of a matrix again, also of a part of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

from osmabench_ros.base.files import claim_folder, read_json
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError, RunError, choose
from osmabench_ros.reports.matrix import (
    MOST_ON_ONE_PAGE,
    Origin,
    list_required_figures,
    write_matrix_report,
)
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunOnDisk
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import MATRIX_SCHEMA, MatrixReport, RunReport
from osmabench_ros.runs.run_manifest import (
    REQUIREMENTS,
    compare_configs,
    config_of_run,
    read_manifest,
    undisturbed,
)

_READ_AT_ONCE = 100
"""Reports between two lines of progress."""

Planned = tuple[RunOnDisk, RunPlan]


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
    with ExitStack() as stack:
        if out is None:
            _refuse_other_report(target)
        else:
            claim_folder(target)
        stack.enter_context(undisturbed(target))
        runs = list(matrix.runs())
        left = tuple(run.run_id for run in runs if not matrix.has_report(run))
        if len(left) == len(runs):
            raise RunError(f'no run in {matrix.root} is done yet')
        planned = [(run, matrix.plan(run.run_id)) for run in runs if matrix.has_report(run)]
        for _, plan in planned:
            _check_configuration(plan)
        if reference:
            planned = _put_first(reference, planned)
        return write_matrix_report(
            matrix.config,
            [plan for _, plan in planned],
            _read_reports(matrix, planned, progress),
            target,
            Origin(matrix.config_digest, left, tuple(_describe_mixed_versions(matrix))),
        )


def _check_configuration(plan: RunPlan) -> None:
    noted = read_manifest(plan.directory).get('config')
    if noted is None:
        return
    found = compare_configs(noted, config_of_run(plan))
    # Thresholds judge metrics and change none.
    changed = '; '.join(str(item) for item in found if item.key != REQUIREMENTS)
    if changed:
        raise RunError(
            f'{plan.directory} was made with another configuration than {plan.root}: {changed}; '
            'move it away, or copy runs of one configuration'
        )


def _put_first(mapper: str, planned: list[Planned]) -> list[Planned]:
    names = [plan.identity.mapper for _, plan in planned]
    choose(mapper, set(names), ConfigError, f'no run is of mapper "{mapper}"')
    return sorted(planned, key=lambda item: item[1].identity.mapper != mapper)


def _refuse_other_report(root: Path) -> None:
    file = root / 'report.json'
    schema = read_json(file).get('schema_name') if file.exists() else MATRIX_SCHEMA
    if schema != MATRIX_SCHEMA:
        raise RunError(f'{file} is not a report of a matrix ({schema}); choose another --out')


def _describe_mixed_versions(matrix: MatrixOnDisk) -> Iterator[str]:
    for name, found in matrix.versions.items():
        if len(found) > 1:
            versions = ' or '.join(sorted(found))
            yield f'the runs in {matrix.root} were scored with {name} {versions}'


def _read_reports(
    matrix: MatrixOnDisk, planned: Sequence[Planned], progress: Progress
) -> Iterator[RunReport]:
    classes = list_required_figures(matrix.config) if len(planned) > MOST_ON_ONE_PAGE else None
    for number, (run, _) in enumerate(planned):
        if number % _READ_AT_ONCE == 0:
            progress(f'reading report {number + 1} of {len(planned)}', number / len(planned))
        report = matrix.report(run, classes)
        assert report is not None
        yield report
