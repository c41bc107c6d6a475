"""The manifest of a run: all inputs, versions and facts of the host; independent of time."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from osmabench_ros.base.configuration import installed
from osmabench_ros.base.files import sha256_of, write_json
from osmabench_ros.base.owned_folder import MARKER
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.inputs import (
    condition_digest,
    condition_name,
    mapper_files,
    scene_name,
    without_home,
)
from osmabench_ros.runs.plan import RunPlan, config_digest
from osmabench_ros.runs.results.report_model import for_run
from osmabench_ros.runs.results.results_folder import MANIFEST

ABSENT = 'absent'
PACKAGES = (
    'osmabench_ros',
    'numpy',
    'scipy',
    'torch',
    'open3d',
    'moderngl',
    'trimesh',
    'pydantic',
    'rclpy',
)
_QUERY_S = 10.0


def package_versions() -> dict[str, str]:
    """Return the versions of Python and of the packages that figures depend on."""
    found = {name: installed(name) or ABSENT for name in PACKAGES}
    return {'python': platform.python_version(), **found}


def ros_facts() -> dict[str, str]:
    """Return the ROS distribution and middleware from the environment."""
    return {
        'distribution': os.environ.get('ROS_DISTRO', 'not sourced'),
        'middleware': os.environ.get('RMW_IMPLEMENTATION', 'the default of the distribution'),
    }


@lru_cache(maxsize=4)
def commit_of(tree: Path = Path(__file__).parents[3]) -> str:
    """Return the commit of the tree of sources, and whether it was changed; '' without one."""
    program = shutil.which('git')
    if program is None or not (tree / '.git').exists():
        return ''
    found = [
        _output_of([program, '-C', str(tree), *words])
        for words in (('rev-parse', 'HEAD'), ('status', '--porcelain', '--untracked-files=no'))
    ]
    commit, changes = (lines[0] if lines else '' for lines in found)
    return f'{commit}, changed since' if commit and changes else commit


@lru_cache(maxsize=1)
def host_facts() -> dict[str, Any]:
    """Return processor, cores, memory, GPUs and operating system."""
    import psutil

    return {
        'cpu': _cpu(),
        'machine': platform.machine(),
        'cores': psutil.cpu_count(logical=False) or os.cpu_count(),
        'threads': os.cpu_count(),
        'memory_bytes': psutil.virtual_memory().total,
        'gpus': _gpus(),
        'os': _os(),
        'kernel': platform.release(),
    }


def _cpu() -> str:
    try:
        lines = Path('/proc/cpuinfo').read_text(encoding='utf-8', errors='replace').splitlines()
    except OSError:
        return platform.processor() or 'unknown'
    names = [line.partition(':')[2].strip() for line in lines if line.startswith('model name')]
    return names[0] if names else platform.processor() or 'unknown'


def _gpus() -> list[str]:
    """Return name and driver of every NVIDIA GPU."""
    program = shutil.which('nvidia-smi')
    if program is None:
        return []
    return _output_of(
        [program, '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader']
    )


def _output_of(command: list[str]) -> list[str]:
    """Return the lines that a program prints, none if it fails."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=_QUERY_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


def _os() -> str:
    try:
        return platform.freedesktop_os_release()['PRETTY_NAME']
    except (OSError, KeyError):
        return f'{platform.system()} {platform.release()}'


@lru_cache(maxsize=4)
def renderer(simulator: str) -> str:
    """Return the renderer of a simulator, or the reason why it is unknown."""
    try:
        if simulator == 'opengl':
            return _opengl()
        if simulator == 'habitat':
            from osmabench_ros.simulation.habitat.simulator import habitat_versions

            found = habitat_versions()
            return f'habitat_sim {found["habitat_sim"]} on Python {found["python"]}'
    except OsmabenchError as error:
        return f'unknown: {error}'
    return f'that of simulator "{simulator}"'


def _opengl() -> str:
    from osmabench_ros.simulation.opengl.context import create_context, renderer_name

    context = create_context()
    try:
        return renderer_name(context)
    finally:
        context.release()


PATH_SEED = 'path and questions'
SCHEMA = 'osmabench.run_manifest/1'
_WHOLE_MATRIX = frozenset(
    {
        *('name', 'scenes', 'seeds', 'conditions', 'mappers', 'requirements', 'text_features'),
        'sweep',
    }
)


def write_run_manifest(plan: RunPlan, scene_digest: str, warnings: Sequence[str] = ()) -> None:
    """Write manifest.json of a run whose shared folder is prepared."""
    write_json(plan.directory / MANIFEST, run_manifest(plan, scene_digest, warnings))


def run_manifest(plan: RunPlan, scene_digest: str, warnings: Sequence[str] = ()) -> dict[str, Any]:
    """Return the content of manifest.json."""
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
        'seeds': _seeds(plan),
        'warnings': list(warnings),
        'config_sha256': config_digest(plan.config),
        'config': config_of_run(plan),
        'inputs': _inputs(plan, scene_digest),
        'versions': package_versions(),
        'commit': commit_of(),
        'ros': ros_facts(),
        'renderer': renderer(identity.simulator),
        'host': host_facts(),
    }


def _seeds(plan: RunPlan) -> dict[str, int]:
    scene = plan.scene
    if scene.path_seed is None:
        return {'scene, path and questions': scene.seed, 'mapper': plan.method_seed}
    return {'scene': scene.seed, PATH_SEED: scene.path_seed, 'mapper': plan.method_seed}


def config_of_run(plan: RunPlan) -> dict[str, Any]:
    """Return the part of the configuration that concerns the run."""
    config: MatrixConfig = plan.config
    requirements = for_run(config.requirements, plan.identity)
    found: dict[str, Any] = {
        **config.model_dump(mode='json', exclude=set(_WHOLE_MATRIX)),
        'scene': plan.scene.model_dump(mode='json'),
        'condition': plan.condition.model_dump(mode='json'),
        'mapper': plan.mapper.model_dump(mode='json'),
        'requirements': [item.model_dump(mode='json') for item in requirements],
    }
    return dict(without_home(found))


def _inputs(plan: RunPlan, scene_digest: str) -> dict[str, str]:
    found = {
        scene_name(plan.identity.scene_key): scene_digest,
        condition_name(plan.condition_source): condition_digest(plan.condition),
        **mapper_files(plan.mapper),
    }
    for name, file in plan.config.text_features.items():
        found[f'text features of {name}'] = sha256_of(file)
    found |= {
        f'shared {path.name}': sha256_of(path)
        for path in sorted(plan.shared_directory.iterdir())
        if path.name != MARKER
    }
    return found
