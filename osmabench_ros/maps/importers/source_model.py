"""Content of a method's files before it becomes a map: objects, features, frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.boxes import AxisAlignedBox, OrientedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.semantic_map import FeatureSpace
from osmabench_ros.semantics.scene_graph import AttributeValue, NodeKind


@dataclass(frozen=True)
class Encoder:
    """The encoder of a feature space with the method's default settings."""

    model: str
    pretrained: str = ''
    text_comparable: bool = True
    templates: tuple[str, ...] = ()


@dataclass(frozen=True)
class Method:
    """Properties common to all maps of a method."""

    name: str
    world: World
    encoders: Mapping[str, Encoder] = field(default_factory=lambda: MappingProxyType({}))


@dataclass
class SourceObject:
    """An object of a method, in the method's axes and units, with its identifier."""

    source_id: str
    kind: NodeKind = NodeKind.OBJECT
    points: NDArray[np.floating] | None = None
    colors: NDArray[np.uint8] | None = None
    features: dict[str, NDArray[np.floating]] = field(default_factory=dict)
    labels: list[tuple[str, float]] = field(default_factory=list)
    captions: list[str] = field(default_factory=list)
    attributes: dict[str, AttributeValue] = field(default_factory=dict)
    corners: NDArray[np.floating] | None = None
    center_and_size: tuple[Sequence[float], Sequence[float]] | None = None
    parent: str | None = None
    observations: int = 0


@dataclass(frozen=True)
class SourceEdge:
    """A relation between two source ids."""

    source: str
    target: str
    type: str
    text: str = ''
    score: float = float('nan')


def feature_spaces(
    method: Method, options: ImportOptions, objects: Sequence[SourceObject]
) -> tuple[dict[str, tuple[str, int | None]], dict[str, FeatureSpace]]:
    """Return (space, row) of each object, in its first feature space, and the feature spaces."""
    rows: dict[str, tuple[str, int | None]] = {}
    spaces: dict[str, FeatureSpace] = {}
    for name in method.encoders:
        owners = [item for item in objects if name in item.features]
        vectors = [np.asarray(item.features[name], np.float32).ravel() for item in owners]
        if not vectors:
            continue
        spaces[name] = feature_space(method, options, name, _stacked(method, name, vectors))
        for row, item in enumerate(owners):
            rows.setdefault(item.source_id, (name, row))
    return rows, spaces


def _stacked(
    method: Method, name: str, vectors: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise MapError(f'{method.name}: {name} features have different lengths: {sorted(lengths)}')
    return np.stack(vectors)


def feature_space(
    method: Method, options: ImportOptions, name: str, vectors: NDArray[np.floating]
) -> FeatureSpace:
    """Return a feature space of the options' or the method's encoder; MapError if not finite."""
    vectors = np.ascontiguousarray(vectors, np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise MapError(f'{method.name}: {name} feature {row} is NaN or infinite')
    encoder = method.encoders[name]
    first = name == next(iter(method.encoders))
    comparable = options.text_comparable
    length = np.linalg.norm(vectors, axis=1)
    return FeatureSpace(
        name,
        vectors,
        (options.feature_model if first else '') or encoder.model,
        (options.feature_pretrained if first else '') or encoder.pretrained,
        bool(len(vectors)) and bool((np.abs(length - 1) < 1e-3).all()),
        encoder.text_comparable if comparable is None or not first else comparable,
        encoder.templates,
    )


class Placement:
    """Transforms coordinates of a method's files to the map frame: z up, metres."""

    def __init__(self, method: Method, options: ImportOptions) -> None:
        turn = (options.world or method.world).rotation
        self._rotation = options.pose.rotation @ turn
        self._translation = options.pose.translation
        self._scale = options.metres_per_unit
        if not (np.isfinite(self._scale) and self._scale > 0):
            raise MapError(f'metres_per_unit is {self._scale}; it must be a positive number')

    def points(self, points: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return points (..., 3) in metres in the frame of the map."""
        scaled = np.asarray(points, np.float64) * self._scale
        return np.asarray(scaled @ self._rotation.T + self._translation)

    def box(
        self, center: Sequence[float], size: Sequence[float]
    ) -> tuple[AxisAlignedBox, OrientedBox]:
        """Return bounds of a box along the axes of the files."""
        lengths = np.abs(np.asarray(size, np.float64)) * self._scale
        pose = Pose(self._rotation, self.points(np.asarray(center)))
        oriented = OrientedBox(pose, lengths)
        return oriented.axis_aligned(), oriented

    def corners(self, corners: NDArray[np.floating]) -> tuple[AxisAlignedBox, OrientedBox | None]:
        """Return bounds of eight corners in the order of Open3D's get_box_points."""
        placed = self.points(corners)
        return AxisAlignedBox.around(placed), _oriented_box(placed)


def _oriented_box(corners: NDArray[np.float64]) -> OrientedBox | None:
    """Return the box whose edges run from corner 0 to corners 1, 2, 3; None if skew."""
    if corners.shape != (8, 3):
        return None
    edges = corners[1:4] - corners[0]
    size = np.linalg.norm(edges, axis=1)
    if (size < 1e-6).any():
        return None
    axes = (edges / size[:, None]).T
    if np.abs(axes.T @ axes - np.eye(3)).max() > 1e-3:
        return None
    left, _, right = np.linalg.svd(axes)
    rotation = left @ right
    if np.linalg.det(rotation) < 0:
        rotation[:, 2] *= -1
    return OrientedBox(Pose(rotation, corners.mean(axis=0)), size)
