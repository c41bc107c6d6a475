"""Trajectories and frames out of messages, and trajectories by their names."""

import numpy as np
import pytest
from support.world.bags import (
    S,
    header,
    make,
    odometry,
    pose_message,
    pose_stamped,
    tf,
    transform,
    write_messages,
)

from osmabench_ros.errors import ConfigError, ContractError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.runs.bag_content import read_trajectory
from osmabench_ros.sequences.topics import read_transforms, trajectory_of

POSES = [Pose.from_yaw(0.1 * i, (i, 2.0, 0.0)) for i in range(5)]


def covered(pose, stamp_ns):
    inner = make('geometry_msgs/PoseWithCovariance', pose=pose_message(pose))
    own = header(stamp_ns, 'map')
    return make('geometry_msgs/PoseWithCovarianceStamped', header=own, pose=inner)


MAKERS = {
    'geometry_msgs/msg/PoseStamped': lambda pose, stamp: pose_stamped(pose, stamp, 'map'),
    'geometry_msgs/msg/PoseWithCovarianceStamped': covered,
    'nav_msgs/msg/Odometry': lambda pose, stamp: odometry(pose, stamp, 'map', 'base'),
    'geometry_msgs/msg/TransformStamped': lambda pose, stamp: transform(
        'map', 'base', pose, stamp
    ),
}


@pytest.mark.parametrize('kind', MAKERS)
def test_every_kind_of_pose_message_is_read(kind):
    messages = [MAKERS[kind](pose, (9 - i) * S + 7) for i, pose in enumerate(POSES)]
    found = trajectory_of(messages, kind, '/pose')
    assert found.stamps_ns.tolist() == [(5 + i) * S + 7 for i in range(5)]
    np.testing.assert_array_equal(found.positions[:, 0], [4, 3, 2, 1, 0])
    np.testing.assert_allclose(found.rotations[0], POSES[4].rotation, atol=1e-12)
    assert found.frame_id == 'map'
    assert found.child_frame_id == ('base' if 'Pose' not in kind else '')


def test_of_a_path_the_last_message_counts():
    stamped = [pose_stamped(pose, i * S, 'map') for i, pose in enumerate(POSES)]
    paths = [make('nav_msgs/Path', header=header(0, 'map'), poses=stamped[:n]) for n in (2, 4)]
    assert len(trajectory_of(paths, 'nav_msgs/msg/Path', '/path')) == 4


BROKEN = pose_stamped(POSES[0], 0)
BROKEN.pose.orientation.w = float('nan')
MIXED = [pose_stamped(POSES[0], index, frame) for index, frame in enumerate(('map', 'odom'))]


@pytest.mark.parametrize(
    ('messages', 'kind', 'reason'),
    [
        ([BROKEN], 'geometry_msgs/msg/PoseStamped', '"/pose": a quaternion'),
        (MIXED, 'geometry_msgs/msg/PoseStamped', 'several frames'),
        ([], 'sensor_msgs/msg/Image', 'Image holds no poses'),
        ([], 'nav_msgs/msg/Path', '"/pose": there is no pose'),
    ],
)
def test_wrong_messages_are_named(messages, kind, reason):
    with pytest.raises(ContractError, match=reason):
        trajectory_of(messages, kind, '/pose')


def test_a_chain_of_tf_is_a_trajectory(tmp_path):
    messages = [('/tf_static', 0, tf(transform('base', 'camera', Pose.from_yaw(0, (0, 0, 1.5)))))]
    for i, pose in enumerate(POSES):
        messages.append(('/tf', i * S, tf(transform('/odom', '/base', pose, i * S))))
        messages.append(('/tf', i * S, tf(transform('map', 'odom', Pose.identity(), i * S))))
    bag = write_messages(tmp_path / 'bag', messages)
    found = read_trajectory(f'{bag}:/tf:map.camera')
    np.testing.assert_allclose(found.positions[:, 2], 1.5)
    np.testing.assert_allclose(found.positions[:, 0], [0, 1, 2, 3, 4])
    for name, reason in (
        ('/tf:map', 'names no frames'), ('/odom', 'is not in the bag'),
        ('/tf:map.arm', 'does not connect "map" with "arm"'),
    ):  # fmt: skip
        with pytest.raises((ConfigError, ContractError), match=reason):
            read_trajectory(f'{bag}:{name}')
    with pytest.raises(ContractError, match='"/tf": a transform from "" to "base"'):
        list(read_transforms([('/tf', tf(transform('', 'base', POSES[0])))]))
