"""Finds what the URIs of a world name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.base.limits.documents import read_xml
from osmabench_ros.errors import SceneError

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ModelFinder:
    """Looks for models and their files.

    Parameters
    ----------
    world : Path
        The world; its folder, the folder above and `models` beside either are searched.
    folders : sequence of Path
        Searched first. Those of Gazebo's environment variables are searched last.
    """

    def __init__(self, world: Path, folders: Sequence[Path] = ()) -> None:
        near = [world.parent, world.parent.parent]
        variables = [part for name in VARIABLES for part in os.environ.get(name, '').split(':')]
        self.folders = [
            *folders,
            *near,
            *(folder / 'models' for folder in near),
            *(Path(part) for part in variables if part),
        ]

    def find(self, uri: str, base: Path, where: str) -> Path:
        """Return the file or folder a URI names.

        Parameters
        ----------
        uri : str
            model://, package://, file:// or a plain path.
        base : Path
            Folder that plain relative paths start from.
        where : str
            Named in errors.
        """
        scheme, _, rest = uri.partition('://') if '://' in uri else ('', '', uri)
        if scheme in ('', 'file'):
            candidates = [base / rest, *(folder / rest for folder in self.folders)]
        elif scheme in ('model', 'package'):
            candidates = [folder / rest for folder in self.folders]
        else:
            raise SceneError(
                f'{where}: {uri} is not on this machine; download the model and name it by model://'
            )
        for path in candidates:
            if path.exists():
                return path
        searched = ', '.join(str(folder) for folder in dict.fromkeys(self.folders))
        raise SceneError(f'{where}: {uri} is in none of {searched}; name its folder with --models')

    def model_file(self, folder: Path, where: str) -> Path:
        """Return the newest SDF file of a model folder."""
        config = folder / 'model.config'
        if config.is_file():
            files = [
                (item.get('version', '0'), (item.text or '').strip())
                for item in read_xml(config, SceneError).iter('sdf')
            ]
            for _, name in sorted(files, key=lambda item: _version(item[0]), reverse=True):
                if (folder / name).is_file():
                    return folder / name
        if (folder / 'model.sdf').is_file():
            return folder / 'model.sdf'
        raise SceneError(f'{where}: {folder} holds no model.sdf; the model is incomplete')


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split('.') if part.isdigit())
