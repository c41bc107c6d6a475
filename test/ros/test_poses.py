import numpy as np
from scipy.spatial.transform import Rotation

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.ros.messages.poses import quaternion_message

TURNS = [
    *Rotation.random(200, random_state=0),
    *Rotation.from_rotvec(np.vstack([np.zeros(3), np.pi * np.eye(3), -np.pi / 2 * np.eye(3)])),
]


def test_a_quaternion_is_that_of_scipy():
    for turn in TURNS:
        found = quaternion_message(Pose(turn.as_matrix(), np.zeros(3)))
        xyzw = np.array([found.x, found.y, found.z, found.w])
        expected = turn.as_quat()
        # The quaternion of a turn and its negative are one rotation.
        assert min(abs(xyzw - expected).max(), abs(xyzw + expected).max()) < 1e-12
        assert found.w >= 0
