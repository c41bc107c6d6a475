"""The report of a finished run, valid as long as its inputs are unchanged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from osmabench_ros.base.files import read_json, sha256_of, write_json, write_text
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import RunError
from osmabench_ros.runs.evaluate.over_time import GROWTH
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import GROUND_TRUTH_FOLDER, QUESTIONS_FILE
from osmabench_ros.runs.results.report_model import RunReport
from osmabench_ros.runs.results.results_folder import MANIFEST

RESULTS = 'results'
"""Key of a run's manifest: digests of its files of figures, once they are all there."""


FIGURES = 'figures.json'
"""Beside the report of a run: what the report of many runs has of it."""
ACCURACIES = ('accuracy', 'accuracy_of_all')
"""Metrics that are needed by category too: maps are compared over what all of them can serve."""


def finish_run(plan: RunPlan) -> None:
    """Record the digests of a run's results in its manifest, and its figures over all classes."""
    manifest = plan.directory / MANIFEST
    before = read_json(manifest)
    files = (plan.report_file, plan.directory / GROWTH)
    results = {file.name: sha256_of(file) for file in files if file.exists()}
    if before.get(RESULTS) != results:
        write_json(manifest, {**before, RESULTS: results})
    if plan.report_file.exists() and not has_figures(plan.directory):
        report = read_model(RunReport, plan.report_file)
        write_text(plan.directory / FIGURES, noted_part(report).model_dump_json())


def noted_part(report: RunReport) -> RunReport:
    """Return a report without single classes, which are nineteen parts in twenty of it."""
    metrics = (x for x in report.metrics if not x.class_name or x.metric in ACCURACIES)
    return report.model_copy(update={'metrics': tuple(metrics)})


def has_figures(directory: Path) -> bool:
    """Return whether the figures of a run are noted, and its report was not written since."""
    noted, report = directory / FIGURES, directory / 'report.json'
    return noted.is_file() and noted.stat().st_mtime_ns >= report.stat().st_mtime_ns


def read_finished(plan: RunPlan) -> RunReport:
    """Return the report of a run that is done; RunError names all inputs that changed since."""
    recorded = read_json(plan.directory / MANIFEST).get(RESULTS, {})
    changed = [name for name in recorded if _digest(plan.directory / name) != recorded[name]]
    if not changed:
        report = read_model(RunReport, plan.report_file)
        changed = list(_changed_sources(plan, report))
    if changed:
        raise RunError(
            f'run {plan.identity.run_id} is done, but has changed since: {", ".join(changed)}; '
            f'restore it in {plan.directory}, or start over with --fresh'
        )
    return report


def _changed_sources(plan: RunPlan, report: RunReport) -> Iterator[str]:
    for name, path in (
        ('map', plan.map_directory),
        ('ground_truth', plan.shared_directory / GROUND_TRUTH_FOLDER),
        ('questions', plan.shared_directory / QUESTIONS_FILE),
    ):
        if name in report.hashes and _digest(path) != report.hashes[name]:
            yield str(path)


def _digest(path: Path) -> str:
    """Return the digest of a file or folder, empty if it is gone."""
    return sha256_of(path) if path.exists() else ''
