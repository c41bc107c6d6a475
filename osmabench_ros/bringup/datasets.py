"""Whether the data sets of OSMa-Bench lie where docs/habitat.md puts them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.bringup.finding import Finding, Level

DATA_VARIABLE = 'OSMABENCH_DATA'
LFS_POINTER = b'version https://git-lfs'
GET = 'python -m habitat_sim.utils.datasets_download --uids'


@dataclass(frozen=True)
class DataSet:
    """A data set and how to tell that it is there.

    Parameters
    ----------
    name : str
        For people.
    config : str
        Its scene_dataset_config.json below a data folder; a pattern.
    evidence : str
        Files that it is useless without, relative to the folder of `config`; a pattern.
    lacking : str
        What is missing if there are none.
    remedy : str
        How to get it.
    """

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
    """Look for a data set; it is never more than optional.

    Parameters
    ----------
    data_set : DataSet
        Which one.
    folders : sequence of Path
        The first that has it counts.
    """
    configs = [found for folder in folders for found in sorted(folder.glob(data_set.config))]
    if not configs:
        places = ' or '.join(str(folder) for folder in folders)
        detail = f'no {data_set.config} in {places} (set {DATA_VARIABLE})'
        return Finding(data_set.name, Level.ABSENT, detail, data_set.remedy)
    config = configs[0]
    files = sorted(config.parent.glob(data_set.evidence))
    if not files:
        detail = f'{config} is there, but no {data_set.lacking}'
        return Finding(data_set.name, Level.ABSENT, detail, data_set.remedy)
    if pointer := next((file for file in files if _is_pointer(file)), None):
        detail = f'{pointer} is a pointer of git-lfs, not the file'
        remedy = f'git lfs install; git -C {config.parent} lfs pull'
        return Finding(data_set.name, Level.ABSENT, detail, remedy)
    return Finding(data_set.name, Level.OK, f'{config}')


def _is_pointer(file: Path) -> bool:
    with file.open('rb') as opened:
        return opened.read(len(LFS_POINTER)) == LFS_POINTER
