"""The ground truth of a scene and its files on disk."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import PlainSerializer, TypeAdapter

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.files import atomic_directory, write_json
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.reading import naming_errors, read_npy
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.specification import SceneSpecification
from osmabench_ros.semantics.cloud import LabelledCloud, joined
from osmabench_ros.semantics.labels import (
    COLOR_EXAMPLES,
    NO_INSTANCE,
    LabelSet,
    choose_color,
    color_indices,
)
from osmabench_ros.semantics.scene_graph import SceneEdge, SceneGraph, SceneNode

FORMAT: Final = 'osmabench.ground_truth/1'
# The longest stretch of surface that a pixel may cover to show it.
MAX_EXTENT_M = 0.05
MIN_VISIBLE_POINTS = 5
# Objects with a smaller visible fraction have the extent of their visible part.
SMALL_SHARE = 0.25

# Largest distance between the faces of the boxes of a visible part and of the whole object, in
# metres and as a fraction of the edge.
EXTENT_TOLERANCE = (0.1, 0.15)

DOCUMENT = 'ground_truth.json'
_CLOUDS = ('surface', 'unseen', 'fused')
_PARTS = {'points': np.float32, 'labels': np.int32, 'instances': np.int32, 'normals': np.float32}
_POSES = 'camera_poses.npy'


_WRITTEN = PlainSerializer(
    lambda value: value.model_dump(mode='json', by_alias=True, exclude_defaults=True)
)


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundTruthDocument:
    """The part of ground truth that ground_truth.json holds.

    Parameters
    ----------
    dataset, scene : str
        Where it comes from.
    label_set : LabelSet
        Meaning of the class ids.
    graph : SceneGraph
        All objects, rooms and relations of the scene, seen or not.
    intrinsics : Intrinsics
        Camera of the trajectory.
    seen_instances : tuple of int
        Instances with enough visible surface, ascending.
    max_depth_m : float
        Largest depth at which a point counts as visible.
    points_per_m2 : float
        Density of the clouds `surface` and `unseen`.
    visible_graph : SceneGraph, optional
        The seen instances as their visible parts show them: boxes and relations; None where the
        scene is known only by its visible surface.
    visible_shares : mapping of int to float
        Fraction of the whole surface, inside and underside too, that is visible, in [0, 1], by
        instance.
    specification : SceneSpecification, optional
        Objects and rooms that the scene was made to hold.
    """

    format: Literal['osmabench.ground_truth/1'] = FORMAT
    dataset: str
    scene: str
    label_set: LabelSet
    graph: SceneGraph
    intrinsics: Intrinsics
    seen_instances: tuple[int, ...]
    max_depth_m: float
    points_per_m2: float
    visible_graph: SceneGraph | None = None
    visible_shares: Mapping[int, float] = field(default_factory=dict)
    specification: Annotated[SceneSpecification, _WRITTEN] | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class GroundTruth(GroundTruthDocument):
    """Ground truth of one scene and trajectory, shared by all conditions and mappers.

    Parameters
    ----------
    surface : LabelledCloud
        Points spread uniformly over the meshes, those that the trajectory could see.
    unseen : LabelledCloud
        The remaining points: a map need not have them, and points on them are right.
    camera_poses : tuple of Pose
        Optical frame in the world, one per frame.
    fused : LabelledCloud, optional
        OSMa-Bench's cloud from depth images, for mode compat.
    """

    surface: LabelledCloud
    unseen: LabelledCloud
    camera_poses: tuple[Pose, ...]
    fused: LabelledCloud | None = None

    @cached_property
    def evaluated_graph(self) -> SceneGraph:
        """The graph, with boxes of the visible parts of objects seen by less than SMALL_SHARE."""
        if self.visible_graph is None:
            return self.graph
        parts = self.visible_graph.by_id
        nodes = tuple(
            replace(node, box=parts[node.id].box, oriented_box=None)
            if node.id in parts and self.visible_shares.get(node.id, 1.0) < SMALL_SHARE
            else node
            for node in self.graph.nodes
        )
        return replace(self.graph, nodes=nodes)

    @cached_property
    def uncertain_boxes(self) -> frozenset[int]:
        """Instances with a box that differs from their visible part by over EXTENT_TOLERANCE."""
        parts = self.visible_graph.nodes if self.visible_graph is not None else ()
        known = self.graph.by_id
        return frozenset(part.id for part in parts if _differs(part, known[part.id]))

    @cached_property
    def uncertain_edges(self) -> tuple[SceneEdge, ...]:
        """Relations that hold for the whole objects and not for the visible parts, or reverse."""
        if self.visible_graph is None:
            return ()
        parts = self.visible_graph.by_id
        of_wholes, of_parts = (
            {
                (edge.source, edge.type, edge.target): edge
                for edge in graph.edges
                if edge.source in parts and edge.target in parts
            }
            for graph in (self.graph, self.visible_graph)
        )
        both = of_parts.keys() & of_wholes.keys()
        return tuple(edge for key, edge in {**of_wholes, **of_parts}.items() if key not in both)


def _differs(part: SceneNode, whole: SceneNode) -> bool:
    if part.box is None or whole.box is None:
        return False
    absolute, relative = EXTENT_TOLERANCE
    allowed = np.maximum(absolute, relative * whole.box.size)
    ends = part.box.minimum - whole.box.minimum, part.box.maximum - whole.box.maximum
    return bool((np.abs(ends) > allowed).any())


def build_ground_truth(
    scene: Scene,
    camera_poses: Sequence[Pose],
    intrinsics: Intrinsics,
    *,
    frames: Iterable[Frame] | None = None,
    points_per_m2: float = 400.0,
    max_depth_m: float = 10.0,
    seed: int = 0,
    progress: Progress = silent,
) -> GroundTruth:
    """Sample a scene's surface, find the visible part, and build the scene graph.

    `camera_poses` are optical frames in the world; `frames`, without effects of light and with
    ground-truth images, give the fused cloud of compat and the colours of the visible parts.
    Points deeper than `max_depth_m`, or where a pixel covers more than MAX_EXTENT_M, are
    unseen; MIN_VISIBLE_POINTS make an instance seen.
    """
    from osmabench_ros.scenes.ground_truth import (
        build_graph_of_visible_parts,
        build_ground_truth_graph,
        sample_object_surfaces,
        sample_visibility_probes,
    )
    from osmabench_ros.scenes.visibility import find_visible_points, sample_surface

    progress('sampling the surface', 0.0)
    cloud = sample_surface(scene, points_per_m2, seed)
    objects = sample_object_surfaces(scene)
    probes = sample_visibility_probes(scene, objects, points_per_m2)
    progress('casting rays', 0.2)
    visible, probed = (
        find_visible_points(
            scene, points, camera_poses, intrinsics, max_depth_m, max_extent_m=MAX_EXTENT_M
        )
        for points in (cloud, probes)
    )
    surface = cloud.select(visible)
    seen = seen_instances(surface.instances, MIN_VISIBLE_POINTS)
    progress('fusing frames', 0.7)
    pixels: ColorCounts = {}
    fused = None if frames is None else fuse_cloud(count_colors(frames, pixels))
    progress('deriving relations', 0.9)
    graph = build_ground_truth_graph(scene, objects)
    shares = pd.Series(probed).groupby(probes.instances).mean().round(4)
    visible_points, colors = joined([surface, probes.select(probed)]), name_colors(pixels)
    return GroundTruth(
        dataset=scene.dataset,
        scene=scene.name,
        label_set=scene.label_set,
        graph=graph,
        surface=surface,
        unseen=cloud.select(~visible),
        camera_poses=tuple(camera_poses),
        intrinsics=intrinsics,
        seen_instances=seen,
        fused=fused,
        max_depth_m=max_depth_m,
        points_per_m2=points_per_m2,
        visible_graph=build_graph_of_visible_parts(graph, visible_points, seen, colors),
        visible_shares=shares[shares > 0].to_dict(),
        specification=scene.specification,
    )


def seen_instances(instances: NDArray[np.integer], min_points: int) -> tuple[int, ...]:
    """Return the instances with at least so many points, ascending."""
    ids, counts = np.unique(instances, return_counts=True)
    return tuple(int(i) for i in ids[(counts >= min_points) & (ids != NO_INSTANCE)])


FRAME_STRIDE = 5
POINT_STRIDE = 10
# Depth from which on OSMa-Bench's 16-bit images (6553.5 a metre) say no more.
SATURATION_M = 10.0


def fuse_cloud(frames: Iterable[Frame]) -> LabelledCloud:
    """Fuse the frames of a sequence as OSMa-Bench does; SequenceError without semantic images.

    Mode compat uses it. It comes from the images that the method saw and is as dense as they
    overlap; strict metrics use the cloud sampled on the meshes instead.
    """
    none = np.zeros(0, np.int32)
    clouds = [LabelledCloud(np.zeros((0, 3), np.float32), none, none)]
    for frame in frames:
        if frame.index % FRAME_STRIDE:
            continue
        if frame.semantic is None:
            problem = f'frame {frame.index} has no semantic image'
            raise SequenceError(f'{problem}; a ground-truth cloud needs one')
        usable = frame.valid & (frame.depth_m < SATURATION_M)
        mask = np.zeros(usable.shape, bool)
        mask.flat[np.flatnonzero(usable)[::POINT_STRIDE]] = True
        ids = np.zeros(mask.shape, np.int32) if frame.instance is None else frame.instance
        labels = frame.semantic[mask].astype(np.int32)
        clouds.append(LabelledCloud(frame.world_points(mask), labels, ids[mask]))
    return joined(clouds)


# Every how many-th row and column is looked at; objects of a few pixels are not asked about.
_PIXEL_STRIDE = 4


# How many pixels of each instance have each colour.
ColorCounts = dict[int, NDArray[np.int64]]


def count_colors(frames: Iterable[Frame], counts: ColorCounts) -> Iterator[Frame]:
    """Yield frames without effects of light, and count the colours of their instances."""
    looked_at = np.s_[::_PIXEL_STRIDE, ::_PIXEL_STRIDE]
    for frame in frames:
        if frame.instance is not None:
            instances = frame.instance[looked_at].ravel()
            colors = color_indices(frame.color[looked_at].reshape(-1, 3))
            for key in np.setdiff1d(instances, [NO_INSTANCE]).tolist():
                own = np.bincount(colors[instances == key], minlength=len(COLOR_EXAMPLES))
                counts[key] = counts.get(key, 0) + own
        yield frame


def name_colors(counts: ColorCounts) -> dict[int, str]:
    """Return the name of the colour that most pixels of each instance have."""
    every = np.arange(len(COLOR_EXAMPLES))
    return {key: choose_color(every, pixels) for key, pixels in counts.items()}


def write_ground_truth(truth: GroundTruth, directory: Path) -> None:
    """Write ground_truth.json and .npy arrays, the same bytes for equal ground truth.

    The folder appears whole; labels and instances are int32, points and normals float32. Raises
    RunError if there is such a folder, or it cannot be written.
    """
    with atomic_directory(directory) as draft:
        for name, array in _list_arrays(truth).items():
            np.save(draft / name, array, allow_pickle=False)
        absent = {'specification'} if truth.specification is None else set()
        form = TypeAdapter(GroundTruthDocument)
        content = form.dump_python(truth, mode='json', exclude=absent, warnings=False)
        write_json(draft / DOCUMENT, content)


def read_ground_truth(directory: Path) -> GroundTruth:
    """Read what `write_ground_truth` wrote; SequenceError names a missing or malformed file."""
    path = directory / DOCUMENT
    if not path.is_file():
        remedy = 'give a folder of osmabench scene ground-truth, or one in shared/ of a run'
        raise SequenceError(f'{directory} holds no {DOCUMENT}; {remedy}')
    with naming_errors(directory, SequenceError):
        data = read_json(path, SequenceError)
        document = validated(GroundTruthDocument, data, str(path), SequenceError)
        clouds: dict[str, Any] = {
            name: _read_cloud(directory, name)
            for name in _CLOUDS
            if name != 'fused' or (directory / 'fused_points.npy').exists()
        }
        poses = map(Pose.from_matrix, read_npy(directory / _POSES, SequenceError))
        return GroundTruth(**vars(document), **clouds, camera_poses=tuple(poses))


def _list_arrays(truth: GroundTruth) -> dict[str, NDArray[Any]]:
    poses = np.array([pose.matrix for pose in truth.camera_poses]).reshape(-1, 4, 4)
    arrays: dict[str, NDArray[Any]] = {_POSES: poses}
    for name in _CLOUDS:
        for part, kind in _PARTS.items():
            values = getattr(getattr(truth, name), part, None)
            if values is not None:
                arrays[f'{name}_{part}.npy'] = values.astype(kind)
    return arrays


def _read_cloud(directory: Path, name: str) -> LabelledCloud:
    paths = {part: directory / f'{name}_{part}.npy' for part in _PARTS}
    if not paths['normals'].exists():
        del paths['normals']
    return LabelledCloud(**{part: read_npy(path, SequenceError) for part, path in paths.items()})
