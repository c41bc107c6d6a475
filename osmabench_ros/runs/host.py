"""The machine and the software that a run was made with; nothing about the user."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import shutil
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from osmabench_ros.errors import OsmabenchError

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
    return {'python': platform.python_version(), **{name: _installed(name) for name in PACKAGES}}


def _installed(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ABSENT


def ros_facts() -> dict[str, str]:
    """Return the ROS distribution and middleware, as the environment names them."""
    return {
        'distribution': os.environ.get('ROS_DISTRO', 'not sourced'),
        'middleware': os.environ.get('RMW_IMPLEMENTATION', 'the default of the distribution'),
    }


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
    command = [program, '--query-gpu=name,driver_version,memory.total', '--format=csv,noheader']
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
    """Return what a simulator renders with; the reason where that is unknown."""
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
