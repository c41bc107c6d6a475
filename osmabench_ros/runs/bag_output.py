"""The folder that gets the evaluation of a bag."""

from __future__ import annotations

from pathlib import Path

from osmabench_ros.base.files import Existing, check_folder, read_json, write_text
from osmabench_ros.base.owned_folder import is_blank
from osmabench_ros.errors import OsmabenchError, RunError
from osmabench_ros.geometry.tum_file import tum_text
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.runs.bag_report import BAG_SCHEMA
from osmabench_ros.runs.evaluation import REPORT

TRAJECTORY_FOLDER = 'trajectory'


def check_output(directory: Path, *, replace: bool) -> None:
    """Raise RunError for a folder that holds anything but an evaluation that may be replaced."""
    check_folder(directory, Existing.REPLACE)
    if not directory.exists() or is_blank(directory):
        return
    report = directory / REPORT
    try:
        is_ours = read_json(report).get('schema_name') == BAG_SCHEMA
    except (OsmabenchError, AttributeError):
        is_ours = False
    if not is_ours:
        raise RunError(f'{directory} holds something else; choose another --out')
    if not replace:
        raise RunError(f'{report} exists; use --force to replace it, or choose another --out')


def write_poses(score: TrajectoryScore | None, directory: Path) -> None:
    """Write the compared trajectories, if there are any, as TUM files into a folder of theirs."""
    if score is None:
        return
    folder = directory / TRAJECTORY_FOLDER
    for name, part in (('reference', score.reference), ('estimate', score.estimate)):
        write_text(folder / f'{name}.tum', tum_text(part))
