"""Recordings for the Rerun viewer: frames, path, map, scene graph, errors in colour.

Entities: `about`; `world/camera` (pose, pinhole, `image`,
`depth`), `world/path`, `world/map/{color,class,errors}`, `world/graph/{objects,structure,errors}`,
`world/graph/edges/TYPE`, `world/ground_truth/…` likewise. The points of a cloud that are more than
CUT_HEIGHT_M above the floors are an entity `ceiling` below it, so that they can be switched off.
Timelines: `frame` and `time`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.files import atomic_write
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import needing
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.reports.camera_track import DEPTH_PER_M, TrackedFrame
from osmabench_ros.reports.palette import name_color
from osmabench_ros.reports.pictures.graph_errors import (
    ColouredGraph,
    Layers,
    centers,
    draw_truth_layers,
    map_layers,
)
from osmabench_ros.reports.pictures.topview import CUT_HEIGHT_M
from osmabench_ros.runs.identity import slug
from osmabench_ros.semantics.scene_graph import NodeKind, SceneEdge, SceneNode
from osmabench_ros.semantics.storeys import measure_heights_above_floor
from osmabench_ros.sequences.ground_truth import GroundTruth


@dataclass(frozen=True, eq=False)
class RerunScene:
    """A map, the ground truth that shows its errors, and the camera's frames, consumed once."""

    name: str
    about: str
    semantic_map: SemanticMap
    truth: GroundTruth | None = None
    max_distance_m: float = 0.1
    intrinsics: Intrinsics | None = None
    frames: Iterable[TrackedFrame] = ()


_MAP_HIDES = ('map/errors', 'map/color', 'map/class/ceiling', 'ground_truth', 'graph/errors')
_DENSE_RELATIONS = ('near', 'next-to', 'attached-to', 'part-of')
"""Relations that would hide the others; drawn, but switched off."""

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
        return blueprint.Spatial3DView(
            origin='world', name=name, overrides=overrides, **_look_from_above(view), **options
        )

    maps = [world('Map', (*_MAP_HIDES, *_GRAPH_HIDES, 'camera/depth'))]
    if view.truth is not None:
        contents = ['world/map/errors/**', 'world/graph/errors', 'world/path']
        maps.append(world('Errors', ('map/errors/ceiling',), contents=contents))
    about = blueprint.TextDocumentView(origin='about', name='About')
    images = [
        blueprint.Spatial2DView(origin='world/camera', name=name, contents=f'$origin/{part}')
        for name, part in (('Colour', 'image'), ('Depth', 'depth'))
    ]
    camera = blueprint.Tabs(*images)
    side = blueprint.Vertical(camera, about) if view.intrinsics is not None else about
    return blueprint.Blueprint(
        blueprint.Horizontal(blueprint.Tabs(*maps), side, column_shares=[2, 1]),
        collapse_panels=True,
    )


def _look_from_above(view: RerunScene) -> dict[str, Any]:
    """Return the viewpoint of the view, if this release of rerun supports it."""
    dense = view.semantic_map.dense
    make = getattr(require_rerun().blueprint, 'EyeControls3D', None)
    if make is None or dense is None or not len(dense.points):
        return {}
    low, high = np.percentile(dense.points, (2, 98), axis=0)
    middle, extent = (low + high) / 2, float(np.linalg.norm(high - low))
    position = middle + extent * np.array([-0.35, -0.55, 0.75])
    return {
        'eye_controls': make(
            position=position.tolist(), look_target=middle.tolist(), eye_up=[0, 0, 1]
        )
    }


APPLICATION = 'osmabench'
MAX_POINTS = 2_000_000
"""Points of a cloud; a larger one is thinned evenly."""

MAX_SHOWN_LABELS = 150
_POINT_RADIUS_M = 0.018
_LINE_RADIUS_M = 0.008
_PNG_SIGNATURE = b'\x89PNG'


def write_rerun(
    view: RerunScene,
    file: Path,
    progress: Progress = silent,
    *,
    overwrite: bool = False,
) -> None:
    """Write a Rerun recording atomically; makes the folder of the file."""
    rerun = require_rerun()
    with atomic_write(file, overwrite=overwrite) as draft:
        stream = rerun.RecordingStream(APPLICATION, recording_id=view.name)
        stream.save(draft, default_blueprint=make_layout(view))
        _Recording(rerun, stream).log(view, progress)
        stream.flush()
        stream.disconnect()


