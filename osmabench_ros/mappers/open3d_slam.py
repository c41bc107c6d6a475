"""RGB-D SLAM by Open3D that finds its own poses, and says where it lost track."""

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from osmabench_ros.base.contract import CAMERA_FRAME, WORLD_FRAME
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose, Similarity
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.mappers.tsdf import MAX_DEPTH_M, TsdfMapper
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet

# Of the odometry, from the coarsest image to the full one.
ITERATIONS = (20, 15, 10)

# Pixels with depths that differ by more do not count. On the path of the demo 0.3 is worse at 10
# Hz (one step slides by 0.14 m), and better at 5 Hz.
OUTLIER_M = 0.1

# Frames that may be lost in a row before tracking starts again from the pose that was kept.
MAX_LOST = 5

# Every so many-th pixel counts for how firmly the surfaces in view hold the camera.
SAMPLE_PX = 4


# A frame that fits the keyframe in a smaller fraction of its pixels begins a new one.
MIN_KEYFRAME_FITNESS = 0.8

# Track is lost where a smaller fraction of the pixels fits.
MIN_FITNESS = 0.4

# Where surfaces hold the camera less firmly, colours are aligned too; see `hold_of`.
MIN_HOLD = 0.002

# Track is lost where the camera would have moved farther since the frame before.
MAX_STEP_M, MAX_TURN_DEG = 0.75, 45.0

# A pose is in doubt where the alignment the other way round ends farther from it.
MAX_DISAGREEMENT_M = 0.05


@dataclasses.dataclass(frozen=True)
class View:
    """Images of a frame for the odometry, the pose it was given, and how firmly it holds."""

    images: Any
    pose: Pose
    hold: float


