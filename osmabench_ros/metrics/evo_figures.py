"""The figures of a trajectory by the evo library itself, beside our own; it is GPL-3, optional."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from osmabench_ros.errors import MetricError, MissingDependencyError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.metrics.trajectory import DeltaUnit, TrajectoryAlignment
from osmabench_ros.metrics.trajectory_records import TrajectorySettings


def evo_figures(
    reference: StampedTrajectory, estimate: StampedTrajectory, settings: TrajectorySettings
) -> dict[str, float]:
    """Return what evo computes after the alignment, under the names of our own figures.

    Parameters
    ----------
    reference, estimate : StampedTrajectory
        As recorded; evo associates and aligns them.
    settings : TrajectorySettings
        As for `score_trajectory`. Relative errors over seconds are left out: evo has no such
        interval.

    Raises
    ------
    MissingDependencyError
        If evo is not installed.
    MetricError
        If evo refuses the trajectories.
    """
    evo = _evo()
    try:
        true, own = evo.sync.associate_trajectories(
            _converted(evo, reference),
            _converted(evo, estimate),
            max_diff=settings.max_difference_s,
            offset_2=settings.offset_s,
        )
        _align(own, true, settings.alignment)
        return _figures(evo, true, own, settings)
    except evo.EvoException as error:
        raise MetricError(f'evo: {error}') from error


def _align(own: Any, true: Any, kind: TrajectoryAlignment) -> None:
    if kind is TrajectoryAlignment.ORIGIN:
        own.align_origin(true)
    elif kind is not TrajectoryAlignment.NONE:
        own.align(true, correct_scale=kind is TrajectoryAlignment.SIM3)


def _figures(evo: Any, true: Any, own: Any, settings: TrajectorySettings) -> dict[str, float]:
    metrics, interval = evo.metrics, settings.interval
    units = {DeltaUnit.FRAMES: evo.Unit.frames, DeltaUnit.METRES: evo.Unit.meters}
    found: dict[str, float] = {}
    for part, unit, relation in (
        ('translation', 'm', metrics.PoseRelation.translation_part),
        ('rotation', 'deg', metrics.PoseRelation.rotation_angle_deg),
    ):
        computed = {'ape': metrics.APE(relation)}
        if interval.unit in units:
            computed['rpe'] = metrics.RPE(
                relation,
                interval.delta,
                units[interval.unit],
                interval.tolerance,
                all_pairs=interval.all_pairs,
            )
        for name, metric in computed.items():
            metric.process_data((true, own))
            for figure, value in metric.get_all_statistics().items():
                found[f'{name}_{part}_{figure}_{unit}'] = float(value)
    return found


def _converted(evo: Any, trajectory: StampedTrajectory) -> Any:
    poses = [trajectory.pose(row).matrix for row in range(len(trajectory))]
    return evo.PoseTrajectory3D(poses_se3=poses, timestamps=trajectory.stamps_ns / 1e9)


def _evo() -> Any:
    try:
        from evo import EvoException
        from evo.core import metrics, sync
        from evo.core.trajectory import PoseTrajectory3D
        from evo.core.units import Unit
    except ImportError as error:
        raise MissingDependencyError(
            f'figures by evo need evo ({error}); pip install osmabench_ros[trajectory]'
        ) from error
    return SimpleNamespace(
        EvoException=EvoException,
        PoseTrajectory3D=PoseTrajectory3D,
        Unit=Unit,
        metrics=metrics,
        sync=sync,
    )
