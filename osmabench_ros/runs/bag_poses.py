"""The stack's own poses in a bag beside the true ones."""

from __future__ import annotations

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.geometry.tum_file import read_tum
from osmabench_ros.metrics.trajectory_records import TrajectoryScore, score_trajectory
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.runs.bag_settings import BagSource
from osmabench_ros.runs.recorded_trajectories import bag_trajectory, reference_topic
from osmabench_ros.sequences.bag import Bag


def poses_of_bag(
    source: BagSource, bag: Bag, content: BagContent
) -> tuple[TrajectoryScore | None, list[str]]:
    """Return how far the stack's poses are off, None if the user names none, and remarks.

    Raises ConfigError if a topic is not there, or there are no true poses, and MetricError if the
    trajectories cannot be compared.
    """
    choice = source.trajectory
    if not choice.estimate:
        return None, []
    estimate = bag_trajectory(bag, content, choice.estimate)
    true, name = _true_poses(source, bag, content, estimate)
    remarks = [f'poses of {choice.estimate} are compared with {name}']
    score = score_trajectory(true, estimate, choice.settings)
    return score, [*remarks, *score.remarks]


def _true_poses(
    source: BagSource, bag: Bag, content: BagContent, estimate: StampedTrajectory
) -> tuple[StampedTrajectory, str]:
    choice = source.trajectory
    if choice.reference_file is not None:
        return read_tum(choice.reference_file), choice.reference_file.name
    topic = choice.reference or reference_topic(content, estimate)
    if not topic:
        raise ConfigError(
            f'{source.path} has no ground truth of poses to compare "{choice.estimate}" with; '
            'give --reference-topic or --reference-trajectory'
        )
    return bag_trajectory(bag, content, topic), topic
