"""Pictures of scenes and runs: views from above with the path, and sample frames."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.storage import read_map
from osmabench_ros.reports.outcomes import (
    OUTCOMES,
    compute_object_shares,
    compute_surface_outcomes,
    compute_surface_shares,
    read_max_distance,
    shares,
)
from osmabench_ros.reports.palette import (
    PointOutcome,
    assign_class_colors,
    color_labels,
    format_hex_color,
)
from osmabench_ros.reports.pictures.graph_errors import map_layers
from osmabench_ros.reports.pictures.sample_frames import (
    SampleFrame,
    encode_drawing,
    read_camera_poses,
    sample_frames,
)
from osmabench_ros.reports.pictures.topview import TopGrid, draw_top_view
from osmabench_ros.reports.pictures.view_3d import SpaceOfScene
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.shared_path import PATH_FILE
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.semantics.storeys import storey_heights, storey_of
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.suites.suite import SuiteContext

MAP_SPLAT_M = 0.05
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
    paths: tuple[tuple[tuple[float, float], ...], ...]
    legend: tuple[tuple[str, str, float], ...]
    scale_m: float
    space: SpaceOfScene


@dataclass(frozen=True, eq=False)
class RunPictures:
    """Pictures of one run, shares of the visible surface by outcome and instance, its 3D view."""

    graph: SceneGraph
    views: tuple[tuple[str, str], ...]
    outcome_shares: Mapping[PointOutcome, float]
    frames: tuple[SampleFrame, ...]
    object_shares: Mapping[int, float]
    space: Mapping[str, Any]


def draw_scene_pictures(plan: RunPlan, key: str, most_points: int) -> ScenePictures:
    """Draw the pictures of a scene; `plan` is any of its runs, `key` unique on the page.

    `most_points` is of each cloud of the 3D view.
    """
    truth = read_ground_truth(plan.ground_truth_directory)
    places, floor_height_m = _read_driven_path(plan, truth)
    storeys_m = storey_heights(truth.surface.points)
    floors_m = storeys_m if len(storeys_m) > 1 else (floor_height_m,)
    grid = TopGrid.around(truth.surface.points, floors_m)
    colors = color_labels(truth.surface.labels, assign_class_colors(truth.label_set))
    changes = np.flatnonzero(np.diff(storey_of(places[:, 2], floors_m))) + 1
    parts = [grid.pixels(part) for part in np.split(places, changes)]
    return ScenePictures(
        key,
        truth,
        grid,
        encode_drawing(_draw_truth_view(truth, colors, grid)),
        tuple(
            tuple((round(float(x), 1), round(float(y), 1)) for x, y in _drop_turns(corners))
            for corners in parts
        ),
        _make_legend(truth),
        _scale_m(grid),
        SpaceOfScene(truth, floor_height_m, most_points),
    )


def _read_driven_path(plan: RunPlan, truth: GroundTruth) -> tuple[NDArray[np.float64], float]:
    """Return the positions of the robot, (N, 3) in metres, and the height of the lowest floor."""
    if plan.scene.sequence is None:
        robot = RobotPath.read(plan.shared_directory / PATH_FILE)
        return np.column_stack([robot.states[:, :2], robot.floors_m]), robot.floor_height_m
    places = np.array([pose.translation for pose in truth.camera_poses])
    return places, float(np.quantile(truth.surface.points[:, 2], 0.01))


def _drop_turns(corners: NDArray[np.float64]) -> NDArray[np.float64]:
    moved = np.linalg.norm(np.diff(corners, axis=0), axis=1) > 0
    return np.asarray(corners[np.concatenate([[True], moved])])


def _draw_truth_view(
    truth: GroundTruth, colors: NDArray[np.uint8], grid: TopGrid
) -> NDArray[np.uint8]:
    splat_m = _TRUTH_SPACINGS / np.sqrt(max(truth.points_per_m2, 1.0))
    return draw_top_view(truth.surface.points, colors, grid, splat_m=float(splat_m))


def _make_legend(truth: GroundTruth) -> tuple[tuple[str, str, float], ...]:
    colors = assign_class_colors(truth.label_set)
    found = sorted(compute_surface_shares(truth).items(), key=lambda item: (-item[1], item[0]))
    return tuple(
        (name, format_hex_color(colors[truth.label_set.id_of(name)]), share)
        for name, share in found[:_LEGEND_CLASSES]
    )


def _scale_m(grid: TopGrid) -> float:
    wanted = grid.panel * grid.cell_m / 4
    return max((bar for bar in _SCALE_BARS_M if bar <= wanted), default=_SCALE_BARS_M[0])


def run_pictures(plan: RunPlan, scene: ScenePictures) -> RunPictures:
    """Draw the recorded map of a run, and collect its sample frames."""
    semantic_map = read_map(plan.map_directory)
    context = SuiteContext(scene.truth.scene, semantic_map, scene.truth, device='cpu')
    max_distance_m = read_max_distance(plan.config.suites)
    outcomes = compute_surface_outcomes(context, max_distance_m)
    layers = map_layers(semantic_map, scene.truth, max_distance_m, context)
    views = [
        (
            title,
            encode_drawing(
                draw_top_view(cloud.points, cloud.colors, scene.grid, splat_m=MAP_SPLAT_M)
            ),
        )
        for name, title in (('color', 'Recorded map, colour'), ('class', 'Recorded map, class'))
        if (cloud := layers.clouds.get(name)) is not None and cloud.colors is not None
    ]
    if outcomes is not None:
        palette = np.array([item.color for item in OUTCOMES], np.uint8)
        drawn = _draw_truth_view(scene.truth, palette[outcomes], scene.grid)
        views.append(('Right and wrong on the visible surface', encode_drawing(drawn)))
    frames = tuple(sample_frames(plan, scene.truth))
    poses = scene.truth.camera_poses if plan.scene.sequence else read_camera_poses(plan)
    pictured = [frame.index for frame in frames]
    return RunPictures(
        semantic_map.graph,
        tuple(views),
        {} if outcomes is None else shares(outcomes),
        frames,
        {} if outcomes is None else compute_object_shares(outcomes, scene.truth),
        scene.space.describe_run(layers, semantic_map.trajectory, poses, pictured),
    )
