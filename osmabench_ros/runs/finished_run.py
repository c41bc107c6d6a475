"""The report of a run that is done, which counts as long as nothing it rests on has changed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError

from osmabench_ros.base.files import read_json, sha256_of, write_json
from osmabench_ros.base.ledger import absolute
from osmabench_ros.base.owned_folder import foreign_in
from osmabench_ros.errors import RunError
from osmabench_ros.runs.growth import GROWTH
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import GROUND_TRUTH_FOLDER, QUESTIONS_FILE
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.runs.results_folder import MANIFEST

RESULTS = 'results'
"""Key of a run's manifest: digests of its files of figures, once they are all there."""


def finish_run(plan: RunPlan) -> None:
    """Note in the manifest of a run what its figures are."""
    manifest = plan.directory / MANIFEST
    before = read_json(manifest)
    files = (plan.report_file, plan.directory / GROWTH)
    results = {file.name: sha256_of(file) for file in files if file.exists()}
    if before.get(RESULTS) != results:
        write_json(manifest, {**before, RESULTS: results})


def read_finished(plan: RunPlan) -> RunReport:
    """Return the report of a run that is done.

    Raises RunError if the report, or the map, ground truth or questions that it was made from, are
    not what they were; names all that changed.
    """
    told = read_json(plan.directory / MANIFEST).get(RESULTS, {})
    changed = [name for name in told if _digest(plan.directory / name) != told[name]]
    if not changed:
        try:
            report = RunReport.model_validate(read_json(plan.report_file))
        except ValidationError as error:
            raise RunError(
                f'{plan.report_file} is no report of a run: {error.errors()[0]["msg"]}; '
                'restore it, or start over with --fresh'
            ) from error
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
    """Return the digest of what is ours of a file or folder, empty if it is gone."""
    path = absolute(path)
    return sha256_of(path, without=foreign_in(path)) if path.exists() else ''
