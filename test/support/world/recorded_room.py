"""Bags of the plain room: a map in another frame, poses with drift, TF, images' stamps."""

import numpy as np

from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory, format_tum
from osmabench_ros.maps.semantic_map import transform_map
from support.world import bags
from support.world.maps import LABELS, labelled_map

START_NS = 1_700_000_000 * bags.S
# The map's frame in the world.
WORLD_TO_MAP = Pose.from_yaw(0.4, (2.0, -1.0, 0.1))


def map_in_own_frame():
    """Return the faultless map in the coordinates of frame "map"."""
    return transform_map(labelled_map(), Similarity(WORLD_TO_MAP.inverse()), 'map')


def true_poses(count=40):
    """Return the true poses of base_link in the world at 10 Hz, on a curve in three dimensions."""
    times = np.arange(count) / 10
    return [
        (
            START_NS + round(t * bags.S),
            Pose.from_yaw(0.3 * t, (np.cos(t), np.sin(t), 0.2 * np.sin(2 * t))),
        )
        for t in times
    ]


def write_true_poses(path):
    path.write_text(format_tum(StampedTrajectory.from_poses(true_poses())))


def labels():
    classes = [
        bags.make('osmabench_ros/LabelClass', id=item.id, name=item.name, structure=item.structure)
        for item in LABELS.classes
    ]
    message = bags.make(
        'osmabench_ros/LabelInfo', header=bags.header(START_NS), name='room', classes=classes
    )
    return '/label_info', START_NS, message


def poses():
    """Yield true poses, and the stack's own in frame "map" with half a centimetre of noise."""
    rng = np.random.default_rng(5)
    for stamp_ns, pose in true_poses():
        yield (
            '/ground_truth/odometry',
            stamp_ns,
            bags.odometry(pose, stamp_ns, 'world', 'base_link'),
        )
        own = WORLD_TO_MAP.inverse() @ pose
        noisy = Pose(own.rotation, own.translation + rng.normal(0, 0.005, 3))
        yield '/slam/odom', stamp_ns, bags.odometry(noisy, stamp_ns, 'map', 'base_link')
        yield '/slam/pose', stamp_ns, bags.pose_stamped(noisy, stamp_ns, 'map')


def cloud(made, *, stamp_ns=START_NS + 3 * bags.S):
    assert made.dense is not None
    message = bags.point_cloud(made.dense, stamp_ns, made.header.frame_id)
    return '/mapper/cloud', stamp_ns + bags.S // 2, message


def images():
    """Yield images of one pixel at 10 Hz, each 20 ms late."""
    for stamp_ns, _ in true_poses():
        image = bags.make(
            'sensor_msgs/Image',
            header=bags.header(stamp_ns, 'camera'),
            height=1, width=1, encoding='rgb8', step=3, data=np.zeros(3, np.uint8),
        )  # fmt: skip
        yield '/camera/color/image_raw', stamp_ns + bags.S // 50, image


def frames():
    """Return TF: the frame of the map in the world."""
    return '/tf_static', START_NS, bags.tf(bags.transform('world', 'map', WORLD_TO_MAP))


def own_map(made, log_ns=START_NS + 3 * bags.S):
    announcement, chunks = bags.map_messages(made)
    yield '/semantic_map', log_ns, announcement
    for chunk in chunks:
        yield '/semantic_map_chunk', log_ns, chunk


def write_room(folder, *messages):
    """Write a bag, in the order of log times."""
    return bags.write_messages(folder, sorted(messages, key=lambda item: item[1]))
