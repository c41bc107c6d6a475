"""Noisy oracle: ground truth with the errors of real perception, in adjustable doses."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.ndimage import binary_dilation, binary_erosion, find_objects
from scipy.spatial.transform import Rotation

from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.oracle import OracleMapper, OracleOptions, require_ground_truth
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED

_OBJECT_STREAM, _DETECTION_STREAM, _POSE_STREAM = 0, 1, 2


@dataclass(frozen=True)
class NoisyDetection:
    """What becomes of one object in one frame: its class, whether it is missed, its mask."""

    class_id: int
    missed: bool
    growth_px: int


class NoisyOracleOptions(OracleOptions):
    """Options of the noisy oracle: those of the oracle, and how much goes wrong.

    Parameters
    ----------
    label_confusion : float
        Share of the objects that carry a wrong label in every frame.
    frame_label_confusion : float
        Probability that an object is mislabelled in one frame.
    dropped_objects : float
        Share of the objects that are never detected.
    missed_detections : float
        Probability that an object is not detected in one frame.
    mask_error_px : int
        Masks are eroded or dilated by up to this many pixels.
    pose_noise_m, pose_noise_rad : float
        Standard deviation of the camera's position along each axis and of its rotation about each
        axis, independent in every frame.
    """

    label_confusion: float = Field(0.1, ge=0.0, le=1.0)
    frame_label_confusion: float = Field(0.1, ge=0.0, le=1.0)
    dropped_objects: float = Field(0.1, ge=0.0, le=1.0)
    missed_detections: float = Field(0.1, ge=0.0, le=1.0)
    mask_error_px: int = Field(2, ge=0, le=64)
    pose_noise_m: float = Field(0.01, ge=0.0, le=1.0)
    pose_noise_rad: float = Field(0.005, ge=0.0, le=0.5)


def _grown(window: tuple[slice, ...], growth_px: int, shape: tuple[int, ...]) -> tuple[slice, ...]:
    """Return a window of an image with room for a mask to grow."""
    margin = max(growth_px, 0)
    return tuple(
        slice(max(part.start - margin, 0), min(part.stop + margin, size))
        for part, size in zip(window, shape, strict=True)
    )


def _paint(
    window: tuple[slice, ...],
    truth: NDArray[np.int32],
    instance_id: int,
    found: NoisyDetection,
    semantic: NDArray[np.uint16],
    instance: NDArray[np.int32],
) -> None:
    """Write one detection into the images; pixels its mask loses belong to nothing."""
    mask = truth[window] == instance_id
    kept = np.zeros_like(mask) if found.missed else _resized(mask, found.growth_px)
    lost = mask & ~kept & (instance[window] == instance_id)
    semantic[window][lost], instance[window][lost] = UNLABELLED, NO_INSTANCE
    semantic[window][kept], instance[window][kept] = found.class_id, instance_id


def _resized(mask: NDArray[np.bool_], growth_px: int) -> NDArray[np.bool_]:
    if growth_px > 0:
        return np.asarray(binary_dilation(mask, iterations=growth_px))
    if growth_px < 0:
        return np.asarray(binary_erosion(mask, iterations=-growth_px, border_value=1))
    return mask


class NoisyOracleMapper(OracleMapper):
    """Fuses ground truth that was corrupted first, with a `seed`; segments of a voxel vote.

    Wrong labels are structure for structure, objects for objects.
    """

    name = 'noisy_oracle'
    options_model = NoisyOracleOptions
    options: NoisyOracleOptions
    votes = True

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map, flawed; ConfigError without ground truth."""
        super().integrate(self.apply(frame))

    def apply(self, frame: Frame) -> Frame:
        """Return a frame as flawed perception would have it; ConfigError without ground truth."""
        classes, instances = require_ground_truth(frame, self.name)
        semantic, instance = classes.copy(), instances.copy()
        ids, first, dense = np.unique(instances, return_index=True, return_inverse=True)
        windows = find_objects(dense.reshape(instances.shape) + 1)
        for instance_id, pixel, window in zip(ids.tolist(), first, windows, strict=True):
            if instance_id == NO_INSTANCE:
                continue
            found = self.detect(instance_id, int(classes.flat[pixel]), frame.index)
            _paint(
                _grown(window, found.growth_px, instance.shape),
                instances,
                instance_id,
                found,
                semantic,
                instance,
            )
        pose = self._noisy_pose(frame.camera_pose, frame.index)
        return replace(frame, camera_pose=pose, semantic=semantic, instance=instance)

    def detect(self, instance_id: int, class_id: int, frame_index: int) -> NoisyDetection:
        """Draw what becomes of an object in a frame."""
        options = self.options
        lasting = np.random.default_rng([self.seed, _OBJECT_STREAM, instance_id])
        passing = np.random.default_rng([self.seed, _DETECTION_STREAM, instance_id, frame_index])
        known = self.label_set.by_id.get(class_id)
        structure = known is not None and known.structure
        for rng, confusion in (
            (lasting, options.label_confusion),
            (passing, options.frame_label_confusion),
        ):
            rate, choice = rng.random(2)
            if rate < confusion:
                class_id = self._wrong_class(class_id, structure, choice)
        dropped = lasting.random() < options.dropped_objects
        missed = passing.random() < options.missed_detections
        growth = passing.uniform(-options.mask_error_px, options.mask_error_px)
        return NoisyDetection(
            class_id=class_id,
            missed=not structure and bool(dropped or missed),
            growth_px=0 if structure else round(growth),
        )

    def _wrong_class(self, class_id: int, structure: bool, choice: float) -> int:
        others = [
            item.id
            for item in self.label_set.classes
            if item.structure == structure and item.id != class_id
        ]
        return others[int(choice * len(others))] if others else UNLABELLED

    def _noisy_pose(self, pose: Pose, frame_index: int) -> Pose:
        rng = np.random.default_rng([self.seed, _POSE_STREAM, frame_index])
        shift = rng.standard_normal(3) * self.options.pose_noise_m
        turn = Rotation.from_rotvec(rng.standard_normal(3) * self.options.pose_noise_rad)
        return Pose(pose.rotation @ turn.as_matrix(), pose.translation + shift)
