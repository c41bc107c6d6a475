"""Warnings about a run that are known before it starts."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.prepare.preparation import Preparation
from osmabench_ros.runs.prepare.shared_path import driven_trajectory
from osmabench_ros.runs.results.results_folder import MANIFEST
from osmabench_ros.simulation.ineffective_settings import inert_parts

KEY = 'warnings'
"""Of the manifest of a run."""


def run_warnings(plan: RunPlan, preparation: Preparation) -> tuple[str, ...]:
    """Return what a reader of the report has to know before a prepared run, and warn of it."""
    found = (*_of_pacing(plan), *_of_condition(plan, preparation), *_of_lamps(plan, preparation))
    for text in found:
        warnings.warn(text, OsmabenchWarning, stacklevel=2)
    return found


def _of_pacing(plan: RunPlan) -> Iterator[str]:
    if plan.pacing is not plan.config.pacing.mode:
        yield (
            f'runs of mapper "{plan.mapper.name}" are realtime, since it acknowledges no frames '
            '(acks: false): it may lose some'
        )


def _of_condition(plan: RunPlan, preparation: Preparation) -> tuple[str, ...]:
    if plan.scene.sequence is not None:
        # There is no such path.
        return ()
    return inert_parts(plan.condition, preparation.scene_of(plan), driven_trajectory(plan))


def _of_lamps(plan: RunPlan, preparation: Preparation) -> Iterator[str]:
    """Yield which lamps a rule has chosen, if the condition acts on lamps."""
    if plan.scene.sequence is not None:
        return
    scene, lighting = preparation.scene_of(plan), plan.condition.lighting
    chosen = any(rule.select.lamps is not None for rule in lighting.scene_lights)
    if chosen and scene.lamp_rule and (lighting.setup is None or not lighting.setup.is_for(scene)):
        yield f'condition "{plan.condition.name}": {scene.lamps_in_words}'


def noted_warnings(plans: Sequence[RunPlan]) -> tuple[str, ...]:
    """Return the warnings in the manifests of runs, each once."""
    manifests = (plan.directory / MANIFEST for plan in plans)
    found = [text for path in manifests if path.exists() for text in read_json(path).get(KEY, ())]
    return tuple(dict.fromkeys(found))
