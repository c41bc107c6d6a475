"""Oracles: fuse ground-truth labels and instances, as they are or with errors in doses.

The exact one is the upper bound of every score.
"""

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from scipy.ndimage import binary_dilation, binary_erosion, find_objects, maximum_filter
from scipy.spatial.transform import Rotation

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.bundled import BundledMapper, LabelFeatures, map_of_instances
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion
from osmabench_ros.mappers.nodes import NodeBuilder, rows_by
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneNode

_OBJECT_STREAM, _DETECTION_STREAM, _POSE_STREAM = 0, 1, 2
# Pixels farther away are left out.
MAX_DEPTH_M = 50.0

# Edge of a voxel near the borders of objects, where a coarse grid would move the border.
BORDER_VOXEL_M = 0.006

_BLOCK = 4


class OracleOptions(Strict):
    """Options of the oracle mapper.

    Parameters
    ----------
    voxel_m : float
        Edge of a voxel.
    rooms : bool
        Add room nodes, found in the floor plan, and make them parents of the objects.
    albedo : bool
        Take the colours of the surfaces instead of those that the light makes of them; the
        simulator must give them, as `opengl` does.
    text_features : bool
        Give every label the text feature of its class name, so that suites which query maps by
        words score the map; the feature encodes the name, not the looks of the object.
    """

    voxel_m: float = Field(0.04, gt=0.001, le=1.0)
    rooms: bool = True
    albedo: bool = False
    text_features: bool = False


def require_ground_truth(
    frame: Frame, mapper: str
) -> tuple[NDArray[np.uint16], NDArray[np.int32]]:
    """Return the semantic and instance image of a frame, or raise a ConfigError."""
    if frame.semantic is None or frame.instance is None:
        raise ConfigError(
            f'mapper "{mapper}" reads ground truth, but frame {frame.index} has no semantic or '
            'no instance image; publish them, or choose the mapper "appearance"'
        )
    return frame.semantic, frame.instance


