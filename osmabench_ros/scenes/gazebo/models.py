"""Finds what the URIs of a world name."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.base.limits.documents import read_xml
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.asset_files import leads_into, resolved

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ModelFinder:
    """Looks for models and their files in given folders, near the world, then Gazebo's variables.

    Near the world: its folder, `models` in it or beside it, and the folder above one called
    `worlds`.
    """

    def __init__(self, world: Path, folders: Sequence[Path] = ()) -> None:
        home = world.absolute().parent
        near = [home, home / 'models', home.parent / 'models']
        near += [home.parent] if home.name == 'worlds' else []
        variables = [part for name in VARIABLES for part in os.environ.get(name, '').split(':')]
        self.folders = [*folders, *near, *(Path(part) for part in variables if part)]

    def find(self, uri: str, base: Path, where: str) -> Path:
        """Return the file or folder that a model://, package://, file:// URI or a path names.

        Plain paths start from `base`. Raises SceneError, which begins with `where`, if there is
        none or it lies outside the folders that are searched.
        """
        scheme, _, rest = uri.partition('://') if '://' in uri else ('', '', uri)
        if scheme in ('', 'file'):
            candidates = [base / rest, *(folder / rest for folder in self.folders)]
        elif scheme in ('model', 'package') and '..' not in Path(rest).parts:
            candidates = [folder / rest for folder in self.folders]
        else:
            raise SceneError(
                f'{where}: {shown(uri)} is not on this machine in a folder of models; '
                'download the model into one and name it by model://'
            )
        for path in candidates:
            if resolved(path) is not None:
                return self._within(path, rest, f'{where}: {shown(uri)}')
        searched = ', '.join(str(folder) for folder in dict.fromkeys(self.folders))
        raise SceneError(
            f'{where}: {shown(uri)} is in none of {searched}; name its folder with --models'
        )

    def _within(self, path: Path, name: str, what: str) -> Path:
        if Path(name).is_absolute() or not leads_into(self.folders, path):
            raise SceneError(
                f'{what} is outside of the folders of models; name it relative to one of them, '
                'or give its folder with --models'
            )
        return path

    def model_file(self, folder: Path, where: str) -> Path:
        """Return the newest SDF file of a model folder."""
        config = folder / 'model.config'
        if config.is_file():
            files = [
                (item.get('version', '0'), (item.text or '').strip())
                for item in read_xml(config, SceneError).iter('sdf')
            ]
            for _, name in sorted(files, key=lambda item: _version(item[0]), reverse=True):
                if name and resolved(folder / name) is not None:
                    return self._within(folder / name, name, f'{where}: {shown(name)}')
        if (folder / 'model.sdf').is_file():
            return self._within(folder / 'model.sdf', 'model.sdf', where)
        raise SceneError(f'{where}: {folder} holds no model.sdf; the model is incomplete')


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split('.') if part.isdigit())
