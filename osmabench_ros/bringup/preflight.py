"""Checks which software and data sets are installed, and names the remedy if one is missing."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.configuration import (
    extra,
    installed,
    requirements_file,
    unmet_requirements,
)
from osmabench_ros.base.documents import read_json, read_yaml
from osmabench_ros.bringup.finding import CheckTables, Finding, Severity, attempt
from osmabench_ros.errors import ConfigError, MissingDependencyError, SceneError, errors_as
from osmabench_ros.runs.host import opengl_renderer
from osmabench_ros.scenes.loading import MANIFEST, REPLICA_INFO, SPECIFIED
from osmabench_ros.scenes.specification import read_specification

CHECKS = CheckTables(Path(__file__).with_name('checks.yaml'))
KNOWN = read_yaml(Path(__file__).with_name('known.yaml'), ConfigError)

DATA_VARIABLE = 'OSMABENCH_DATA'
LFS_POINTER = b'version https://git-lfs'


@dataclass(frozen=True)
class DataSet:
    """A data set, and files as `evidence` that it is there, relative to the folder of `config`."""

    name: str
    config: str
    evidence: str
    lacking: str
    remedy: str


DATA_SETS = tuple(DataSet(**row) for row in KNOWN['data_sets'])


def data_folders() -> list[Path]:
    """Return where data sets are looked for: $OSMABENCH_DATA, else ./data and ~/data."""
    named = os.environ.get(DATA_VARIABLE)
    return [Path(named).expanduser()] if named else [Path('data'), Path.home() / 'data']


def find_data_set(data_set: DataSet, folders: Sequence[Path]) -> Finding:
    """Look for a data set in folders, in order; data sets are always optional."""
    configs = (found for folder in folders for found in sorted(folder.glob(data_set.config)))
    config = next(configs, None)
    files = sorted(config.parent.glob(data_set.evidence)) if config else []
    return CHECKS.find_one(
        'data_set',
        data_set.name,
        data_set=data_set,
        config=config,
        files=files,
        pointer=next((file for file in files if _is_pointer(file)), None),
        places=' or '.join(str(folder) for folder in folders),
        variable=DATA_VARIABLE,
    )


def _is_pointer(file: Path) -> bool:
    with file.open('rb') as opened:
        return opened.read(len(LFS_POINTER)) == LFS_POINTER


LOOK_S = 0.4
"""How long files may be looked at; a data set of a hundred scenes is not looked at in whole."""

MAGIC = {'.glb': b'glTF', '.png': b'\x89PNG', '.jpg': b'\xff\xd8'}


def examine_scene_files(reference: Path) -> Finding:
    """Check the files of a scene, in every form that `load_scene` reads."""
    path = reference.expanduser()
    named = (path, path / MANIFEST, path / REPLICA_INFO)
    config = next((file for file in named if file.is_file()), None)
    specified = path.suffix in SPECIFIED
    error: Exception | None = None
    faults: Sequence[str] = ()
    if config is not None and specified:
        _, error = attempt(lambda: read_specification(config))
    elif config is not None:
        found, error = attempt(lambda: _find_broken_files(config))
        faults = found or ()
    return CHECKS.find_one(
        'scene',
        f'scene {reference.name}',
        path=path,
        config=config,
        specified=specified,
        error=error,
        faults=faults,
        more=f' and {len(faults) - 1} more' if len(faults) > 1 else '',
        reference=reference,
    )


def _find_broken_files(config: Path) -> list[str]:
    """Return why models and images of a data set cannot be used, by their headers."""
    read_json(config, SceneError)
    found, end = [], time.monotonic() + LOOK_S
    for file in sorted(config.parent.rglob('*')):
        magic = MAGIC.get(file.suffix.lower())
        if magic is None or not file.is_file() or time.monotonic() > end:
            continue
        with errors_as(SceneError, f'{file} cannot be read', OSError), file.open('rb') as opened:
            start = opened.read(len(LFS_POINTER))
        if start == LFS_POINTER:
            found.append(f'{file} is a pointer of git-lfs, not the file (git lfs pull)')
        elif not start.startswith(magic):
            found.append(f'{file} is damaged: not a {file.suffix}')
    return found


@dataclass(frozen=True)
class _Module:
    """A module, with a sentence, an extra or a package of ROS as remedy.

    Modules without a remedy are in requirements/beside_ros.txt.
    """

    name: str
    purpose: str
    sentence: str = ''
    extra: str = ''
    of_ros: str = ''
    required: bool = False

    @property
    def remedy(self) -> str:
        if self.of_ros:
            return _make_ros_remedy(self.of_ros)
        return self.sentence or (extra(self.extra) if self.extra else _pip_remedy())


MODULES = tuple(_Module(**row) for row in KNOWN['modules'])


def examine(out: Path | None = None) -> list[Finding]:
    """Check everything a run needs or could use, and the disk of `out`, for results."""
    findings = [
        Finding('python', Severity.OK, f'{platform.python_version()} on {platform.platform()}')
    ]
    unmet = ', '.join(unmet_requirements())
    findings += CHECKS.find_all(
        'packages', 'python packages', unmet=unmet, pip=_pip_remedy(), file=requirements_file()
    )
    findings += [_module(module) for module in MODULES]
    findings += [renderer(), _check_habitat(), _device()]
    found = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET (the default of ROS)')
    findings += CHECKS.find_all('discovery', 'discovery', found=found)
    findings.append(_disk(out or Path()))
    return findings + [find_data_set(item, data_folders()) for item in DATA_SETS]


def _pip_remedy() -> str:
    return f'pip install -r {requirements_file()} in a virtual environment'


def _make_ros_remedy(package: str) -> str:
    """Return how the ROS that is used here gets a package."""
    ros = importlib.util.find_spec('rclpy')
    distro = os.environ.get('ROS_DISTRO', 'jazzy')
    if ros is None or not Path(str(ros.origin)).is_relative_to(sys.prefix):
        return f'sudo apt install ros-{distro}-{package}'
    if (Path(sys.prefix) / 'conda-meta').is_dir():
        return f'conda install ros-{distro}-{package}'
    return 'not with ROS from PyPI, as make env installs it: for this, see docs/ros2.md'


def _module(module: _Module) -> Finding:
    found, error = attempt(lambda: importlib.import_module(module.name))
    version = installed(module.name.split('.')[0]) or getattr(found, '__version__', '')
    return CHECKS.find_one(
        'module', module.name, module=module, error=error, version=f'{version} ' if version else ''
    )


def renderer() -> Finding:
    """Return whether OpenGL can render here, and by what."""
    name, error = attempt(opengl_renderer)
    return CHECKS.find_one('renderer', 'OpenGL', error=error, name=name)


def _check_habitat() -> Finding:
    from osmabench_ros.simulation.habitat.simulator import first_frame

    found, error = attempt(first_frame)
    name, took_s = found or ('', 0.0)
    return CHECKS.find_one(
        'habitat',
        'habitat_sim',
        missing=isinstance(error, MissingDependencyError),
        error=error,
        name=name,
        took_s=took_s,
    )


def _device() -> Finding:
    torch, _ = attempt(lambda: importlib.import_module('torch'))
    has_gpu = torch is not None and torch.cuda.is_available()
    device = ''
    if torch is not None:
        threads = f'{torch.get_num_threads()} CPU threads'
        device = torch.cuda.get_device_name() if has_gpu else threads
    return CHECKS.find_one('gpu', 'GPU', torch=torch, has_gpu=has_gpu, device=device)


def nearest_folder(path: Path) -> Path:
    """Return the path itself if it exists, else the nearest parent that does."""
    return next(item for item in (path.absolute(), *path.absolute().parents) if item.exists())


def _disk(path: Path) -> Finding:
    folder = nearest_folder(path)
    free_gib = shutil.disk_usage(folder).free / 2**30
    return CHECKS.find_one(
        'free_disk', 'disk', writable=os.access(folder, os.W_OK), folder=folder, free_gib=free_gib
    )
