import math

import numpy as np
import pytest

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.transform_tree import StampedTransform, TransformTree

S = 10**9


def moved(x, yaw_rad=0.0):
    return Pose.from_yaw(yaw_rad, (x, 0, 0))


def robot():
    """world > map > odom > base > camera; odometry at 2 Hz, corrections at 1 s."""
    samples = [
        StampedTransform('world', 'map', 0, Pose.from_yaw(math.pi / 2, (10, 0, 0)), True),
        StampedTransform('base', 'camera', 0, moved(0.1), True),
        StampedTransform('map', 'odom', 0, moved(0.0), False),
        StampedTransform('map', 'odom', 2 * S, moved(1.0), False),
    ]
    samples += [
        StampedTransform('odom', 'base', i * S // 2, moved(i, i * 0.2), False) for i in range(5)
    ]
    return samples


def test_a_chain_is_followed_up_and_down():
    tree = TransformTree(reversed(robot()))
    # At 1 s: odom 0.5 in map, base 2 in odom, turned 0.4; the camera 0.1 before it.
    pose = tree.look_up('map', 'camera', S)
    np.testing.assert_allclose(
        pose.translation, [2.5 + 0.1 * math.cos(0.4), 0.1 * math.sin(0.4), 0], atol=1e-12
    )
    in_world = tree.look_up('world', 'camera', S)
    back = tree.look_up('camera', 'world', S)
    assert back is not None
    np.testing.assert_allclose(
        in_world.translation[:2], [10 - pose.translation[1], pose.translation[0]], atol=1e-12
    )
    np.testing.assert_allclose((in_world @ back).matrix, np.eye(4), atol=1e-12)


def test_rotations_are_interpolated_on_the_shortest_arc():
    pose = TransformTree(robot()).look_up('odom', 'base', S // 4)
    assert (pose.translation[0], pose.yaw_rad) == (pytest.approx(0.5), pytest.approx(0.1))


def test_far_from_the_samples_nothing_is_known():
    tree = TransformTree(robot())
    assert tree.look_up('odom', 'base', 3 * S) is not None
    assert tree.look_up('odom', 'base', 3 * S + 1) is None
    assert tree.look_up('odom', 'base', 3 * S, max_gap_ns=0) is None
    assert tree.look_up('world', 'map', 99 * S) is not None
    last = tree.look_up('odom', 'base', 2 * S)
    held = tree.look_up_or_last('odom', 'base', 99 * S)
    np.testing.assert_allclose(held.matrix, last.matrix)
    assert tree.look_up_or_last('world', 'moon', 0) is None
    assert tree.look_up('world', 'moon', 0) is None


def test_a_trajectory_has_the_stamps_of_the_busiest_edge():
    found = TransformTree(robot()).trajectory('map', 'camera')
    assert found.stamps_ns.tolist() == [i * S // 2 for i in range(5)]
    assert (found.frame_id, found.child_frame_id) == ('map', 'camera')
    np.testing.assert_allclose(found.positions[0], [0.1, 0, 0])
    assert found.positions[4][0] == pytest.approx(4 + 1 + 0.1 * math.cos(0.8))


def test_what_is_no_tree_is_refused():
    two = [*robot(), StampedTransform('map', 'base', 0, moved(1), False)]
    with pytest.raises(ContractError, match='"base" has the parents "odom" and "map"'):
        TransformTree(two)
    circle = [*robot(), StampedTransform('camera', 'world', 0, moved(1), True)]
    with pytest.raises(ContractError, match='is its own ancestor'):
        TransformTree(circle)
    tree = TransformTree(robot())
    with pytest.raises(ContractError, match=r'does not connect "map" with "arm".*there are base'):
        tree.trajectory('map', 'arm')
    with pytest.raises(ContractError, match='no moving transform'):
        tree.trajectory('world', 'map')
