"""Signs that a scene is on its side, has another unit, or floats."""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.scenes.scene import Scene, SceneObject

SMALLEST_M, LARGEST_M = 1.0, 300.0
"""Longest edge of a scene, from a corner of a room to a shopping centre."""

STOREY_M = 4.0
"""A scene that is higher than this is not upright if it is also higher than it is wide."""

LOWEST_M, HIGHEST_M = -10.0, 10.0
"""World z of a floor; houses with floors elsewhere are rare."""

EYE_M = 1.5
"""Height of the camera of OSMa-Bench; walls reach higher."""

THING_M = (0.005, 8.0)
"""Median of the longest edges of objects, from a screw to a lorry."""

LEVEL = 0.9
"""A surface is level if its normal has at least this share along z."""

BIN_M = 0.1
FLOOR_SHARE = 0.25
FLOOR_NAME = 'floor'


def implausible_parts(scene: Scene) -> tuple[str, ...]:
    """Return a sentence with numbers for everything about a scene that a building would not have.

    Extent and unit, gravity, height of the floor and of the objects on it are examined; surfaces
    that face upwards are the floor at their lowest level with a quarter of the largest one's area.
    """
    return tuple(f'scene {scene.dataset}/{scene.name}: {text}' for text in _parts(scene))


def warn_of_implausible_parts(scene: Scene) -> None:
    """Warn of everything that `implausible_parts` finds."""
    for text in implausible_parts(scene):
        warnings.warn(text, OsmabenchWarning, stacklevel=3)


def _parts(scene: Scene) -> Iterator[str]:
    size = scene.box.size
    extent = f'{size[0]:.3g} x {size[1]:.3g} m and {size[2]:.3g} m high'
    longest = float(size.max())
    if not SMALLEST_M <= longest <= LARGEST_M:
        yield f'it is {extent}; check its unit ("unit_m", "units_to_meters", <scale>)'
    loose = {item.id for item in scene.label_set.classes if not item.structure}
    things = [item.box.size.max() for item in scene.objects if item.class_id in loose]
    if len(things) > 1 and not THING_M[0] <= (median := float(np.median(things))) <= THING_M[1]:
        yield f'half of its {len(things)} things are longer than {median:.3g} m; check their unit'
    if size[2] > max(STOREY_M, float(size[:2].min())):
        yield f'it is {extent}, higher than wide; check which axis is up'
    yield from _of_level_classes(scene)
    yield from _of_floor(scene, float(scene.box.maximum[2]))


def _of_level_classes(scene: Scene) -> Iterator[str]:
    """Yield a sentence if the objects called floor are not level."""
    floors = [item for item in scene.objects if scene.class_name(item) == FLOOR_NAME]
    parts = [_areas_normals_heights(item) for item in floors]
    area = sum(float(areas.sum()) for areas, _, _ in parts)
    level = sum(float(areas[np.abs(up) > LEVEL].sum()) for areas, up, _ in parts)
    if area > 0 and level < 0.5 * area:
        yield (
            f'only {level / area:.0%} of the {area:.3g} m2 of its {len(floors)} floors is level; '
            'check which axis is up'
        )


def _of_floor(scene: Scene, top_m: float) -> Iterator[str]:
    found = [_areas_normals_heights(item) for item in scene.objects]
    areas, up, heights = (np.concatenate([part[i] for part in found]) for i in range(3))
    areas, heights = areas[up > LEVEL], heights[up > LEVEL]
    if areas.sum() <= 0:
        yield 'no surface of it faces upwards, so a robot has no floor; check which axis is up'
        return
    low = heights.min()
    at = np.bincount(((heights - low) / BIN_M).astype(int), areas)
    floor_m = float(low + np.argmax(at >= FLOOR_SHARE * at.max()) * BIN_M)
    if not LOWEST_M <= floor_m <= HIGHEST_M:
        yield f'its floor is at z = {floor_m:.3g} m; check its origin, and which axis is up'
    if top_m - floor_m < EYE_M:
        yield (
            f'it ends {top_m - floor_m:.3g} m above its floor, below a camera at {EYE_M} m; check '
            'its unit, and which axis is up'
        )


def _areas_normals_heights(
    item: SceneObject,
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return area, z of the unit normal and middle height of every triangle, each (F,)."""
    corners = item.world_vertices[item.world_faces].astype(np.float64)
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    doubled = np.linalg.norm(normals, axis=1)
    return doubled / 2, normals[:, 2] / np.maximum(doubled, 1e-12), corners[:, :, 2].mean(axis=1)
