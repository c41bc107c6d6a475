"""Pictures of scenes and runs: views from above with the path, and sample frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.disk.storage import read_map
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.reports.outcomes import (
    OUTCOMES,
    max_distance_of,
    object_shares,
    shares,
    surface_outcomes,
    surface_shares,
)
from osmabench_ros.reports.palette import (
    PointOutcome,
    Rgb,
    class_colors,
    colors_of_labels,
    hex_color,
)
from osmabench_ros.reports.pictures.sample_frames import SampleFrame, png_uri, sample_frames
from osmabench_ros.reports.pictures.topview import TopGrid, top_view
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import GROUND_TRUTH_FOLDER, PATH_FILE
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.suites.prediction import predicted_labels
from osmabench_ros.suites.suite import SuiteContext

MAP_SPLAT_M = 0.05
_TRUTH_SPACINGS = 1.8
_LEGEND_CLASSES = 24
_SCALE_BARS_M = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True, eq=False)
class ScenePictures:
    """Pictures shared by all runs of a scene; `key` is unique on the page.

    `view` is a data URI of the visible surface by class, `path` that of the robot in its pixels,
    `scale_m` the length of the scale bar. `legend` has class, colour and share of the visible
    surface, largest first.
    """

    key: str
    truth: GroundTruth
    grid: TopGrid
    view: str
    path: tuple[tuple[float, float], ...]
    legend: tuple[tuple[str, str, float], ...]
    scale_m: float


@dataclass(frozen=True, eq=False)
class RunPictures:
    """Pictures of one run, and shares of the visible surface by outcome and by instance."""

    graph: SceneGraph
    views: tuple[tuple[str, str], ...]
    outcome_shares: Mapping[PointOutcome, float]
    frames: tuple[SampleFrame, ...]
    object_shares: Mapping[int, float]


def scene_pictures(plan: RunPlan, key: str) -> ScenePictures:
    """Draw the pictures of a scene; `plan` is any of its runs, `key` unique on the page."""
    truth = read_ground_truth(plan.shared_directory / GROUND_TRUTH_FOLDER)
    places, floor_height_m = _driven(plan, truth)
    grid = TopGrid.around(truth.surface.points, floor_height_m)
    colors = colors_of_labels(truth.surface.labels, class_colors(truth.label_set))
    corners = grid.pixels(places)
    return ScenePictures(
        key,
        truth,
        grid,
        png_uri(_truth_view(truth, colors, grid)),
        tuple((round(float(x), 1), round(float(y), 1)) for x, y in _without_turns(corners)),
        _legend(truth),
        _scale_m(grid),
    )


def _driven(plan: RunPlan, truth: GroundTruth) -> tuple[NDArray[np.float64], float]:
    """Return the positions of the robot, (N, 2) in metres, and the height of the floor."""
    if plan.scene.sequence is None:
        robot = RobotPath.read(plan.shared_directory / PATH_FILE)
        return robot.states[:, :2], robot.floor_height_m
    places = np.array([pose.translation[:2] for pose in truth.camera_poses])
    return places, float(np.quantile(truth.surface.points[:, 2], 0.01))


def _without_turns(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = np.linalg.norm(np.diff(corners, axis=0), axis=1) > 0
    return np.asarray(corners[np.concatenate([[True], moved])])


def _truth_view(truth: GroundTruth, colors: NDArray[np.uint8], grid: TopGrid) -> NDArray[np.uint8]:
    splat_m = _TRUTH_SPACINGS / np.sqrt(max(truth.points_per_m2, 1.0))
    return top_view(truth.surface.points, colors, grid, splat_m=float(splat_m))


def _legend(truth: GroundTruth) -> tuple[tuple[str, str, float], ...]:
    colors = class_colors(truth.label_set)
    found = sorted(surface_shares(truth).items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        (name, hex_color(colors[truth.label_set.id_of(name)]), share)
        for name, share in found[:_LEGEND_CLASSES]
    )


def _scale_m(grid: TopGrid) -> float:
    wanted = grid.width * grid.cell_m / 4
    return max((bar for bar in _SCALE_BARS_M if bar <= wanted), default=_SCALE_BARS_M[0])


def run_pictures(plan: RunPlan, scene: ScenePictures) -> RunPictures:
    """Draw the recorded map of a run, and collect its sample frames."""
    semantic_map = read_map(plan.map_directory)
    context = SuiteContext(scene.truth.scene, semantic_map, scene.truth, device='cpu')
    outcomes = surface_outcomes(context, max_distance_of(plan.config.suites))
    views = list(_map_views(semantic_map, scene.truth.label_set, scene.grid))
    if outcomes is not None:
        palette = np.array([item.color for item in OUTCOMES], np.uint8)
        drawn = _truth_view(scene.truth, palette[outcomes], scene.grid)
        views.append(('Right and wrong on the visible surface', png_uri(drawn)))
    return RunPictures(
        semantic_map.graph,
        tuple(views),
        {} if outcomes is None else shares(outcomes),
        tuple(sample_frames(plan, scene.truth)),
        {} if outcomes is None else object_shares(outcomes, scene.truth),
    )


def _map_views(
    semantic_map: SemanticMap, label_set: LabelSet, grid: TopGrid
) -> Sequence[tuple[str, str]]:
    dense = semantic_map.dense
    if dense is None:
        return []
    views = []
    if dense.colors is not None:
        seen = top_view(dense.points, dense.colors, grid, splat_m=MAP_SPLAT_M)
        views.append(('Recorded map, colour', png_uri(seen)))
    labels = predicted_labels(semantic_map, label_set)
    if labels is not None:
        palette: Mapping[int, Rgb] = class_colors(label_set)
        colors = colors_of_labels(labels, palette)
        drawn = top_view(dense.points, colors, grid, splat_m=MAP_SPLAT_M)
        views.append(('Recorded map, class', png_uri(drawn)))
    return views
