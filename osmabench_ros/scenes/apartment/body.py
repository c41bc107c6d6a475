"""A piece of the apartment under construction, and the finished piece."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.transform import Rotation

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.finishes import Finish, material_of
from osmabench_ros.scenes.scene import Mesh
from osmabench_ros.semantics.scene_graph import RelationType


@dataclass(frozen=True)
class Support:
    """A surface of a piece, in its frame, that carries objects; metres, `size` along x and y.

    `center` is its middle, `clearance_m` the free height above; objects there are ON, IN or UNDER.
    """

    center: tuple[float, float, float]
    size: tuple[float, float]
    clearance_m: float = 0.6
    relation: RelationType = RelationType.ON


@dataclass(frozen=True, eq=False)
class Piece:
    """A finished object, one mesh per finish; local frame: z up from its bottom, front towards -y.

    The footprint is centred on the origin; `size` are the extents along x, y and z in metres.
    """

    class_name: str
    meshes: tuple[Mesh, ...]
    size: tuple[float, float, float]
    color: str
    material: str
    supports: tuple[Support, ...] = ()


class Body:
    """Collects solids with finishes and makes a `Piece` of them."""

    def __init__(self) -> None:
        self._parts: dict[Finish, list[solids.Solid]] = {}

    def add(
        self,
        solid: solids.Solid,
        finish: Finish,
        at: ArrayLike = (0.0, 0.0, 0.0),
        tilt_rad: tuple[float, float, float] | None = None,
    ) -> None:
        """Add a solid, turned about x, y, z in this order, then shifted."""
        rotation = None if tilt_rad is None else Rotation.from_euler('xyz', tilt_rad).as_matrix()
        self._parts.setdefault(finish, []).append(solid.moved(at, rotation))

    def box(self, low: Sequence[float], high: Sequence[float], finish: Finish) -> None:
        """Add a cuboid between two corners."""
        a, b = np.asarray(low, float), np.asarray(high, float)
        self.add(solids.box(b - a), finish, (a + b) / 2)

    def legs(
        self, width: float, depth: float, height: float, thickness: float, finish: Finish
    ) -> None:
        """Add four square legs in the corners of a footprint centred on the origin."""
        x, y, half = (width - thickness) / 2, (depth - thickness) / 2, thickness / 2
        for sx in (-x, x):
            for sy in (-y, y):
                self.box((sx - half, sy - half, 0), (sx + half, sy + half, height), finish)

    def tray(self, x: float, y: float, height: float, wall: float, finish: Finish) -> None:
        """Add a box without a lid between -x and x, -y and y, and from z = 0 up."""
        self.box((-x, -y, 0), (x, y, wall), finish)
        for side in (-x, x - wall):
            self.box((side, -y, wall), (side + wall, y, height), finish)
        for side in (-y, y - wall):
            self.box((-x + wall, side, wall), (x - wall, side + wall, height), finish)

    def piece(self, class_name: str, main: Finish, supports: Iterable[Support] = ()) -> Piece:
        """Finish: centre the footprint, put the bottom on z = 0, merge parts by finish."""
        merged = {finish: solids.joined(parts) for finish, parts in self._parts.items()}
        low = np.min([item.vertices.min(axis=0) for item in merged.values()], axis=0)
        high = np.max([item.vertices.max(axis=0) for item in merged.values()], axis=0)
        shift = -np.array([(low[0] + high[0]) / 2, (low[1] + high[1]) / 2, low[2]])
        size = high - low
        return Piece(
            class_name,
            tuple(_mesh(item, finish, shift) for finish, item in merged.items()),
            (float(size[0]), float(size[1]), float(size[2])),
            main.color,
            main.material,
            tuple(_shifted(item, shift) for item in supports),
        )


def _mesh(solid: solids.Solid, finish: Finish, shift: NDArray[np.float64]) -> Mesh:
    return Mesh(
        (solid.vertices + shift).astype(np.float32),
        solid.faces.astype(np.int32),
        solid.normals.astype(np.float32),
        (solid.uv_m / finish.tile_m).astype(np.float32),
        material_of(finish),
    )


def _shifted(support: Support, shift: NDArray[np.float64]) -> Support:
    x, y, z = (float(a + b) for a, b in zip(support.center, shift, strict=True))
    return replace(support, center=(x, y, z))
