"""Appearance: only depth and raw colour, no ground truth, no network; the floor.

Similar voxels grow together to regions, each piece of which gets the class of the prototypes it
resembles most. Colours are as the camera gives them, so it suffers from light.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.documents import read_json
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers import appearance_descriptors
from osmabench_ros.mappers.bundled import BundledMapper, LabelFeatures, map_of_instances
from osmabench_ros.mappers.fusion import FusedCells, VoxelFusion
from osmabench_ros.mappers.nodes import NodeBuilder, rows_by
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet, convert_to_lab, normalised_name
from osmabench_ros.semantics.scene_graph import SceneNode

VOXEL_M = 0.05
# Every so many-th row and column of the images is used.
STRIDE_PX = 3

# Pixels farther away are left out.
MAX_DEPTH_M = 6.0

# Depth steps above this share of the depth are edges, where no normal is taken.
_MAX_STEP = 0.1
FORMAT = 'osmabench.appearance_prototypes/1'


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Typical regions of each class.

    Parameters
    ----------
    names : tuple of str
        Class name of each prototype.
    centers : ndarray of float64, shape (P, F)
        Descriptors, in units of `scale`.
    scale : ndarray of float64, shape (F,)
        Spread of each feature within a prototype.
    shares : ndarray of float64, shape (P,)
        Fraction of the learnt surface that each represents; they sum to 1.
    provenance : mapping
        Scene, seeds and condition they were learnt from.
    """

    names: tuple[str, ...]
    centers: NDArray[np.float64]
    scale: NDArray[np.float64]
    shares: NDArray[np.float64]
    provenance: Mapping[str, Any]

    def for_label_set(self, label_set: LabelSet) -> tuple[Prototypes, NDArray[np.int32]]:
        """Return the prototypes with a class of the label set, and their class ids."""
        known = np.array([name in label_set.by_name for name in self.names], np.bool_)
        if not known.any():
            raise ConfigError(
                f'mapper "appearance" knows none of the classes of label set "{label_set.name}"; '
                'learn prototypes with classes of these names and set the option "prototypes"'
            )
        names = tuple(np.array(self.names)[known].tolist())
        shares = self.shares[known] / self.shares[known].sum()
        kept = replace(self, names=names, centers=self.centers[known], shares=shares)
        return kept, np.array([label_set.id_of(name) for name in names], np.int32)

    def posterior(self, descriptors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability (R, P) of each prototype, a Gaussian, for descriptors (R, F)."""
        scaled = descriptors / self.scale
        squared = (
            (scaled**2).sum(axis=1)[:, None]
            + (self.centers**2).sum(axis=1)
            - 2 * scaled @ self.centers.T
        )
        logits = np.log(self.shares) - squared / 2
        return np.asarray(softmax(logits, axis=1))


def read_prototypes(path: Path) -> Prototypes:
    """Read prototypes from JSON; ConfigError names the file if it is for other features."""
    try:
        data = read_json(path, ConfigError)
        if data['format'] != FORMAT or tuple(data['features']) != appearance_descriptors.FEATURES:
            raise ConfigError(
                f'{path}: made for other features than this version uses; learn the prototypes '
                'again with benchmarks/learn_prototypes.py of the source'
            )
        items = data['prototypes']
        shares = np.array([item['share'] for item in items], np.float64)
        result = Prototypes(
            tuple(normalised_name(item['class']) for item in items),
            np.array([item['center'] for item in items], np.float64),
            np.array(data['scale'], np.float64),
            shares / shares.sum(),
            data['provenance'],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f'{path}: not a file of prototypes: {error!r}') from error
    features = len(appearance_descriptors.FEATURES)
    if result.centers.shape != (len(items), features) or not (result.scale > 0).all():
        raise ConfigError(f'{path}: prototypes do not have {features} features and scales')
    return result


PROTOTYPES_FILE = 'appearance_prototypes.json'


# Smaller objects get no node in the scene graph.
MIN_OBJECT_VOXELS = 8


class AppearanceOptions(Strict):
    """Options of the appearance mapper.

    Parameters
    ----------
    prototypes : str
        File of prototypes; empty for those that come with the package.
    rooms : bool
        Add room nodes, found in the floor plan, and make them parents of the objects.
    text_features : bool
        Give every label the text feature of its class name, so that suites which query maps by
        words score the map; the feature encodes the name, not the looks of the object.
    """

    prototypes: str = ''
    rooms: bool = True
    text_features: bool = False


class AppearanceMapper(BundledMapper):
    """Labels regions of a voxel map by how they look, with prototypes of the label set."""

    name = 'appearance'
    home_advantage = (
        'learnt the looks of classes on other scenes of the generator of the embedded apartments, '
        'and derives relations by the definitions of the benchmark'
    )

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        super().__init__(label_set, seed)
        self.options = validated(AppearanceOptions, options, f'mapper "{self.name}"')
        path = self.options.prototypes
        learnt = read_prototypes(Path(path) if path else config_path(PROTOTYPES_FILE))
        self._prototypes, self._class_ids = learnt.for_label_set(label_set)
        self._features = LabelFeatures(label_set) if self.options.text_features else None
        self._survey = Survey()

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map."""
        self._survey.add(frame)
        self.count(frame)

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        voxels, cells = self._survey.voxels()
        pairs = appearance_descriptors.neighbour_pairs(voxels.keys)
        regions = appearance_descriptors.grow_regions(voxels, pairs)
        patches = appearance_descriptors.cut_patches(voxels.points, regions)
        descriptors = appearance_descriptors.describe_patches(voxels, regions, patches, VOXEL_M)
        beliefs = self._beliefs(descriptors)
        best = beliefs.argmax(axis=1)
        objects = _merged(patches, pairs, best)
        nodes, instances = self._nodes(cells, patches, objects, beliefs)
        labels = self.label_set.ids[best][patches]
        scores = beliefs.max(axis=1)[patches]
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

    def _beliefs(self, descriptors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability of each class of the label set for each patch, (P, C)."""
        columns = np.searchsorted(self.label_set.ids, self._class_ids)
        beliefs = np.zeros((len(descriptors), len(self.label_set.classes)))
        np.add.at(beliefs.T, columns, self._prototypes.posterior(descriptors).T)
        return beliefs

    def _nodes(
        self,
        cells: FusedCells,
        patches: NDArray[np.int64],
        objects: NDArray[np.int64],
        beliefs: NDArray[np.float64],
    ) -> tuple[tuple[SceneNode, ...], NDArray[np.int32]]:
        """Return nodes of the larger objects, largest first, and the node id of each point."""
        sizes = np.bincount(objects)
        by_size = np.argsort(-sizes, kind='stable')
        rows_of = rows_by(objects)
        instances = np.zeros(len(objects), np.int32)
        builder = NodeBuilder(cells, self.label_set)
        nodes = []
        for node_id, item in enumerate(by_size.tolist(), start=1):
            if sizes[item] < MIN_OBJECT_VOXELS:
                break
            rows = rows_of[item]
            instances[rows] = node_id
            votes = beliefs[patches[rows]].sum(axis=0)
            nodes.append(builder.node(node_id, rows, votes, int(cells.frames[rows].max())))
        return tuple(nodes), instances


def _merged(
    patches: NDArray[np.int64], pairs: NDArray[np.int64], best: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the object of each voxel: touching patches of one class are one object."""
    touching = patches[pairs]
    same = best[touching[:, 0]] == best[touching[:, 1]]
    return appearance_descriptors.components(len(best), touching[same])[patches]


@dataclass(frozen=True, eq=False)
class SurfaceSamples:
    """Pixels of a frame in the world: metres, unit normals (0 at edges), RGB, flat `rows`."""

    points: NDArray[np.float32]
    normals: NDArray[np.float32]
    colors: NDArray[np.uint8]
    rows: NDArray[np.int64]


def surface_samples(frame: Frame) -> SurfaceSamples:
    """Return every `STRIDE_PX`-th pixel with a valid depth of at most `MAX_DEPTH_M`."""
    thin = (slice(STRIDE_PX // 2, None, STRIDE_PX),) * 2
    depth = frame.depth_m[thin]
    grid = frame.intrinsics.rays()[thin] * np.nan_to_num(depth, nan=0.0, posinf=0.0)[..., None]
    used = (frame.valid & (frame.depth_m <= MAX_DEPTH_M))[thin]
    normals = _normals(grid)[used] @ frame.camera_pose.rotation.T
    rows = np.arange(frame.depth_m.size).reshape(frame.depth_m.shape)[thin][used]
    return SurfaceSamples(
        points=frame.camera_pose.transform(grid[used]).astype(np.float32),
        normals=normals.astype(np.float32),
        colors=frame.color[thin][used],
        rows=rows,
    )


def _normals(grid: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return unit normals (h, w, 3) towards the camera by central differences, 0 at edges."""
    normals = np.zeros_like(grid)
    if min(grid.shape[:2]) < 3:
        return normals
    across = grid[1:-1, 2:] - grid[1:-1, :-2]
    down = grid[2:, 1:-1] - grid[:-2, 1:-1]
    found = np.cross(down, across)
    found /= np.maximum(np.linalg.norm(found, axis=2, keepdims=True), 1e-12)
    middle = grid[1:-1, 1:-1]
    found *= -np.sign((found * middle).sum(axis=2, keepdims=True))
    step = np.maximum(np.abs(across[..., 2]), np.abs(down[..., 2]))
    smooth = (middle[..., 2] > 0) & (step < _MAX_STEP * middle[..., 2])
    normals[1:-1, 1:-1] = np.where(smooth[..., None], found, 0.0)
    return normals


_NORMAL_STEPS = 1 << 12
_LUMA = np.array([299, 587, 114])


class Survey:
    """Voxels with mean colour, texture and normal."""

    def __init__(self) -> None:
        self._fusion = VoxelFusion(VOXEL_M, extra_columns=4)

    def add(self, frame: Frame) -> SurfaceSamples:
        """Fuse a frame and return the samples taken from it."""
        samples = surface_samples(frame)
        luma = samples.colors.astype(np.int64) @ _LUMA // 1000
        extras = np.empty((len(luma), 4), np.int64)
        extras[:, :3] = np.rint(samples.normals * _NORMAL_STEPS)
        extras[:, 3] = luma * luma
        segments = np.zeros(len(luma), np.int64)
        self._fusion.add(samples.points, samples.colors, segments, extras)
        return samples

    def voxels(self) -> tuple[appearance_descriptors.Voxels, FusedCells]:
        """Return the voxels so far with their features, and the fused cells they come from."""
        cells = self._fusion.cells()
        luma = cells.colors.astype(np.float64) @ (_LUMA / 1000)
        variance = np.maximum(cells.extras[:, 3] - luma**2, 0.0)
        voxels = appearance_descriptors.Voxels(
            keys=cells.voxels,
            points=cells.points,
            lab=convert_to_lab(cells.colors),
            texture=np.sqrt(variance),
            normals=cells.extras[:, :3] / _NORMAL_STEPS,
        )
        return voxels, cells
