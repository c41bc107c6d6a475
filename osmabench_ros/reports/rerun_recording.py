"""Recordings for the Rerun viewer: frames, path, map, scene graph, errors in colour.

Entities: `about`; `world/camera` (pose, pinhole, `image`,
`depth`), `world/path`, `world/map/{color,class,errors}`, `world/graph/{objects,structure,errors}`,
`world/graph/edges/TYPE`, `world/ground_truth/…` likewise. The points of a cloud that are more than
CUT_HEIGHT_M above the floors are an entity `ceiling` below it, so that they can be switched off.
Timelines: `frame` and `time`.
"""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.files import atomic_write
from osmabench_ros.base.images import encode_image
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import read_model
from osmabench_ros.errors import needing
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.maps.storage import read_map
from osmabench_ros.reports.palette import name_color
from osmabench_ros.reports.pictures import graph_errors
from osmabench_ros.reports.pictures.sample_frames import read_camera_poses
from osmabench_ros.reports.pictures.topview import CUT_HEIGHT_M
from osmabench_ros.reports.tidy import read_headlines
from osmabench_ros.runs.identity import slug
from osmabench_ros.runs.matrix_on_disk import open_run
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.semantics.storeys import measure_heights_above_floor
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.sequences.recorded import open_sequence

# Of ERROR_COLORS, for texts.
COLOR_NAMES = ('blue', 'orange', 'yellow', 'pink', 'dark red')


def record_runs(
    directories: Sequence[Path],
    file: Path,
    progress: Progress = silent,
    *,
    overwrite: bool = False,
) -> list[Path]:
    """Write Rerun recordings, of several runs a file each next to `file`; return the files."""
    files = []
    for directory in directories:
        name = f'{file.stem}.{directory.name}{file.suffix}'
        files.append(file.with_name(name) if len(directories) > 1 else file)
        view = read_run_scene(open_run(directory))
        write_rerun(view, files[-1], progress, overwrite=overwrite)
    return files


MOST_FRAMES = 2000
JPEG_QUALITY = 85
DEPTH_PER_M = 1000


@dataclass(frozen=True, eq=False)
class TrackedFrame:
    """One frame for a viewer: its time, optical pose, PNG or JPEG, and depth as a PNG of mm."""

    index: int
    time_s: float
    pose: Pose
    picture: bytes = b''
    depth: bytes = b''


def read_track(plan: RunPlan) -> Iterator[TrackedFrame]:
    """Yield the frames of a run in order, from its bag or else its sample pictures.

    Of a long bag it is every n-th, at most MOST_FRAMES.
    """
    if plan.bag_directory.exists():
        sequence = open_sequence(plan.bag_directory)
        every = math.ceil(len(sequence) / MOST_FRAMES)
        for frame in islice(sequence, 0, None, every):
            yield encode_frame(frame, (frame.stamp_ns - sequence.stamps_ns[0]) / 1e9)
        return
    rate_hz = plan.config.trajectory.frame_rate_hz
    for index, pose in enumerate(read_camera_poses(plan)):
        file = plan.frames_directory / f'{index:06d}.png'
        picture = file.read_bytes() if file.exists() else b''
        yield TrackedFrame(index, index / rate_hz, pose, picture)


def encode_frame(frame: Frame, time_s: float) -> TrackedFrame:
    """Return a frame with its images encoded."""
    depth = np.where(np.isfinite(frame.depth_m), frame.depth_m, 0.0) * DEPTH_PER_M
    depth = np.where(depth < np.iinfo(np.uint16).max, depth, 0).round().astype(np.uint16)
    picture = encode_image(Image.fromarray(frame.color), 'JPEG', quality=JPEG_QUALITY)
    depth_picture = encode_image(Image.fromarray(depth), 'PNG', compress_level=1)
    return TrackedFrame(frame.index, time_s, frame.camera_pose, picture, depth_picture)


