"""The software and the machine that a run was made with."""

import os
import platform
import subprocess
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any

from osmabench_ros.base.configuration import installed
from osmabench_ros.errors import OsmabenchError

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
_OF_GPUS = '--query-gpu=name,driver_version,memory.total'


def describe_surroundings(simulator: str) -> dict[str, Any]:
    """Return the part of a manifest about packages, sources, ROS, renderer and machine."""
    found = {name: installed(name) or 'absent' for name in PACKAGES}
    return {
        'versions': {'python': platform.python_version(), **found},
        'commit': commit_of(),
        'ros': {
            'distribution': os.environ.get('ROS_DISTRO', 'not sourced'),
            'middleware': os.environ.get('RMW_IMPLEMENTATION', 'the default of the distribution'),
        },
        'renderer': renderer(simulator),
        'host': host_facts(),
    }


# Folder of the sources, where the package is not installed elsewhere.
SOURCES = Path(__file__).parents[2]


@lru_cache(maxsize=4)
def commit_of(tree: Path = SOURCES) -> str:
    """Return the commit of the tree of sources, and whether it was changed; '' without one."""
    if not (tree / '.git').exists():
        return ''
    found = [
        _run_program('git', '-C', str(tree), *words)
        for words in (('rev-parse', 'HEAD'), ('status', '--porcelain', '--untracked-files=no'))
    ]
    commit, changes = (lines[0] if lines else '' for lines in found)
    return f'{commit}, changed since' if commit and changes else commit


@lru_cache(maxsize=1)
def host_facts() -> dict[str, Any]:
    """Return processor, cores, memory, GPUs and operating system."""
    import psutil

    return {
        'cpu': _read_cpu(),
        'cores': psutil.cpu_count(logical=False) or os.cpu_count(),
        'threads': os.cpu_count(),
        'memory_bytes': psutil.virtual_memory().total,
        'gpus': _run_program('nvidia-smi', _OF_GPUS, '--format=csv,noheader'),
        'os': platform.platform(),
    }


def _read_cpu() -> str:
    with suppress(OSError):
        text = Path('/proc/cpuinfo').read_text(encoding='utf-8', errors='replace')
        for line in text.splitlines():
            if line.startswith('model name'):
                return line.partition(':')[2].strip()
    return platform.processor() or 'unknown'


def _run_program(*command: str) -> list[str]:
    """Return the lines that a program prints, none if it fails or is not there."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command
            command, capture_output=True, text=True, timeout=_QUERY_S, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()]


@lru_cache(maxsize=4)
def renderer(simulator: str) -> str:
    """Return the renderer of a simulator, or the reason why it is unknown."""
    try:
        if simulator == 'opengl':
            return opengl_renderer()
        if simulator == 'habitat':
            from osmabench_ros.simulation.habitat.simulator import read_habitat_versions

            found = read_habitat_versions()
            return f'habitat_sim {found["habitat_sim"]} on Python {found["python"]}'
    except OsmabenchError as error:
        return f'unknown: {error}'
    return f'that of simulator "{simulator}"'


def opengl_renderer() -> str:
    """Return the renderer of OpenGL here; raises as `create_context`."""
    from osmabench_ros.simulation.opengl.textures import create_context, get_renderer_name

    context = create_context()
    try:
        return get_renderer_name(context)
    finally:
        context.release()
