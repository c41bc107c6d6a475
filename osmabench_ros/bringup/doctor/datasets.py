"""Whether the data sets of OSMa-Bench lie where docs/habitat.md puts them."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from osmabench_ros.base.files import add_file
from osmabench_ros.base.limits.documents import read_json, read_text
from osmabench_ros.bringup.doctor.finding import Finding, Severity
from osmabench_ros.errors import OsmabenchError, SceneError
from osmabench_ros.scenes.asset_files import leads_into

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
        return Finding(data_set.name, Severity.ABSENT, detail, data_set.remedy)
    config = configs[0]
    files = sorted(config.parent.glob(data_set.evidence))
    if not files:
        detail = f'{config} is there, but no {data_set.lacking}'
        return Finding(data_set.name, Severity.ABSENT, detail, data_set.remedy)
    if pointer := next((file for file in files if _is_pointer(file)), None):
        detail = f'{pointer} is a pointer of git-lfs, not the file'
        remedy = f'git lfs install; git -C {config.parent} lfs pull'
        return Finding(data_set.name, Severity.ABSENT, detail, remedy)
    return Finding(data_set.name, Severity.OK, f'{config}')


def _is_pointer(file: Path) -> bool:
    with file.open('rb') as opened:
        return opened.read(len(LFS_POINTER)) == LFS_POINTER


SUMS = 'SHA256SUMS'
"""A list of digests beside a data set, as sha256sum writes it."""

LOOK_S = 0.4
"""How long files may be looked at; a data set of a hundred scenes is not looked at in whole."""

MAGIC = {'.glb': b'glTF', '.png': b'\x89PNG', '.jpg': b'\xff\xd8'}


def examine_scene_files(reference: Path) -> Finding:
    """Check the files of a scene: a configuration, `scene.json`, or a folder with the latter."""
    path = reference.expanduser()
    config = path if path.is_file() else path / 'scene.json'
    part, remedy = f'scene {reference.name}', 'get the data set again; see docs/habitat.md'
    if not config.is_file():
        detail = f'{reference} is not there'
        return Finding(part, Severity.FAILED, detail, 'correct the reference; see docs/scenes.md')
    try:
        read_json(config, SceneError)
    except OsmabenchError as error:
        return Finding(part, Severity.FAILED, str(error), remedy)
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
        return Finding(part, Severity.FAILED, f'{faults[0]}{more}', remedy)
    return Finding(part, Severity.OK, f'{config}, {looked_at} files looked at')


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