@dataclass(frozen=True, eq=False)
class RerunScene:
    """A map, the ground truth that shows its errors, and the camera's frames, consumed once."""

    name: str
    semantic_map: SemanticMap
    truth: GroundTruth | None = None
    max_distance_m: float = 0.1
    report: RunReport | None = None
    intrinsics: Intrinsics | None = None
    frames: Iterable[TrackedFrame] = ()

    @property
    def about(self) -> str:
        """Provenance, colours of errors and metrics, as Markdown."""
        origin, graph = self.semantic_map.header.provenance, self.semantic_map.graph
        points = () if self.semantic_map.dense is None else self.semantic_map.dense.points
        found = f'{origin.frames_used:,} frames, {len(points):,} points, '
        found += f'{len(graph.nodes):,} nodes, {len(graph.edges):,} edges'
        method = f'{origin.method or "unknown method"} {origin.method_version}'
        lines = [f'# {self.name}', '', f'{method}: {found}.']
        if self.truth is not None:
            lines += ['', '## Errors', '', '| what | colour |', '|---|---|']
            names = zip(graph_errors.ERROR_TITLES, COLOR_NAMES, strict=True)
            lines += [f'| {title} | {color} |' for title, color in names]
        if self.report is not None:
            lines += ['', '## Metrics', '', '| metric | value |', '|---|---|']
            shown = [item for item in read_headlines() if item.in_charts]
            records = [(item, item.find_record(self.report.metrics)) for item in shown]
            lines += [f'| {x.title} | {x.format_record(row)} |' for x, row in records if row]
        return '\n'.join(lines)


def read_run_scene(plan: RunPlan) -> RerunScene:
    """Read a run on disk with a recorded map."""
    scored = plan.report_file.exists()
    return RerunScene(
        plan.identity.run_id,
        read_map(plan.map_directory),
        read_ground_truth(plan.ground_truth_directory),
        graph_errors.read_max_distance(plan.config.suites),
        read_model(RunReport, plan.report_file) if scored else None,
        plan.config.camera.intrinsics,
        read_track(plan),
    )


def read_map_scene(
    map_directory: Path, ground_truth_directory: Path | None, max_distance_m: float = 0.1
) -> RerunScene:
    """Read a map on disk; with ground truth, its recording shows its errors."""
    truth = None if ground_truth_directory is None else read_ground_truth(ground_truth_directory)
    semantic_map = read_map(map_directory)
    name = semantic_map.header.provenance.method or map_directory.name
    return RerunScene(name, semantic_map, truth, max_distance_m)


_MAP_HIDES = ('map/errors', 'map/color', 'map/class/ceiling', 'ground_truth', 'graph/errors')
# Relations that would hide the others; drawn, but switched off.
_DENSE_RELATIONS = ('near', 'next-to', 'attached-to', 'part-of')

_GRAPH_HIDES = ('graph/structure', *(f'graph/edges/{name}' for name in _DENSE_RELATIONS))


def require_rerun() -> Any:
    """Return the module rerun; raises MissingDependencyError if it is not installed."""
    with needing('a Rerun recording needs rerun', extra('rerun')):
        import rerun
        import rerun.blueprint
    return rerun


def make_layout(view: RerunScene) -> Any:
    """Return the blueprint: the world at the left; camera and text next to it."""
    blueprint = require_rerun().blueprint

    def world(name: str, hidden: Iterable[str], **options: Any) -> Any:
        overrides = {f'world/{item}': blueprint.EntityBehavior(visible=False) for item in hidden}
        options |= _look_from_above(view)
        return blueprint.Spatial3DView(origin='world', name=name, overrides=overrides, **options)

    maps = [world('Map', (*_MAP_HIDES, *_GRAPH_HIDES, 'camera/depth'))]
    if view.truth is not None:
        contents = ['world/map/errors/**', 'world/graph/errors', 'world/path']
        maps.append(world('Errors', ('map/errors/ceiling',), contents=contents))
    about = blueprint.TextDocumentView(origin='about', name='About')
    color = blueprint.Spatial2DView(origin='world/camera', name='Colour', contents='$origin/image')
    depth = blueprint.Spatial2DView(origin='world/camera', name='Depth', contents='$origin/depth')
    camera = blueprint.Tabs(color, depth)
    side = blueprint.Vertical(camera, about) if view.intrinsics is not None else about
    columns = blueprint.Horizontal(blueprint.Tabs(*maps), side, column_shares=[2, 1])
    return blueprint.Blueprint(columns, collapse_panels=True)


