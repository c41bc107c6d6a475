"""The synthetic matrix as a command leaves it, with the manifests that the synthetic one lacks."""

import shutil
from pathlib import Path

from reports.synthetic_matrix import SCENE_KEY, Matrix, config

from osmabench_ros.base.files import write_json
from osmabench_ros.reports.matrix import write_matrix_report
from osmabench_ros.runs.matrix_on_disk import FAILURE, MatrixOnDisk, note_runs
from osmabench_ros.runs.plan import config_digest, plan_runs
from osmabench_ros.runs.results.report_model import Status
from osmabench_ros.runs.results.run_manifest import config_of_run

INPUTS = {'version of osmabench_ros': '1', f'scene {SCENE_KEY}': 'a'}


def left_by_a_command(matrix: Matrix, root: Path) -> MatrixOnDisk:
    """Return a copy of a matrix with runs.json, manifests, failures and a report."""
    shutil.copytree(matrix.root, root)
    manifest = {
        'config': config().model_dump(mode='json'),
        'config_sha256': config_digest(config()),
        'inputs': INPUTS,
    }
    write_json(root / 'manifest.json', manifest)
    settings = MatrixOnDisk(root).config
    plans = plan_runs(settings, {settings.scenes[0]: SCENE_KEY}, root)
    note_runs(root, plans)
    for plan, report in zip(plans, matrix.report.runs, strict=True):
        if report.status is Status.FAILED:
            write_json(plan.directory / FAILURE, report.model_dump(mode='json'))
        data = {'dataset': 'boxes', 'scene': 'room', 'config': config_of_run(plan)}
        write_json(plan.directory / 'manifest.json', {**data, 'versions': {'numpy': '2.0'}})
    write_matrix_report(settings, plans, matrix.report.runs, root)
    return MatrixOnDisk(root)