def near_contacts(
    instance: NDArray[np.int32], depth_m: NDArray[np.float32], reach_m: float
) -> NDArray[np.bool_]:
    """Return the pixels (height, width) near borders where instances touch within `reach_m`."""
    height, width = instance.shape
    contact = np.zeros((height + -height % _BLOCK, width + -width % _BLOCK), np.bool_)
    for axis in (0, 1):
        with np.errstate(invalid='ignore'):
            level = np.abs(np.diff(depth_m, axis=axis)) < reach_m
        across = (np.diff(instance, axis=axis) != 0) & level
        contact[: across.shape[0], : across.shape[1]] |= across
    blocks = contact.reshape(contact.shape[0] // _BLOCK, _BLOCK, -1, _BLOCK).any(axis=(1, 3))
    near = maximum_filter(blocks, 3).repeat(_BLOCK, axis=0).repeat(_BLOCK, axis=1)
    return np.asarray(near[:height, :width])


class OracleMapper(BundledMapper):
    """Fuses the simulator's class and instance images, in smaller voxels at objects' borders.

    A class that `votes` keeps one point per voxel, from the segment with most pixels, instead of
    one per segment; all its voxels are of size `voxel_m`.
    """

    name = 'oracle'
    uses_ground_truth = True
    options_model: type[OracleOptions] = OracleOptions
    votes = False
    home_advantage = (
        'reads ground-truth images, and derives relations by the definitions of the benchmark'
    )

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        super().__init__(label_set, seed)
        self.options = validated(self.options_model, options, f'mapper "{self.name}"')
        self._features = LabelFeatures(label_set) if self.options.text_features else None
        self._inside = VoxelFusion(self.options.voxel_m)
        self._borders = VoxelFusion(BORDER_VOXEL_M)
        self._segments: dict[tuple[int, int], int] = {}
        self._observations: Counter[int] = Counter()

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map; ConfigError if it has no ground truth or other classes."""
        semantic, instance = require_ground_truth(frame, self.name)
        used = frame.valid & (frame.depth_m <= MAX_DEPTH_M)
        segments = self._segments_of(semantic[used], instance[used], frame.index)
        image = self._albedo(frame) if self.options.albedo else frame.color
        points = frame.world_points(used)
        colors = image[used]
        if self.votes:
            self._inside.add(points, colors, segments)
        else:
            near = near_contacts(instance, frame.depth_m, self.options.voxel_m)[used]
            self._inside.add(points[~near], colors[~near], segments[~near])
            self._borders.add(points[near], colors[near], segments[near])
        self.count(frame)

    def _albedo(self, frame: Frame) -> NDArray[np.uint8]:
        if frame.albedo is None:
            raise ConfigError(
                f'mapper "{self.name}" has the option albedo, but frame {frame.index} has no '
                'colours without light; choose the simulator "opengl", or leave the option out'
            )
        return frame.albedo

    def _segments_of(
        self, semantic: NDArray[np.uint16], instance: NDArray[np.int32], index: int
    ) -> NDArray[np.int64]:
        """Give each pair of class and instance a number, and count the instances seen."""
        codes = (instance.astype(np.int64) << 16) | semantic
        first = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]])[: len(codes)])
        pairs, inverse = np.unique(codes[first], return_inverse=True)
        self.label_set.check(pairs & 0xFFFF, f'semantic image of frame {index}')
        self._observations.update(np.unique(pairs >> 16).tolist())
        numbers = [
            self._segments.setdefault((int(pair & 0xFFFF), int(pair >> 16)), len(self._segments))
            for pair in pairs
        ]
        lengths = np.diff(np.append(first, len(codes)))
        return np.repeat(np.array(numbers, np.int64)[inverse.reshape(-1)], lengths)

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        parts = [self._inside.cells(), self._borders.cells()]
        cells = FusedCells.joined(parts)
        pairs = np.array(list(self._segments), np.int32).reshape(-1, 2)[cells.segments]
        scores = np.concatenate([part.vote_shares() for part in parts])
        if self.votes:
            rows = cells.winner_rows(abstaining=pairs[:, 1] == NO_INSTANCE)
            cells = cells.select(rows)
            pairs = pairs[rows]
            scores = scores[rows]
        labels = np.ascontiguousarray(pairs[:, 0])
        instances = np.ascontiguousarray(pairs[:, 1])
        nodes = self._nodes(cells, labels, instances)
        if self.votes:
            labels = _labels_of_nodes(nodes, labels, instances)
        return map_of_instances(
            self.header(final=final),
            self.label_set,
            cells,
            nodes,
            labels,
            instances,
            scores,
            rooms=self.options.rooms,
            features=self._features,
        )

    def _nodes(
        self, cells: FusedCells, labels: NDArray[np.int32], instances: NDArray[np.int32]
    ) -> tuple[SceneNode, ...]:
        """Return a node for each instance, ordered by id."""
        builder = NodeBuilder(cells, self.label_set, lit=not self.options.albedo)
        classes = np.searchsorted(self.label_set.ids, np.where(labels == UNLABELLED, -1, labels))
        weights = np.where(labels == UNLABELLED, 0.0, cells.counts)
        nodes = []
        for node_id, rows in rows_by(instances).items():
            if node_id == NO_INSTANCE:
                continue
            votes = np.zeros(len(self.label_set.classes))
            np.add.at(votes, classes[rows], weights[rows])
            nodes.append(builder.node(node_id, rows, votes, self._observations[node_id]))
        return tuple(nodes)


def _labels_of_nodes(
    nodes: tuple[SceneNode, ...], labels: NDArray[np.int32], instances: NDArray[np.int32]
) -> NDArray[np.int32]:
    """Return the class of the node that each point belongs to, its own label without a node."""
    ids = np.array([node.id for node in nodes], np.int32)
    classes = np.array([node.class_id for node in nodes], np.int32)
    owned = np.isin(instances, ids)
    result = labels.copy()
    result[owned] = classes[np.searchsorted(ids, instances[owned])]
    return result


@dataclass(frozen=True)
class NoisyDetection:
    """What becomes of one object in one frame: its class, whether it is missed, its mask."""

    class_id: int
    missed: bool
    growth_px: int


class NoisyOracleOptions(OracleOptions):
    """Options of the noisy oracle: the oracle's, and the amount of noise.

    Parameters
    ----------
    label_confusion : float
        Fraction of the objects that carry a wrong label in every frame.
    frame_label_confusion : float
        Probability that an object is mislabelled in one frame.
    dropped_objects : float
        Fraction of the objects that are never detected.
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
        semantic = classes.copy()
        instance = instances.copy()
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
