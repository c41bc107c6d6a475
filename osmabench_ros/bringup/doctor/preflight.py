"""What is installed, which data sets are there, what is missing, and what to do about it."""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import os
import platform
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from pathlib import Path

from osmabench_ros.base.configuration import extra, requirements_file, unmet_requirements
from osmabench_ros.base.documents import read_json, read_text
from osmabench_ros.base.files import add_file
from osmabench_ros.errors import MissingDependencyError, OsmabenchError, SceneError
from osmabench_ros.scenes.asset_files import leads_into
from osmabench_ros.scenes.loading import MANIFEST, REPLICA_INFO, SPECIFIED
from osmabench_ros.scenes.specification import read_specification


class Severity(str, Enum):
    """Severity of a finding."""

    OK = 'ok'
    ABSENT = 'absent'
    WARN = 'warn'
    FAILED = 'failed'


@dataclass(frozen=True)
class Finding:
    """One finding and its remedy, '' if there is nothing to do.

    ABSENT if an optional part is missing, WARN if figures may suffer, FAILED if no run is
    possible.
    """

    part: str
    level: Severity
    detail: str
    remedy: str = ''


def ok(part: str, detail: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(part, Severity.OK, detail)


def absent(part: str, detail: str, remedy: str = '') -> Finding:
    """Return a finding that an optional part is missing."""
    return Finding(part, Severity.ABSENT, detail, remedy)


def warned(part: str, detail: str, remedy: str) -> Finding:
    """Return a finding by which figures may suffer."""
    return Finding(part, Severity.WARN, detail, remedy)


def failed(part: str, detail: str, remedy: str) -> Finding:
    """Return a finding with which no run is possible."""
    return Finding(part, Severity.FAILED, detail, remedy)


DATA_VARIABLE = 'OSMABENCH_DATA'
LFS_POINTER = b'version https://git-lfs'
GET = 'python -m habitat_sim.utils.datasets_download --uids'


@dataclass(frozen=True)
class DataSet:
    """A data set, and files as `evidence` that it is there, relative to the folder of `config`."""

    name: str
    config: str
    evidence: str
    lacking: str
    remedy: str


DATA_SETS = (
    DataSet(
        'ReplicaCAD',
        'replica_cad/replicaCAD.scene_dataset_config.json',
        'configs/scenes/*.scene_instance.json',
        'scenes in configs/scenes',
        f'{GET} replica_cad_dataset --data-path data/',
    ),
    DataSet(
        "OSMa-Bench's ReplicaCAD classes",
        'Augmented_ReplicaCAD_dataset/**/*.scene_dataset_config.json',
        '**/*.glb',
        'models (*.glb)',
        'in data/: git lfs install; git clone '
        'https://huggingface.co/datasets/warmhammer/Augmented_ReplicaCAD_dataset',
    ),
    DataSet(
        'HM3D',
        'scene_datasets/hm3d/hm3d_annotated_basis.scene_dataset_config.json',
        'val/*/*.semantic.txt',
        'annotated scenes (*.semantic.txt) in val/',
        f'{GET} hm3d_val_v0.2 --data-path data/ --username ID --password SECRET; '
        'the token comes from Matterport, see docs/habitat.md',
    ),
)


def data_folders() -> list[Path]:
    """Return where data sets are looked for: $OSMABENCH_DATA, else ./data and ~/data."""
    named = os.environ.get(DATA_VARIABLE)
    return [Path(named).expanduser()] if named else [Path('data'), Path.home() / 'data']


def find_data_set(data_set: DataSet, folders: Sequence[Path]) -> Finding:
    """Look for a data set in folders, in order; data sets are always optional."""
    configs = [found for folder in folders for found in sorted(folder.glob(data_set.config))]
    if not configs:
        places = ' or '.join(str(folder) for folder in folders)
        detail = f'no {data_set.config} in {places} (set {DATA_VARIABLE})'
        return absent(data_set.name, detail, data_set.remedy)
    config = configs[0]
    files = sorted(config.parent.glob(data_set.evidence))
    if not files:
        detail = f'{config} is there, but no {data_set.lacking}'
        return absent(data_set.name, detail, data_set.remedy)
    if pointer := next((file for file in files if _is_pointer(file)), None):
        detail = f'{pointer} is a pointer of git-lfs, not the file'
        return absent(data_set.name, detail, f'git lfs install; git -C {config.parent} lfs pull')
    return ok(data_set.name, f'{config}')


def _is_pointer(file: Path) -> bool:
    with file.open('rb') as opened:
        return opened.read(len(LFS_POINTER)) == LFS_POINTER


SUMS = 'SHA256SUMS'
"""A list of digests beside a data set, as sha256sum writes it."""

LOOK_S = 0.4
"""How long files may be looked at; a data set of a hundred scenes is not looked at in whole."""

MAGIC = {'.glb': b'glTF', '.png': b'\x89PNG', '.jpg': b'\xff\xd8'}


def examine_scene_files(reference: Path) -> Finding:
    """Check the files of a scene, whatever `load_scene` takes for one."""
    path = reference.expanduser()
    named = (path, path / MANIFEST, path / REPLICA_INFO)
    config = next((file for file in named if file.is_file()), path)
    part, remedy = f'scene {reference.name}', 'get the data set again; see docs/habitat.md'
    if not config.is_file():
        detail = f'{reference} {"is no scene" if path.exists() else "is not there"}'
        return failed(part, detail, 'correct the reference; see docs/scenes.md')
    specified = path.suffix in SPECIFIED
    try:
        read_specification(config) if specified else read_json(config, SceneError)
    except OsmabenchError as error:
        wrong = 'correct the specification; see docs/osma_bench_pp.md'
        return failed(part, str(error), wrong if specified else remedy)
    if specified:
        return ok(part, f'{config}')
    faults, looked_at = [], 0
    end = time.monotonic() + LOOK_S
    for fault in chain(_changed(config.parent), _broken(config.parent)):
        looked_at += 1
        if fault:
            faults.append(fault)
        if time.monotonic() > end:
            break
    if faults:
        more = f' and {len(faults) - 1} more' if len(faults) > 1 else ''
        return failed(part, f'{faults[0]}{more}', remedy)
    return ok(part, f'{config}, {looked_at} files looked at')


def _broken(folder: Path) -> Iterator[str]:
    """Yield for every model and picture why it cannot be read, '' if its header is right."""
    for file in sorted(folder.rglob('*')):
        magic = MAGIC.get(file.suffix.lower())
        if magic is None:
            continue
        try:
            with file.open('rb') as opened:
                start = opened.read(len(LFS_POINTER))
        except OSError as error:
            yield f'{file} cannot be read: {error.strerror}'
            continue
        if start == LFS_POINTER:
            yield f'{file} is a pointer of git-lfs, not the file (git lfs pull)'
        else:
            yield '' if start.startswith(magic) else f'{file} is damaged, it is no {file.suffix}'


def _changed(folder: Path) -> Iterator[str]:
    """Compare files with the digest files beside them, if there are any."""
    sums = folder / SUMS
    try:
        lines = read_text(sums, SceneError).splitlines() if sums.is_file() else []
    except OsmabenchError as error:
        yield str(error)
        return
    for line in lines:
        digest, _, name = line.partition(' ')
        file = folder / name.strip().lstrip('*')
        if not (leads_into([folder], file) and file.is_file()):
            yield f'{file} is in {SUMS}, but not there'
            continue
        found = hashlib.sha256()
        add_file(found, file)
        yield '' if found.hexdigest() == digest else f'{file} does not match its sha256'


@dataclass(frozen=True)
class _Module:
    """A module, whose remedy is a sentence, an extra, or the name of a package of ROS.

    Those without any are in requirements/beside_ros.txt.
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
            return _ros_remedy(self.of_ros)
        return self.sentence or (extra(self.extra) if self.extra else _pip_remedy())


MODULES = (
    _Module('rclpy', 'nodes', 'source a ROS 2 installation, or make env', required=True),
    _Module('osmabench_ros.msg', 'messages', 'make messages, or colcon build', required=True),
    _Module('torch', 'metrics', required=True),
    _Module('open3d', 'exact ground truth', required=True),
    _Module('tf2_ros', 'transforms on /tf', of_ros='tf2-ros'),
    _Module('launch_ros', 'ros2 launch', of_ros='launch-ros'),
    _Module('vision_msgs', 'Detection3DArray', of_ros='vision-msgs'),
    _Module('rosbags', 'bags'),
    _Module('sentence_transformers', 'label matching', extra='language'),
    _Module('google.genai', 'Gemini', extra='language'),
    _Module('rerun', 'recordings to look at', extra='rerun'),
    _Module('spark_dsg', 'Hydra scene graphs', extra='hydra'),
)


def examine(out: Path | None = None) -> list[Finding]:
    """Check everything a run needs or could use, and the disk of `out`, for results."""
    looks: list[Callable[[], Finding]] = [_python, _packages]
    looks += [lambda module=module: _module(module) for module in MODULES]  # type: ignore[misc]
    looks += [renderer, _habitat, _device, _discovery, lambda: _disk(out or Path())]
    folders = data_folders()
    return [look() for look in looks] + [find_data_set(item, folders) for item in DATA_SETS]


def _python() -> Finding:
    return ok('python', f'{platform.python_version()} on {platform.platform()}')


def _packages() -> Finding:
    unmet = unmet_requirements()
    if unmet:
        return failed('python packages', ', '.join(unmet), _pip_remedy())
    return ok('python packages', f'all of {requirements_file()}')


def _pip_remedy() -> str:
    return f'pip install -r {requirements_file()} in a virtual environment'


def _ros_remedy(package: str) -> str:
    """Return how the ROS that is used here gets a package."""
    ros = importlib.util.find_spec('rclpy')
    distro = os.environ.get('ROS_DISTRO', 'jazzy')
    if ros is None or not Path(str(ros.origin)).is_relative_to(sys.prefix):
        return f'sudo apt install ros-{distro}-{package}'
    if (Path(sys.prefix) / 'conda-meta').is_dir():
        return f'conda install ros-{distro}-{package}'
    return 'not with ROS from PyPI, as make env installs it: for this, see docs/ros2.md'


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
    return ok(module.name, f'{version} for {module.purpose}'.strip())


def renderer() -> Finding:
    """Return whether OpenGL can render here, and by what."""
    from osmabench_ros.simulation.opengl.context import create_context, renderer_name

    try:
        context = create_context()
    except OsmabenchError as error:
        return failed(
            'OpenGL', str(error), 'apt install libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri'
        )
    try:
        return ok('OpenGL', renderer_name(context))
    finally:
        context.release()


def _habitat() -> Finding:
    from osmabench_ros.simulation.habitat.simulator import first_frame

    try:
        found, took_s = first_frame()
    except MissingDependencyError as error:
        return absent('habitat_sim', str(error), 'see docs/habitat.md')
    except OsmabenchError as error:
        return failed('habitat_sim', str(error), 'see docs/habitat.md')
    return ok('habitat_sim', f'{found}; first frame after {took_s:.1f} s')


def _device() -> Finding:
    try:
        import torch
    except ImportError:
        return absent('GPU', 'metrics need torch')
    if torch.cuda.is_available():
        return ok('GPU', f'metrics run on {torch.cuda.get_device_name()}')
    return absent('GPU', f'metrics run on {torch.get_num_threads()} CPU threads')


def _discovery() -> Finding:
    found = os.environ.get('ROS_AUTOMATIC_DISCOVERY_RANGE', 'SUBNET (the default of ROS)')
    return ok('discovery', f'{found} in this shell; runs use LOCALHOST and a domain of their own')


def nearest_folder(path: Path) -> Path:
    """Return the path itself if it exists, else the nearest parent that does."""
    return next(item for item in (path.absolute(), *path.absolute().parents) if item.exists())


def _disk(path: Path) -> Finding:
    existing = nearest_folder(path)
    free_gib = shutil.disk_usage(existing).free / 2**30
    if not os.access(existing, os.W_OK):
        return failed('disk', f'{existing} is not writable', 'choose another --out')
    if free_gib < 1:
        return failed('disk', f'{free_gib:.1f} GiB free', 'free at least 1 GiB')
    return ok('disk', f'{free_gib:.0f} GiB free at {existing}')
