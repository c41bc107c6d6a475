"""What a report has to say about the condition of a run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import PATH_FILE, scene_of
from osmabench_ros.runs.results_folder import MANIFEST
from osmabench_ros.simulation.conditions import load_condition
from osmabench_ros.simulation.inert_parts import inert_parts
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.trajectory import sample_trajectory

KEY = 'warnings'
"""Of the manifest of a run."""


def condition_warnings(plan: RunPlan) -> tuple[str, ...]:
    """Return what of the condition of a run does not act on its path, and warn of it.

    Parameters
    ----------
    plan : RunPlan
        The run; its shared folder must be prepared. One of a recorded scene has no such path.
    """
    if plan.scene.sequence is not None:
        return ()
    condition, rate_hz = load_condition(plan.condition), plan.config.trajectory.frame_rate_hz
    path = RobotPath.read(plan.shared_directory / PATH_FILE)
    trajectory = sample_trajectory(path, condition.motion_at(rate_hz), rate_hz)
    found = inert_parts(condition, scene_of(plan), trajectory)
    for text in found:
        warnings.warn(text, OsmabenchWarning, stacklevel=2)
    return found


def noted_warnings(plans: Sequence[RunPlan]) -> tuple[str, ...]:
    """Return the warnings in the manifests of runs, each once."""
    manifests = (plan.directory / MANIFEST for plan in plans)
    found = [text for path in manifests if path.exists() for text in read_json(path).get(KEY, ())]
    return tuple(dict.fromkeys(found))
