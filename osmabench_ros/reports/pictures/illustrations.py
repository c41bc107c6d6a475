"""Pictures of scenes and runs: views from above with the path, and sample frames."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.storage import read_map
from osmabench_ros.reports import palette
from osmabench_ros.reports.pictures import graph_errors, sample_frames
from osmabench_ros.reports.pictures.topview import TopGrid, draw_top_view
from osmabench_ros.reports.pictures.view_3d import SpaceOfScene
from osmabench_ros.runs.plan import PATH_FILE, RunPlan
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.semantics.storeys import find_storey, find_storeys
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.suites.suite import SuiteContext

_TRUTH_SPACINGS = 1.8
_LEGEND_CLASSES = 24
_SCALE_BARS_M = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0)


@dataclass(frozen=True, eq=False)
class ScenePictures:
    """Pictures shared by all runs of a scene; `key` is unique on the page.

    `view` is a data URI of the visible surface by class, `paths` the parts of the robot's path on
    the storeys that it comes to, in its pixels, `scale_m` the length of the scale bar. `legend`
    has class, colour and share of the visible surface, largest first.
    """

    key: str
    truth: GroundTruth
    grid: TopGrid
    view: str
    paths: list[list[tuple[float, float]]]
    legend: list[tuple[str, str, float]]
    scale_m: float
    space: SpaceOfScene


@dataclass(frozen=True, eq=False)
class RunPictures:
    """Pictures of one run, shares of the visible surface by outcome and instance, its 3D view."""

    graph: SceneGraph
    views: list[tuple[str, str]]
    outcome_shares: Mapping[palette.PointOutcome, float]
    frames: list[sample_frames.SampleFrame]
    object_shares: Mapping[int, float]
    space: Mapping[str, Any]


def draw_scene_pictures(plan: RunPlan, key: str, most_points: int) -> ScenePictures:
    """Draw the pictures of a scene; `plan` is any of its runs, `key` unique on the page.

    `most_points` is of each cloud of the 3D view.
    """
    truth = read_ground_truth(plan.ground_truth_directory)
    places, floor_height_m = _read_driven_path(plan, truth)
    storeys_m = find_storeys(truth.surface.points)
    floors_m = storeys_m if len(storeys_m) > 1 else (floor_height_m,)
    grid = TopGrid.around(truth.surface.points, floors_m)
    colors = palette.assign_class_colors(truth.label_set)
    wanted = grid.panel * grid.cell_m / 4
    return ScenePictures(
        key,
        truth,
        grid,
        _draw_truth_view(truth, palette.color_labels(truth.surface.labels, colors), grid),
        _draw_paths(places, grid),
        [
            (truth.label_set.name_of(number), palette.format_hex_color(colors[number]), share)
            for number, share in _rank_classes(truth)[:_LEGEND_CLASSES]
        ],
        max((bar for bar in _SCALE_BARS_M if bar <= wanted), default=_SCALE_BARS_M[0]),
        SpaceOfScene(truth, floor_height_m, most_points),
    )


def _read_driven_path(plan: RunPlan, truth: GroundTruth) -> tuple[NDArray[np.float64], float]:
    """Return the positions of the robot, (N, 3) in metres, and the height of the lowest floor."""
    if plan.scene.sequence is None:
        robot = RobotPath.read(plan.shared_directory / PATH_FILE)
        return np.column_stack([robot.states[:, :2], robot.floors_m]), robot.floor_height_m
    places = np.array([pose.translation for pose in truth.camera_poses])
    return places, float(np.quantile(truth.surface.points[:, 2], 0.01))


def _draw_paths(places: NDArray[np.float64], grid: TopGrid) -> list[list[tuple[float, float]]]:
    """Return the parts of a path on each storey in pixels, without turns in place."""
    changes = np.flatnonzero(np.diff(find_storey(places[:, 2], grid.floors_m))) + 1
    parts = []
    for corners in map(grid.find_pixels, np.split(places, changes)):
        moved = [True, *(np.diff(corners, axis=0) != 0).any(axis=1)]
        parts.append([(round(float(x), 1), round(float(y), 1)) for x, y in corners[moved]])
    return parts


def _draw_truth_view(truth: GroundTruth, colors: NDArray[np.uint8], grid: TopGrid) -> str:
    splat_m = float(_TRUTH_SPACINGS / np.sqrt(max(truth.points_per_m2, 1.0)))
    view = draw_top_view(truth.surface.points, colors, grid, splat_m)
    return sample_frames.encode_drawing(view)


def _rank_classes(truth: GroundTruth) -> list[tuple[int, float]]:
    """Return the classes with their share of the visible labelled surface, the largest first."""
    labels = truth.surface.labels[truth.surface.labels != UNLABELLED]
    ids, counts = np.unique(labels, return_counts=True)
    shares = zip(ids.tolist(), (counts / max(len(labels), 1)).tolist(), strict=True)
    return sorted(shares, key=lambda item: (-item[1], truth.label_set.name_of(item[0])))


def draw_run_pictures(plan: RunPlan, scene: ScenePictures) -> RunPictures:
    """Draw the recorded map of a run, and collect its sample frames."""
    semantic_map = read_map(plan.map_directory)
    truth = scene.truth
    grid = scene.grid
    context = SuiteContext(truth.scene, semantic_map, truth, device='cpu')
    max_distance_m = graph_errors.read_max_distance(plan.config.suites)
    outcomes = graph_errors.compute_surface_outcomes(context, max_distance_m)
    layers = graph_errors.draw_map_layers(semantic_map, truth, max_distance_m, context)
    views = []
    for name, title in (('color', 'Recorded map, colour'), ('class', 'Recorded map, class')):
        cloud = layers.clouds.get(name)
        if cloud is not None and cloud.colors is not None:
            view = draw_top_view(cloud.points, cloud.colors, grid)
            views.append((title, sample_frames.encode_drawing(view)))
    shares: dict[palette.PointOutcome, float] = {}
    of_objects: dict[int, float] = {}
    if outcomes is not None:
        colors = graph_errors.ERROR_COLORS[outcomes]
        title = 'Right and wrong on the visible surface'
        views.append((title, _draw_truth_view(truth, colors, grid)))
        shares = graph_errors.compute_shares(outcomes)
        of_objects = graph_errors.compute_object_shares(outcomes, truth)
    frames = sample_frames.pick_sample_frames(plan, truth)
    poses = truth.camera_poses if plan.scene.sequence else sample_frames.read_camera_poses(plan)
    pictured = [frame.index for frame in frames]
    space = scene.space.describe_run(layers, semantic_map.trajectory, poses, pictured)
    return RunPictures(semantic_map.graph, views, shares, frames, of_objects, space)
