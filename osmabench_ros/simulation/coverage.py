"""How much of a scene a camera sees, and where to go to see more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.visibility import TOLERANCE_M, RayCaster, sample_surface, visible_mask
from osmabench_ros.simulation.navigation import NavigationMap

LOOKOUT_SPACING_M = 0.5
POINTS_PER_M2 = 15.0


@dataclass(frozen=True)
class Coverage:
    """Share of the visible surface that a trajectory has seen.

    Parameters
    ----------
    seen_m2 : float
        Surface that at least one frame sees.
    visible_m2 : float
        Surface that can be seen from anywhere the robot gets to, looking anywhere.
    scene_m2 : float
        All surface, what is inside and behind things included.
    """

    seen_m2: float
    visible_m2: float
    scene_m2: float

    @property
    def share(self) -> float:
        """Seen share of what can be seen, 0 to 1."""
        return min(1.0, self.seen_m2 / self.visible_m2) if self.visible_m2 else 0.0


class Lookouts:
    """Places all over the free space, and which surface points up to `max_depth_m` each sees."""

    def __init__(
        self,
        scene: Scene,
        navigation: NavigationMap,
        camera_height_m: float,
        max_depth_m: float = 10.0,
        seed: int = 0,
    ) -> None:
        self._scene = scene
        self._max_depth_m = max_depth_m
        self.cloud = sample_surface(scene, POINTS_PER_M2, seed)
        self.places = _spread(navigation, LOOKOUT_SPACING_M)
        caster = RayCaster(scene)
        raised = self.places + np.array([0.0, 0.0, camera_height_m])
        self.sees = np.stack([self._seen_from(caster, origin) for origin in raised])

    def _seen_from(self, caster: RayCaster, origin: NDArray[np.float64]) -> NDArray[np.bool_]:
        ray = self.cloud.points - origin.astype(np.float32)
        distance = np.linalg.norm(ray, axis=1)
        near = np.flatnonzero(distance < self._max_depth_m)
        starts = np.broadcast_to(origin.astype(np.float32), (len(near), 3))
        reach = caster.distances(starts, ray[near]) * distance[near]
        seen = np.zeros(len(ray), bool)
        seen[near] = reach > distance[near] - TOLERANCE_M
        return seen

    def coverage(self, camera_poses: Sequence[Pose], intrinsics: Intrinsics) -> Coverage:
        """Return the coverage of these frames, by ray casting."""
        seen = visible_mask(self._scene, self.cloud, camera_poses, intrinsics, self._max_depth_m)
        counts = (seen.sum(), (self.sees.any(axis=0) | seen).sum(), len(seen))
        return Coverage(*(float(count) / POINTS_PER_M2 for count in counts))

    def best_places(self, count: int) -> NDArray[np.float64]:
        """Choose places that see most of the surface together, shape (count or fewer, 3).

        Each is the one that adds most to the places before it; greedy choice reaches at least
        1 - 1/e of the best cover (Nemhauser, Wolsey and Fisher 1978).
        """
        left = self.sees.copy()
        chosen: list[int] = []
        while len(chosen) < count and left.any():
            best = int(np.argmax(left.sum(axis=1)))
            chosen.append(best)
            left &= ~self.sees[best]
        return self.places[chosen]


def _spread(navigation: NavigationMap, spacing_m: float) -> NDArray[np.float64]:
    """Return free positions on a coarse grid; the clearest cell of each of its squares."""
    places = np.argwhere(navigation.free)
    order = np.argsort(-navigation.clearance_m[tuple(places.T)], kind='stable')
    squares = places[order].astype(np.float64)
    squares[:, 1:] *= navigation.cell_m / spacing_m
    _, first = np.unique(squares.astype(int), axis=0, return_index=True)
    return navigation.positions(places[order][np.sort(first)])
