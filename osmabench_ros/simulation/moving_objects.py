"""Objects that move while the robot drives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

import numpy as np
from pydantic import Field, model_validator

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.changes import displace
from osmabench_ros.scenes.contact import carried_by
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.simulation.schedule import Moment, Span


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
        """Return the objects that move, without what they carry; SimulationError if none."""
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


MovingGroup = tuple[MovingObjects, SceneObject, tuple[SceneObject, ...]]
"""How an object moves, the object, and all that moves: itself and what it carries."""


def moving_groups(movements: Sequence[MovingObjects], scene: Scene) -> list[MovingGroup]:
    """Return the groups of a scene that move; their objects are found once for all frames."""
    return [
        (movement, item, (item, *carried_by(scene, item)))
        for movement in movements
        for item in movement.selected(scene)
    ]


def object_poses(groups: Iterable[MovingGroup], moment: Moment) -> dict[int, Pose]:
    """Return the world poses of all objects in moving groups, by instance id."""
    poses: dict[int, Pose] = {}
    for movement, item, parts in groups:
        done = movement.progress(moment)
        shift = displace(item, done * movement.turn_deg, done * np.array(movement.offset_m))
        for part in parts:
            poses[part.instance_id] = shift @ poses.get(part.instance_id, part.pose)
    return poses