class _Recording:
    """Logs the parts of a view to a stream."""

    def __init__(self, rerun: Any, stream: Any) -> None:
        self._rerun = rerun
        self._stream = stream

    def log(self, view: RerunScene, report: Progress) -> None:
        rerun = self._rerun
        self._log_static('world', rerun.ViewCoordinates.RIGHT_HAND_Z_UP)
        self._log_static('about', rerun.TextDocument(view.about, media_type='text/markdown'))
        report('recording the map', 0.1)
        self._log_layers(
            'world/graph',
            'world/map',
            map_layers(view.semantic_map, view.truth, view.max_distance_m),
        )
        if view.truth is not None:
            report('recording the ground truth', 0.4)
            self._log_layers(
                'world/ground_truth', 'world/ground_truth', draw_truth_layers(view.truth)
            )
        report('recording frames', 0.7)
        if view.intrinsics is not None:
            self._log_camera(view.intrinsics, view.frames)

    def _log_layers(self, graphs: str, clouds: str, layers: Layers) -> None:
        for name, cloud in layers.clouds.items():
            self._log_cloud(f'{clouds}/{name}', cloud)
        self._log_graph(graphs, layers.graphs['graph'])
        if 'errors' in layers.graphs:
            self._log_boxes(f'{graphs}/errors', layers.graphs['errors'])

    def _log_static(self, path: str, entity: Any) -> None:
        self._stream.log(path, entity, static=True)

    def _log_cloud(self, path: str, dense: DenseMap) -> None:
        rows = _select_rows(len(dense.points))
        if not len(rows):
            return
        points = dense.points[rows]
        high = measure_heights_above_floor(points) > CUT_HEIGHT_M
        for name, part in ((path, ~high), (f'{path}/ceiling', high)):
            colors = None if dense.colors is None else dense.colors[rows[part]]
            self._log_static(
                name, self._rerun.Points3D(points[part], colors=colors, radii=_POINT_RADIUS_M)
            )

    def _log_graph(self, path: str, coloured: ColouredGraph) -> None:
        graph = coloured.graph
        self._log_boxes(f'{path}/objects', coloured, graph.of_kind(NodeKind.OBJECT))
        structure = [node for node in graph.nodes if node.kind is not NodeKind.OBJECT]
        self._log_boxes(f'{path}/structure', coloured, structure)
        places = centers(graph)
        by_type: dict[str, list[SceneEdge]] = {}
        for edge in graph.edges:
            if {edge.source, edge.target} <= places.keys():
                by_type.setdefault(edge.type, []).append(edge)
        for name, edges in by_type.items():
            self._log_edges(f'{path}/edges/{slug(name)}', edges, places)

    def _log_boxes(
        self, path: str, coloured: ColouredGraph, nodes: Iterable[SceneNode] | None = None
    ) -> None:
        shown = coloured.graph.nodes if nodes is None else nodes
        boxed = [node for node in shown if node.oriented_box or node.box]
        if not boxed:
            return
        placed = [_place_box(node) for node in boxed]
        self._log_static(
            path,
            self._rerun.Boxes3D(
                centers=[center for center, _, _ in placed],
                half_sizes=[size / 2 for _, size, _ in placed],
                quaternions=[self._rerun.Quaternion(xyzw=turn) for _, _, turn in placed],
                colors=[coloured.colors[node.id] for node in boxed],
                labels=[f'{node.label or "?"} {node.id}' for node in boxed],
                show_labels=len(boxed) <= MAX_SHOWN_LABELS,
                fill_mode='majorwireframe',
                radii=_LINE_RADIUS_M,
            ),
        )

    def _log_edges(
        self, path: str, edges: list[SceneEdge], places: Mapping[int, NDArray[np.float64]]
    ) -> None:
        strips = np.array([[places[edge.source], places[edge.target]] for edge in edges])
        names = [edge.type for edge in edges]
        self._log_static(
            path,
            self._rerun.LineStrips3D(
                strips,
                colors=[name_color(name) for name in names],
                labels=names,
                show_labels=False,
                radii=_LINE_RADIUS_M,
            ),
        )

    def _log_camera(self, intrinsics: Intrinsics, frames: Iterable[TrackedFrame]) -> None:
        rerun = self._rerun
        pinhole = rerun.Pinhole(
            image_from_camera=intrinsics.matrix,
            resolution=(intrinsics.width, intrinsics.height),
            camera_xyz=rerun.ViewCoordinates.RDF,
            image_plane_distance=0.4,
        )
        self._log_static('world/camera', pinhole)
        path = []
        for frame in frames:
            path.append(frame.pose.translation)
            self._log_frame(frame)
        if len(path) > 1:
            strip = rerun.LineStrips3D([np.array(path)], colors=[(255, 255, 255)], radii=0.02)
            self._log_static('world/path', strip)

    def _log_frame(self, frame: TrackedFrame) -> None:
        rerun, stream = self._rerun, self._stream
        stream.set_time('frame', sequence=frame.index)
        stream.set_time('time', duration=frame.time_s)
        turn = rerun.Quaternion(xyzw=frame.pose.quaternion)
        transform = rerun.Transform3D(translation=frame.pose.translation, quaternion=turn)
        stream.log('world/camera', transform)
        if frame.picture:
            image = rerun.EncodedImage(
                contents=frame.picture, media_type=_read_media_type(frame.picture)
            )
            stream.log('world/camera/image', image)
        if frame.depth:
            depth = rerun.EncodedDepthImage(frame.depth, media_type='image/png', meter=DEPTH_PER_M)
            stream.log('world/camera/depth', depth)


def _read_media_type(picture: bytes) -> str:
    return 'image/png' if picture.startswith(_PNG_SIGNATURE) else 'image/jpeg'


def _select_rows(count: int) -> NDArray[np.int64]:
    return np.linspace(0, count - 1, min(count, MAX_POINTS)).astype(np.int64)


def _place_box(
    node: SceneNode,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return centre, size and quaternion (x, y, z, w) of the box of a node."""
    oriented = node.oriented_box
    if oriented is not None:
        return oriented.pose.translation, oriented.size, oriented.pose.quaternion
    assert node.box is not None
    return node.box.center, node.box.size, np.array([0.0, 0.0, 0.0, 1.0])
