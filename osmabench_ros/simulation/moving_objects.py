"""Objects that move while the robot drives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np
from pydantic import Field, model_validator

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.simulation.schedule import Moment, Span

CONTACT_M = 0.03
"""A thing whose lower side is this close to the upper side of another stands on it."""


class MovingObjects(Strict):
    """Some objects, and how they move during a span.

    Parameters
    ----------
    names, classes : tuple of str
        Patterns such as ``'chair*'`` and class names; an object must match one of either.
    count : int, optional
        How many of those that match, drawn with `seed`; all by default.
    offset_m : tuple of float
        Where the object goes, relative to where it stands, world axes.
    turn_deg : float
        How far it turns left about its own vertical axis.
    span : Span
        While it moves; before and after it rests.
    returns : bool
        Whether it goes there in the first half of the span and back in the second.
    """

    names: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    count: int | None = Field(None, ge=1)
    seed: int = Field(0, ge=0)
    """Of the draw."""
    offset_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn_deg: float = 0.0
    span: Span
    returns: bool = False

    @model_validator(mode='after')
    def _selects_and_moves(self) -> MovingObjects:
        if not self.names and not self.classes:
            raise ValueError('say which objects move: give "names" or "classes"')
        if not any(self.offset_m) and not self.turn_deg:
            raise ValueError('say how they move: give "offset_m" or "turn_deg"')
        return self

    def progress(self, moment: Moment) -> float:
        """Return the share of the movement that is done, 0 to 1."""
        done = self.span.progress(moment)
        return 1.0 - abs(2.0 * done - 1.0) if self.returns else done

    def selected(self, scene: Scene) -> list[SceneObject]:
        """Return the objects that move, without what stands on them; SimulationError if none."""
        found = [
            item
            for item in scene.objects
            if scene.class_name(item) in self.classes
            or any(fnmatchcase(item.name, pattern) for pattern in self.names)
        ]
        if not found:
            wanted = ', '.join([*self.names, *self.classes])
            raise SimulationError(
                f'scene {scene.dataset}/{scene.name} has no object that matches {wanted}; '
                'change moving_objects in the condition'
            )
        if self.count is None or self.count >= len(found):
            return found
        chosen = np.random.default_rng(self.seed).permutation(len(found))[: self.count]
        return [found[i] for i in sorted(chosen.tolist())]


def object_poses(
    movements: Sequence[MovingObjects], scene: Scene, moment: Moment
) -> dict[int, Pose]:
    """Return the world poses of the moving objects, and what stands on them, by instance id."""
    poses: dict[int, Pose] = {}
    for movement in movements:
        done = movement.progress(moment)
        for item in movement.selected(scene):
            change = _change(item, movement, done)
            for part in (item, *_carried(item, scene)):
                poses[part.instance_id] = change @ poses.get(part.instance_id, part.pose)
    return poses


def _change(item: SceneObject, movement: MovingObjects, done: float) -> Pose:
    """Return the displacement in the world: a turn about the object's middle and an offset."""
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_euler('z', math.radians(movement.turn_deg) * done).as_matrix()
    middle = item.box.center
    return Pose(turn, middle - turn @ middle + done * np.array(movement.offset_m))


def _carried(item: SceneObject, scene: Scene) -> list[SceneObject]:
    """Return all objects on an object, directly or indirectly."""
    carried: list[SceneObject] = []
    bearers = [item]
    while bearers:
        bearer = bearers.pop()
        for other in scene.objects:
            if other is not item and other not in carried and _stands_on(other, bearer):
                carried.append(other)
                bearers.append(other)
    return carried


def _stands_on(upper: SceneObject, lower: SceneObject) -> bool:
    center = upper.box.center
    touches = abs(upper.box.minimum[2] - lower.box.maximum[2]) < CONTACT_M
    above = (center[:2] > lower.box.minimum[:2]).all() and (
        center[:2] < lower.box.maximum[:2]
    ).all()
    return bool(touches and above)
