"""Warnings about a run that are known before it starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.prepare.shared_path import driven_trajectory
from osmabench_ros.simulation.schedule import Moment, Span


def run_warnings(plan: RunPlan, preparation: Preparation) -> tuple[str, ...]:
    """Return what a reader of the report has to know before a prepared run, and warn of it."""
    found = (*_of_pacing(plan), *_of_condition(plan), *_of_lamps(plan, preparation))
    for text in found:
        warnings.warn(text, OsmabenchWarning, stacklevel=2)
    return found


def _of_pacing(plan: RunPlan) -> Iterator[str]:
    if plan.pacing is not plan.config.pacing.mode:
        yield (
            f'runs of mapper "{plan.mapper.name}" are realtime, since it acknowledges no frames '
            '(acks: false): it may lose some'
        )


def _of_condition(plan: RunPlan) -> Iterator[str]:
    """Yield a warning if everything that changes on the way changes after the end of the path."""
    if plan.scene.sequence is not None:
        # There is no such path.
        return
    last = driven_trajectory(plan).frames[-1]
    end = Moment(last.segment, last.segment_progress, last.time_s)
    changes = list(_changes(plan.condition))
    if changes and not any(span.contains(end) for span in changes):
        goals = end.segment + end.segment_progress
        yield (
            f'condition "{plan.condition.name}" changes nothing on scene '
            f'{plan.identity.scene_key}: the path ends before its first change, after '
            f'{goals:.3g} goal segments and {end.time_s:.3g} s; raise trajectory.max_frames or '
            'trajectory.goals, or change the condition'
        )


def _changes(item: Any, key: str = '') -> Iterator[Span]:
    """Yield the spans of a condition, each from its first change on."""
    if isinstance(item, Span):
        start, end = item.limits
        # A light that is alive from the start on changes when it dies, if it does.
        at = end if key == 'alive' and start == 0 else start
        if at is not None:
            unit = 'segments' if item.seconds is None else 'seconds'
            yield Span.model_validate({unit: (at, None)})
    elif isinstance(item, BaseModel):
        for name, value in item:
            yield from _changes(value, name)
    elif isinstance(item, tuple):
        for value in item:
            yield from _changes(value, key)


def _of_lamps(plan: RunPlan, preparation: Preparation) -> Iterator[str]:
    """Yield which lamps a rule has chosen, if the condition acts on lamps, and if it has none."""
    if plan.scene.sequence is not None:
        return
    scene, lighting = preparation.scene_of(plan), plan.condition.lighting
    lights = [light for light, _ in lighting.base_lights(scene)]
    for number, rule in enumerate(lighting.scene_lights):
        if lights and not any(rule.select.matches(light, scene) for light in lights):
            yield (
                f'condition "{plan.condition.name}": lighting.scene_lights.{number} selects no '
                f'light of scene {scene.dataset}/{scene.name}; change "select" or the scene'
            )
    chosen = any(rule.select.lamps is not None for rule in lighting.scene_lights)
    if chosen and scene.lamp_rule and (lighting.setup is None or not lighting.setup.is_for(scene)):
        yield f'condition "{plan.condition.name}": {scene.lamps_in_words}'
