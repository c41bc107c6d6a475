"""A few small frames with every kind of depth, class and instance."""

import numpy as np

from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.sequences.layout import SequenceInfo
from osmabench_ros.simulation.robot_path import CameraMount

LABELS = LabelSet.from_names('small', ['chair', 'coffee table'])
CAMERA = Intrinsics(16, 12, 9.5, 10.25, 7.5, 5.5)
MOUNT = CameraMount(1.2, 0.1).base_to_camera
INFO = SequenceInfo('small', 'room', 'camera', LABELS, MOUNT, 'abc')
START_NS = 1_000_000_000
STEP_NS = 40_000_000


def _frame(index):
    rng = np.random.default_rng(index)
    depth = rng.uniform(0.1, 9.9, (12, 16)).astype(np.float32)
    depth[0, :4] = np.nan, np.inf, 0.0, 10.5
    semantic = rng.integers(1, 3, (12, 16)).astype(np.uint16)
    semantic[1, :2] = UNLABELLED
    base = Pose.from_yaw(0.3 * index, (0.1 * index, -0.2, 0.0))
    return Frame(
        index,
        START_NS + index * STEP_NS,
        base @ MOUNT,
        CAMERA,
        np.full((12, 16, 3), 40 * index + 10, np.uint8),
        depth,
        semantic,
        rng.integers(0, 300, (12, 16)).astype(np.int32),
        base,
    )


FRAMES = [_frame(index) for index in range(4)]


def write_frames(writer, frames=FRAMES):
    """Write frames with a writer of sequences, and close it."""
    for frame in frames:
        writer.write(frame)
    writer.close()


def map_frames(mapper, frames):
    """Return the final map that a mapper makes of frames."""
    for frame in frames:
        mapper.integrate(frame)
    return mapper.semantic_map(final=True)


def are_same_images(one, two, names=('color', 'depth_m', 'semantic', 'instance')):
    """Return whether two frames, or renderings, have the same images to the bit."""
    return all(getattr(one, name).tobytes() == getattr(two, name).tobytes() for name in names)


def assert_same_frame(read, frame):
    """Compare frames without their depth, which formats round."""
    assert (read.index, read.stamp_ns) == (frame.index, frame.stamp_ns)
    poses = read.camera_pose.matrix, frame.camera_pose.matrix
    np.testing.assert_allclose(*poses, atol=1e-12)
    for name in ('color', 'semantic', 'instance'):
        np.testing.assert_array_equal(getattr(read, name), getattr(frame, name))
