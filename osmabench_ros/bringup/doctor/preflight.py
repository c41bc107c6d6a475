"""What is installed, what is missing, and what to do about it."""

from __future__ import annotations

import importlib
import importlib.metadata
import os
import platform
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.limits.landlock import landlock_version
from osmabench_ros.bringup.doctor.beside_ros import requirements_file, unmet_requirements
from osmabench_ros.bringup.doctor.datasets import DATA_SETS, data_folders, find_data_set
from osmabench_ros.bringup.doctor.finding import Finding, Severity
from osmabench_ros.errors import OsmabenchError


@dataclass(frozen=True)
class _Module:
    name: str
    purpose: str
    other_remedy: str = ''
    """Empty for those in requirements/beside_ros.txt."""
    required: bool = False

    @property
    def remedy(self) -> str:
        return self.other_remedy or _pip_remedy()


MODULES = (
    _Module('rclpy', 'nodes', 'source a ROS 2 installation, or make env', required=True),
    _Module('osmabench_ros.msg', 'messages', 'make messages, or colcon build', required=True),
    _Module('torch', 'metrics', required=True),
    _Module('open3d', 'exact ground truth', required=True),
    _Module('tf2_ros', 'transforms on /tf', 'apt install ros-$ROS_DISTRO-tf2-ros'),
    _Module('tf_transformations', 'quaternions', 'apt install ros-$ROS_DISTRO-tf-transformations'),
    _Module('sensor_msgs_py', 'point clouds', 'apt install ros-$ROS_DISTRO-sensor-msgs-py'),
    _Module('launch_ros', 'ros2 launch', 'apt install ros-$ROS_DISTRO-launch-ros'),
    _Module('vision_msgs', 'Detection3DArray', 'apt install ros-$ROS_DISTRO-vision-msgs'),
    _Module('rosbags', 'bags'),
    _Module('sentence_transformers', 'label matching', "pip install 'osmabench_ros[language]'"),
    _Module('google.genai', 'Gemini', "pip install 'osmabench_ros[language]'"),
    _Module('rerun', 'recordings to look at', "pip install 'osmabench_ros[rerun]'"),
    _Module('spark_dsg', 'Hydra scene graphs', "pip install 'osmabench_ros[hydra]'"),
)


def examine(out: Path | None = None) -> list[Finding]:
    """Check everything a run needs or could use, and the disk of `out`, for results."""
    looks: list[Callable[[], Finding]] = [_python, _packages]
    looks += [lambda module=module: _module(module) for module in MODULES]  # type: ignore[misc]
    looks += [_renderer, _habitat, _device, _discovery, _landlock, lambda: _disk(out or Path())]
    folders = data_folders()
    return [look() for look in looks] + [find_data_set(item, folders) for item in DATA_SETS]


def _python() -> Finding:
    return Finding('python', Severity.OK, f'{platform.python_version()} on {platform.platform()}')


def _packages() -> Finding:
    unmet = unmet_requirements()
    if unmet:
        return Finding('python packages', Severity.FAILED, ', '.join(unmet), _pip_remedy())
    return Finding('python packages', Severity.OK, f'all of {requirements_file()}')


def _pip_remedy() -> str:
    return f'pip install -r {requirements_file()} in a virtual environment'


def _module(module: _Module) -> Finding:
    try:
        found = importlib.import_module(module.name)
    except ImportError as error:
        level = Severity.FAILED if module.required else Severity.ABSENT
        return Finding(module.name, level, f'for {module.purpose}: {error}', module.remedy)
    try:
        version = importlib.metadata.version(module.name.split('.')[0])
    except importlib.metadata.PackageNotFoundError:
        version = getattr(found, '__version__', '')
    return Finding(module.name, Severity.OK, f'{version} for {module.purpose}'.strip())


def _renderer() -> Finding:
    from osmabench_ros.simulation.opengl.context import create_context, renderer_name

    try:
        context = create_context()
    except OsmabenchError as error:
        return Finding(
            'OpenGL',
            Severity.FAILED,
            str(error),
            'apt install libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri',
        )
    try:
        return Finding('OpenGL', Severity.OK, renderer_name(context))
    finally:
        context.release()


def _habitat() -> Finding:
    from osmabench_ros.simulation.habitat.simulator import habitat_versions

    try:
        found = habitat_versions()
    except OsmabenchError as error:
        return Finding('habitat_sim', Severity.ABSENT, str(error), 'see docs/habitat.md')
    return Finding(
        'habitat_sim', Severity.OK, f'{found["habitat_sim"]} on Python {found["python"]}'
    )


def _device() -> Finding:
    try:
        import torch
    except ImportError:
        return Finding('GPU', Severity.ABSENT, 'metrics need torch')
    if torch.cuda.is_available():
        return Finding('GPU', Severity.OK, f'metrics run on {torch.cuda.get_device_name()}')
    return Finding('GPU', Severity.ABSENT, f'metrics run on {torch.get_num_threads()} CPU threads')


def _discovery() -> Finding:
    found = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET (the default of ROS)')
    return Finding(
        'discovery',
        Severity.OK,
        f'{found} in this shell; runs use LOCALHOST and a domain of their own',
    )


def _landlock() -> Finding:
    version = landlock_version()
    if not version:
        return Finding(
            'Landlock',
            Severity.ABSENT,
            'files from outside are read under limits of memory and time, and could reach others',
            'a kernel with Landlock switched on (5.13 or newer)',
        )
    return Finding(
        'Landlock', Severity.OK, f'version {version} holds readers of files to their file'
    )


def nearest_folder(path: Path) -> Path:
    """Return the path itself if it exists, else the nearest parent that does."""
    return next(item for item in (path.absolute(), *path.absolute().parents) if item.exists())


def _disk(path: Path) -> Finding:
    existing = nearest_folder(path)
    free_gib = shutil.disk_usage(existing).free / 2**30
    if not os.access(existing, os.W_OK):
        return Finding(
            'disk', Severity.FAILED, f'{existing} is not writable', 'choose another --out'
        )
    if free_gib < 1:
        return Finding('disk', Severity.FAILED, f'{free_gib:.1f} GiB free', 'free at least 1 GiB')
    return Finding('disk', Severity.OK, f'{free_gib:.0f} GiB free at {existing}')
