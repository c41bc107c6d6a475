"""Everything a run was made from and with, in one file; nothing in it depends on the time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from osmabench_ros.base.files import sha256_of, write_json
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.host import host_facts, package_versions, renderer, ros_facts
from osmabench_ros.runs.inputs import (
    condition_digest,
    condition_name,
    mapper_files,
    scene_name,
    without_home,
)
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.report_model import for_run
from osmabench_ros.runs.results_folder import MANIFEST

SCHEMA = 'osmabench.run_manifest/1'
_WHOLE_MATRIX = frozenset(
    {'name', 'scenes', 'conditions', 'mappers', 'sweep', 'requirements', 'text_features'}
)


def write_run_manifest(plan: RunPlan, scene_digest: str, warnings: Sequence[str] = ()) -> None:
    """Write manifest.json of a run whose shared folder is prepared.

    `warnings` are what the report is to say about the run.
    """
    write_json(plan.directory / MANIFEST, run_manifest(plan, scene_digest, warnings))


def run_manifest(plan: RunPlan, scene_digest: str, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return what `write_run_manifest` writes."""
    identity = plan.identity
    return {
        'schema_name': SCHEMA,
        'run_id': identity.run_id,
        'dataset': identity.scene_key.dataset,
        'scene': identity.scene_key.scene,
        'condition': identity.condition,
        'mapper': identity.mapper,
        'simulator': identity.simulator,
        'pacing': plan.pacing.value,
        'speed_factor': identity.speed_factor,
        'seeds': {
            'scene, path and questions': plan.scene.seed,
            'mapper': plan.scene.seed,
        },
        'warnings': list(warnings),
        'config_sha256': config_digest(plan.config),
        'config': without_home(_config(plan)),
        'inputs': _inputs(plan, scene_digest),
        'versions': package_versions(),
        'ros': ros_facts(),
        'renderer': renderer(identity.simulator),
        'host': host_facts(),
    }


def _config(plan: RunPlan) -> dict[str, Any]:
    """Return the part of the configuration that concerns the run."""
    config: MatrixConfig = plan.config
    requirements = for_run(config.requirements, plan.identity)
    return {
        **config.model_dump(mode='json', exclude=set(_WHOLE_MATRIX)),
        'scene': plan.scene.model_dump(mode='json'),
        'condition': plan.condition.model_dump(mode='json'),
        'mapper': plan.mapper.model_dump(mode='json'),
        'requirements': [item.model_dump(mode='json') for item in requirements],
    }


def _inputs(plan: RunPlan, scene_digest: str) -> dict[str, str]:
    found = {
        scene_name(plan.identity.scene_key): scene_digest,
        condition_name(plan.condition_source): condition_digest(plan.condition),
        **mapper_files(plan.mapper),
    }
    for name, file in plan.config.text_features.items():
        found[f'text features of {name}'] = sha256_of(file)
    found |= {
        f'shared {path.name}': sha256_of(path) for path in sorted(plan.shared_directory.iterdir())
    }
    return found