class Open3dSlamMapper(TsdfMapper):
    """Tracks the camera from keyframe to keyframe by Open3D's odometry, and fuses by tsdf.

    It reads only the pose of the first frame: there its map begins. Frames are
    aligned with the last keyframe by point-to-plane distances, from coarse to fine, and where
    surfaces leave a direction open, as one wall does, by colours too. A frame that cannot be
    aligned keeps the last pose and is not fused. Where the camera slides along surfaces, the
    alignment of the keyframe with the frame rarely slides back the same way; such frames stay in
    the map. The remark of the map counts both. There is no loop closure, so errors add up.

    References
    ----------
    Park, Zhou and Koltun, Colored Point Cloud Registration Revisited, ICCV 2017; Steinbruecker,
    Sturm and Cremers, Real-Time Visual Odometry from Dense RGB-D Images, ICCV Workshops 2011.
    """

    name = 'open3d_slam'

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        super().__init__(label_set=label_set, seed=seed, options=options)
        # Without this it warns of every frame.
        self.library.utility.set_verbosity_level(self.library.utility.VerbosityLevel.Error)
        self._key: View | None = None
        self._before: View | None = None
        self._poses: list[tuple[int, Pose]] = []
        self._motion = Pose.identity()
        self._lost: list[int] = []
        self._doubtful: list[int] = []
        self._lost_in_a_row = 0

    def integrate(self, frame: Frame) -> None:
        """Find the pose of a frame, and take it into the map."""
        self.count(frame)
        if self._before is None:
            self._key = self._before = self._view(frame, frame.camera_pose)
            self._take(frame, frame.camera_pose)
            return
        last = self._before.pose
        pose = self._tracked(frame)
        if pose is None:
            self._lost.append(frame.index)
            self._lost_in_a_row += 1
            self._poses.append((frame.stamp_ns, last))
            if self._lost_in_a_row >= MAX_LOST:
                self._key = self._before = self._view(frame, last)
                self._motion, self._lost_in_a_row = Pose.identity(), 0
            return
        # After a loss the step since the frame before is not known.
        self._motion = Pose.identity() if self._lost_in_a_row else last.inverse() @ pose
        self._lost_in_a_row = 0
        self._before = self._view(frame, pose)
        self._take(frame, pose)

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far, with the poses that were found."""
        fused = super().semantic_map(final=final)
        header = dataclasses.replace(fused.header, remark=self._remark())
        trajectory = (
            StampedTrajectory.from_poses(self._poses, WORLD_FRAME, CAMERA_FRAME)
            if self._poses
            else None
        )
        return dataclasses.replace(fused, header=header, trajectory=trajectory)

    def _remark(self) -> str:
        found = []
        if self._lost:
            found.append(
                f'track was lost in {len(self._lost)} of {len(self._poses)} frames, first in '
                f'frame {self._lost[0]}; they keep the last pose and are not in the map'
            )
        if self._doubtful:
            found.append(
                f'in {len(self._doubtful)} of {len(self._poses)} frames, first in frame '
                f'{self._doubtful[0]}, the alignment there and back ends more than '
                f'{MAX_DISAGREEMENT_M:g} m away: track may have been lost unnoticed'
            )
        return '; '.join(found)

    def _take(self, frame: Frame, pose: Pose) -> None:
        self._poses.append((frame.stamp_ns, pose))
        self.fuse(dataclasses.replace(frame, camera_pose=pose))

    def _view(self, frame: Frame, pose: Pose) -> View:
        depth, color = self.images(frame)
        return View(self.library.t.geometry.RGBDImage(color, depth), pose, hold_of(frame))

    def _tracked(self, frame: Frame) -> Pose | None:
        """Return the pose of a frame, None if track is lost."""
        key, before = self._key, self._before
        assert key is not None
        assert before is not None
        if not frame.valid.any():
            return None
        view = self._view(frame, before.pose)
        guess = before.pose @ self._motion
        pose, fitness = self._aligned(view, key, guess, frame)
        if fitness < MIN_KEYFRAME_FITNESS and key is not before:
            self._key = before
            pose, fitness = self._aligned(view, before, guess, frame)
        if fitness < MIN_FITNESS:
            return None
        step = Similarity(before.pose.inverse() @ pose)
        frames = 1 + self._lost_in_a_row
        if step.distance_m > frames * MAX_STEP_M or step.angle_deg > frames * MAX_TURN_DEG:
            return None
        if not self._agrees(view, pose, frame):
            self._doubtful.append(frame.index)
        return pose

    def _agrees(self, view: View, pose: Pose, frame: Frame) -> bool:
        """Return whether the keyframe, aligned with a frame of this pose, is where it was."""
        key = self._key
        assert key is not None
        there = pose.inverse() @ key.pose
        found, fitness = self._aligned(
            key, dataclasses.replace(view, pose=Pose.identity()), there, frame
        )
        away_m = np.linalg.norm((there.inverse() @ found).translation)
        return bool(fitness > 0.0 and away_m <= MAX_DISAGREEMENT_M)

    def _aligned(self, view: View, target: View, guess: Pose, frame: Frame) -> tuple[Pose, float]:
        """Return the pose by alignment with a view, and the share of pixels that fits."""
        odometry, tensor = self.library.t.pipelines.odometry, self.library.core.Tensor
        held = min(view.hold, target.hold) >= MIN_HOLD
        try:
            found = odometry.rgbd_odometry_multi_scale(
                view.images,
                target.images,
                tensor(frame.intrinsics.matrix),
                tensor((target.pose.inverse() @ guess).matrix),
                1.0,
                MAX_DEPTH_M,
                [odometry.OdometryConvergenceCriteria(most, 1e-6, 1e-6) for most in ITERATIONS],
                odometry.Method.PointToPlane if held else odometry.Method.Hybrid,
                odometry.OdometryLossParams(OUTLIER_M, 0.05, 0.1),
            )
        except RuntimeError:  # equations without a solution
            return guess, 0.0
        matrix = found.transformation.numpy()
        if not np.isfinite(matrix).all():
            return guess, 0.0
        moved = target.pose.matrix @ matrix
        # Of single precision; errors of rotations would add up.
        rotation = Rotation.from_matrix(moved[:3, :3]).as_matrix()
        return Pose(rotation, moved[:3, 3]), float(found.fitness)


def hold_of(frame: Frame) -> float:
    """Return how firmly the surfaces in view hold the camera by their planes, in [0, 1].

    It is the smallest eigenvalue of the mean of J J^T, where J = (p x n, n) is the row of a
    pixel in point-to-plane alignment, p its point relative to the mean in units of the mean
    distance from that, n its normal; 0 where a motion changes no distance, as before one wall.
    Gelfand et al., Geometrically Stable Sampling for the ICP Algorithm, 3DIM 2003.
    """
    used = frame.valid & (frame.depth_m <= MAX_DEPTH_M)
    points = frame.intrinsics.back_project(np.where(used, frame.depth_m, np.float32(0.0)))
    points = points[::SAMPLE_PX, ::SAMPLE_PX].astype(np.float64)
    used = used[::SAMPLE_PX, ::SAMPLE_PX]
    right = points[:-1, 1:] - points[:-1, :-1]
    down = points[1:, :-1] - points[:-1, :-1]
    normals: NDArray[np.float64] = np.cross(right, down)
    length = np.linalg.norm(normals, axis=-1)
    used = used[:-1, :-1] & used[:-1, 1:] & used[1:, :-1] & (length > 0)
    # Neighbours of which one is far behind the other show no surface.
    near = 0.1 * points[:-1, :-1, 2]
    used &= (np.abs(right[..., 2]) < near) & (np.abs(down[..., 2]) < near)
    if used.sum() < 6:
        return 0.0
    where = points[:-1, :-1][used]
    across = normals[used] / length[used][:, None]
    where = where - where.mean(axis=0)
    scale = np.linalg.norm(where, axis=1).mean()
    rows = np.concatenate([np.cross(where / scale, across), across], axis=1)
    return float(np.clip(np.linalg.eigvalsh(rows.T @ rows / len(rows))[0], 0.0, 1.0))