def _look_from_above(view: RerunScene) -> dict[str, Any]:
    """Return the viewpoint of the view, if this release of rerun supports it."""
    dense = view.semantic_map.dense
    make = getattr(require_rerun().blueprint, 'EyeControls3D', None)
    if make is None or dense is None or not len(dense.points):
        return {}
    low, high = np.percentile(dense.points, (2, 98), axis=0)
    middle = (low + high) / 2
    extent = float(np.linalg.norm(high - low))
    position = (middle + extent * np.array([-0.35, -0.55, 0.75])).tolist()
    eye = make(position=position, look_target=middle.tolist(), eye_up=[0, 0, 1])
    return {'eye_controls': eye}


APPLICATION = 'osmabench'
# Points of a cloud; a larger one is thinned evenly.
MAX_POINTS = 2_000_000

MAX_SHOWN_LABELS = 150
_POINT_RADIUS_M = 0.018
_LINE_RADIUS_M = 0.008
_PNG_SIGNATURE = b'\x89PNG'


def write_rerun(
    view: RerunScene, file: Path, progress: Progress = silent, *, overwrite: bool = False
) -> None:
    """Write a Rerun recording atomically; makes the folder of the file."""
    rerun = require_rerun()
    with atomic_write(file, overwrite=overwrite) as draft:
        stream = rerun.RecordingStream(APPLICATION, recording_id=view.name)
        stream.save(draft, default_blueprint=make_layout(view))
        _log_view(stream, view, progress)
        stream.flush()
        stream.disconnect()


