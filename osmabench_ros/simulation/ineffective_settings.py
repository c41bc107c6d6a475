"""Finds the parts of a condition that change nothing on a given path of a given scene."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Sequence

from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.conditions import Condition
from osmabench_ros.simulation.light_sections import LightSelection, SceneLightRule
from osmabench_ros.simulation.schedule import Schedule, Span
from osmabench_ros.simulation.trajectory import Trajectory


def inert_parts(condition: Condition, scene: Scene, trajectory: Trajectory) -> tuple[str, ...]:
    """Return a sentence, with the remedy, for every part of a condition that does not act."""
    where = f'condition "{condition.name}" on scene {scene.dataset}/{scene.name}'
    parts = _parts(condition, scene, trajectory)
    return tuple(f'part of {where} does not act: {part}' for part in parts)


def warn_of_inert_parts(condition: Condition, scene: Scene, trajectory: Trajectory) -> None:
    """Warn of every part of a condition that does not act; see `inert_parts`."""
    for text in inert_parts(condition, scene, trajectory):
        warnings.warn(text, OsmabenchWarning, stacklevel=3)


def _parts(condition: Condition, scene: Scene, trajectory: Trajectory) -> Iterator[str]:
    section = condition.lighting
    base = section.base_lights(scene)
    lights = [light for light, _ in base]
    yield from _late('lighting.ambient', section.ambient, trajectory)
    for number, rule in enumerate(section.scene_lights):
        name = f'lighting.scene_lights.{number}'
        fault = _selects_no_light(name, rule, lights, scene)
        yield from (fault,) if fault else _late(name, rule.schedule, trajectory)
    names: dict[Schedule, list[str]] = {}
    for light, schedule in (*base, *((item.light(), item.schedule) for item in section.lights)):
        names.setdefault(schedule, []).append(f'"{light.name}"')
    for schedule, found in names.items():
        name = f'light{"s" if found[1:] else ""} {", ".join(found)}'
        yield from _late(name, schedule, trajectory)
    for number, movement in enumerate(condition.moving_objects):
        change = (movement.span, movement.span.limits[0])
        yield from _unreached(f'moving_objects.{number}', [change], trajectory)
    if condition.scene_change is not None:
        span = condition.scene_change.span
        yield from _unreached('scene_change', [(span, span.limits[0])], trajectory)


def _selects_no_light(
    name: str, rule: SceneLightRule, lights: Sequence[Light], scene: Scene
) -> str:
    chosen = [light for light in lights if rule.select.matches(light, scene)]
    if not chosen and rule.select != LightSelection():
        known = ', '.join(light.name for light in lights) or 'none'
        return (
            f'{name} selects no light of the scene, which has {known}; change "select" or choose '
            'another scene'
        )
    if chosen and rule.only_in_robots_room and all(light.room_id is None for light in chosen):
        return (
            f'{name} goes by the rooms of lights, and no light it selects is in a room; add rooms '
            'to the scene or choose another'
        )
    return ''


def _late(name: str, schedule: Schedule, trajectory: Trajectory) -> Iterator[str]:
    """Yield a sentence if all changes of a schedule come after the end of the path."""
    changes = [(ramp.span, ramp.span.limits[0]) for ramp in schedule.ramps]
    for span in schedule.alive:
        start, end = span.limits
        # What is alive from the start on changes when it ends, if it does.
        changes += [(span, start)] if start else []
        changes += [(span, end)] if end is not None else []
    yield from _unreached(name, changes, trajectory)


def _unreached(
    name: str, changes: list[tuple[Span, float]], trajectory: Trajectory
) -> Iterator[str]:
    if not changes or any(_end(span, trajectory) >= at for span, at in changes):
        return
    span, first = changes[0]
    unit = 'goal segments' if span.seconds is None else 'seconds'
    end = _end(span, trajectory)
    yield (
        f'{name} changes only after {first:g} {unit}, and the path ends at {end:.3g}; raise '
        'trajectory.max_frames or trajectory.goals, or change the condition'
    )


def _end(span: Span, trajectory: Trajectory) -> float:
    """Return the last moment of a path in the unit of a span."""
    last = trajectory.frames[-1]
    if span.seconds is not None:
        return last.time_s
    done = last.segment + last.segment_progress
    # As in `Span.contains`: a goal belongs to the segment that reached it.
    return math.nextafter(done, -math.inf) if last.segment_progress >= 1.0 else done
