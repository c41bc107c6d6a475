"""The things of a scene on one image: from above with their ids, then each by itself."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.owned_folder import check_file
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.ground_truth import is_structure
from osmabench_ros.scenes.lights import Light, Lighting, LightKind
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.scenes.visibility import sample_surface
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.storeys import storey_heights, storey_of
from osmabench_ros.simulation.contact_sheet import save_sheet, text_strip, with_labels
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.trajectory import CameraMount

TILE_PX, COLUMNS, WORDS_PX = 160, 8, 52
HFOV_RAD = math.radians(40)
CUT_M = 2.0
"""Above a floor; what is higher is cut away in its view from above."""
POINTS_PER_M2 = 100.0
LETTER_PX = 6.5

_AWAY_M = 1000.0
"""Things are looked at this far from the scene, so that nothing stands before or behind them."""
_SUN = Light(
    'sun', LightKind.DIRECTIONAL, direction=(0.4, 0.6, 1.0), intensity=0.8, attached_to_camera=True
)
_LIGHTING = Lighting((_SUN,), ambient=0.3, shadows=False)
_GROUND = 90


def write_scene_sheet(
    scene: Scene, path: Path, progress: Progress = silent, *, overwrite: bool = False
) -> None:
    """Draw each storey from above, and every object with its id, class and size, as one image."""
    check_file(path, overwrite=overwrite)
    title, rows = f'{scene.dataset} {scene.name}', []
    storeys_m = storey_heights(sample_surface(scene, POINTS_PER_M2, seed=0).points)
    if len(storeys_m) < 2:
        storeys_m = (float(scene.box.minimum[2]),)
    for number, floor_m in enumerate(storeys_m):
        place = f', storey {number} at {floor_m:.2f} m' if len(storeys_m) > 1 else ''
        rows.append(text_strip(title + place, TILE_PX * COLUMNS))
        rows.append(_from_above(scene, storeys_m, number))
    tiles = list(_tiles(scene, progress))
    empty = np.zeros_like(tiles[0])
    for start in range(0, len(tiles), COLUMNS):
        row = tiles[start : start + COLUMNS]
        rows.append(np.concatenate([*row, *[empty] * (COLUMNS - len(row))], axis=1))
    save_sheet(np.concatenate(rows), path, overwrite=overwrite)


def _tiles(scene: Scene, progress: Progress) -> Iterator[NDArray[np.uint8]]:
    simulator = OpenGLSimulator(
        scene, Intrinsics.from_hfov(TILE_PX, TILE_PX, HFOV_RAD), near_m=0.001, far_m=_AWAY_M / 2
    )
    # Half to the left and from above.
    aside = Pose(np.eye(3), np.array([_AWAY_M, 0.0, 0.0]))
    mount = CameraMount(height_m=0.0, pitch_rad=math.radians(25))
    turn = Pose.from_yaw(math.radians(40)) @ mount.base_to_camera
    try:
        simulator.set_lighting(_LIGHTING)
        for number, item in enumerate(scene.objects):
            progress('drawing each object', number / len(scene.objects))
            simulator.move_objects({item.instance_id: aside @ item.pose})
            radius_m = max(float(np.linalg.norm(item.box.size)) / 2, 0.01)
            distance_m = 1.1 * radius_m / math.sin(HFOV_RAD / 2)
            place = aside.transform(item.box.center) - distance_m * turn.rotation[:, 2]
            seen = simulator.render(Pose(turn.rotation, place))
            simulator.move_objects({item.instance_id: item.pose})
            picture = np.where(np.isfinite(seen.depth_m)[..., None], seen.color, _GROUND)
            lines = enumerate(_caption(scene, item))
            labels = [(5.0, 3.0 + 16 * line, text) for line, text in lines]
            words = np.full((WORDS_PX, TILE_PX, 3), _GROUND)
            yield with_labels(np.concatenate([words, picture]).astype(np.uint8), labels)
    finally:
        simulator.close()


def _caption(scene: Scene, item: SceneObject) -> Sequence[str]:
    named = 'no class' if item.class_id == UNLABELLED else scene.class_name(item)
    width, depth, height = item.box.size
    most = int(TILE_PX / LETTER_PX) - 2
    return (
        f'{item.instance_id} {named}'[:most],
        item.name[:most],
        f'{width:.2f} x {depth:.2f} x {height:.2f} m',
    )


def _from_above(scene: Scene, storeys_m: Sequence[float], number: int) -> NDArray[np.uint8]:
    """Return a storey below its cut, the world's x to the right, with the ids of its things."""
    size = scene.box.size
    width = TILE_PX * COLUMNS
    wide_m = 1.04 * float(size[0])
    height = int(np.clip(width * float(size[1]) / max(wide_m, 1e-3) * 1.04, 200, 2 * width))
    wide_m = max(wide_m, 1.04 * float(size[1]) * width / height)
    above_m = wide_m / 2 / math.tan(HFOV_RAD / 2)
    cut_m = min(storeys_m[number] + CUT_M, float(scene.box.maximum[2]))
    view = Intrinsics.from_hfov(width, height, HFOV_RAD)
    x, y, _ = scene.box.center
    pose = Pose(np.diag([1.0, -1.0, -1.0]), np.array([x, y, cut_m + above_m]))
    simulator = OpenGLSimulator(scene, view, near_m=above_m, far_m=above_m + float(size[2]) + 1.0)
    try:
        simulator.set_lighting(_LIGHTING)
        seen = simulator.render(pose)
    finally:
        simulator.close()
    things = [item for item in scene.objects if not is_structure(scene, item)]
    shown = [
        item
        for item in things
        if item.box.minimum[2] < cut_m and storey_of(item.box.minimum[2], storeys_m) == number
    ]
    centers = np.array([item.box.center for item in shown]).reshape(-1, 3)
    pixels = view.project(pose.inverse().transform(centers))
    labels = [
        (float(x) - LETTER_PX, float(y) - 8.0, str(item.instance_id))
        for item, (x, y) in zip(shown, pixels, strict=True)
    ]
    return with_labels(seen.color, labels)