def _log_view(stream: Any, view: RerunScene, progress: Progress) -> None:
    rerun = require_rerun()
    stream.log('world', rerun.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    about = rerun.TextDocument(view.about, media_type='text/markdown')
    stream.log('about', about, static=True)
    progress('recording the map', 0.1)
    layers = graph_errors.draw_map_layers(view.semantic_map, view.truth, view.max_distance_m)
    entities = _draw_layers('world/graph', 'world/map', layers)
    if view.truth is not None:
        progress('recording the ground truth', 0.4)
        layers = graph_errors.draw_truth_layers(view.truth)
        entities |= _draw_layers('world/ground_truth', 'world/ground_truth', layers)
    for path, entity in entities.items():
        stream.log(path, entity, static=True)
    progress('recording frames', 0.7)
    if view.intrinsics is not None:
        _log_camera(stream, view.intrinsics, view.frames)


def _draw_layers(graphs: str, clouds: str, layers: graph_errors.Layers) -> dict[str, Any]:
    """Return entities by path."""
    entities: dict[str, Any] = {}
    for name, cloud in layers.clouds.items():
        entities |= _draw_cloud(f'{clouds}/{name}', cloud)
    graph = layers.graphs['graph']
    errors = layers.graphs.get('errors')
    objects = {node.id for node in graph.graph.of_kind(NodeKind.OBJECT)}
    entities |= _draw_boxes(f'{graphs}/objects', graph, objects)
    entities |= _draw_boxes(f'{graphs}/structure', graph, graph.colors.keys() - objects)
    if errors is not None:
        entities |= _draw_boxes(f'{graphs}/errors', errors, errors.colors)
    return entities | _draw_edges(f'{graphs}/edges', graph)


def _draw_cloud(path: str, dense: DenseMap) -> dict[str, Any]:
    count = len(dense.points)
    if not count:
        return {}
    rows = np.linspace(0, count - 1, min(count, MAX_POINTS)).astype(np.int64)
    points = dense.points[rows]
    high = measure_heights_above_floor(points) > CUT_HEIGHT_M
    return {
        name: require_rerun().Points3D(
            points[part],
            colors=None if dense.colors is None else dense.colors[rows[part]],
            radii=_POINT_RADIUS_M,
        )
        for name, part in ((path, ~high), (f'{path}/ceiling', high))
    }


def _draw_boxes(
    path: str, coloured: graph_errors.ColouredGraph, shown: Collection[int]
) -> dict[str, Any]:
    rerun, boxes = require_rerun(), {}
    for node in coloured.graph.nodes:
        if node.id in shown and node.oriented_box is not None:
            pose = node.oriented_box.pose
            boxes[node] = pose.translation, node.oriented_box.size, pose.quaternion
        elif node.id in shown and node.box is not None:
            boxes[node] = node.box.center, node.box.size, np.array([0.0, 0.0, 0.0, 1.0])
    if not boxes:
        return {}
    entity = rerun.Boxes3D(
        centers=[center for center, _, _ in boxes.values()],
        half_sizes=[size / 2 for _, size, _ in boxes.values()],
        quaternions=[rerun.Quaternion(xyzw=turn) for _, _, turn in boxes.values()],
        colors=[coloured.colors[node.id] for node in boxes],
        labels=[f'{node.label or "?"} {node.id}' for node in boxes],
        show_labels=len(boxes) <= MAX_SHOWN_LABELS,
        fill_mode='majorwireframe',
        radii=_LINE_RADIUS_M,
    )
    return {path: entity}


def _draw_edges(path: str, coloured: graph_errors.ColouredGraph) -> dict[str, Any]:
    """Return lines between nodes by type of relation."""
    places = graph_errors.find_centers(coloured.graph)
    lines = defaultdict(list)
    for edge in coloured.graph.edges:
        if edge.source in places and edge.target in places:
            ends = places[edge.source], places[edge.target]
            lines[edge.type].append(ends)
    return {
        f'{path}/{slug(name)}': require_rerun().LineStrips3D(
            np.array(strips),
            colors=[name_color(name)] * len(strips),
            labels=[name] * len(strips),
            show_labels=False,
            radii=_LINE_RADIUS_M,
        )
        for name, strips in lines.items()
    }


def _log_camera(stream: Any, intrinsics: Intrinsics, frames: Iterable[TrackedFrame]) -> None:
    rerun = require_rerun()
    pinhole = rerun.Pinhole(
        image_from_camera=intrinsics.matrix,
        resolution=(intrinsics.width, intrinsics.height),
        camera_xyz=rerun.ViewCoordinates.RDF,
        image_plane_distance=0.4,
    )
    stream.log('world/camera', pinhole, static=True)
    path = []
    for frame in frames:
        path.append(frame.pose.translation)
        stream.set_time('frame', sequence=frame.index)
        stream.set_time('time', duration=frame.time_s)
        turn = rerun.Quaternion(xyzw=frame.pose.quaternion)
        transform = rerun.Transform3D(translation=frame.pose.translation, quaternion=turn)
        stream.log('world/camera', transform)
        if frame.picture:
            kind = 'png' if frame.picture.startswith(_PNG_SIGNATURE) else 'jpeg'
            image = rerun.EncodedImage(contents=frame.picture, media_type=f'image/{kind}')
            stream.log('world/camera/image', image)
        if frame.depth:
            depth = rerun.EncodedDepthImage(frame.depth, media_type='image/png', meter=DEPTH_PER_M)
            stream.log('world/camera/depth', depth)
    if len(path) > 1:
        strip = rerun.LineStrips3D([np.array(path)], colors=[(255, 255, 255)], radii=0.02)
        stream.log('world/path', strip, static=True)
