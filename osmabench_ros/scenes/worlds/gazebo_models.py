"""Resolves the URIs of a Gazebo world."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

from osmabench_ros.base.limits.documents import read_xml
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import MissingFileError, OsmabenchWarning, SceneError
from osmabench_ros.scenes.asset_files import leads_into, picture_below, resolved
from osmabench_ros.scenes.worlds.parts import WorldOptions

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ModelFinder:
    """Looks for models and their files in given folders, near the world, then by variables.

    `up_axis_acts` says whether Collada files are turned by what they name as up; `missing` holds
    what was not found and is listed together.
    """

    def __init__(self, world: Path, options: WorldOptions, *, up_axis_acts: bool) -> None:
        self.textures, self.up_axis_acts = tuple(options.textures), up_axis_acts
        self.missing: list[str] = []
        home = world.absolute().parent
        near = [home, home / 'models', home.parent / 'models']
        near += [home.parent] if home.name == 'worlds' else []
        variables = [part for name in VARIABLES for part in os.environ.get(name, '').split(':')]
        self.folders = [*options.models, *near, *(Path(part) for part in variables if part)]

    def find(self, uri: str, base: Path, where: str) -> Path:
        """Return the file or folder within the folders searched that a URI or a path names."""
        scheme, _, rest = uri.partition('://') if '://' in uri else ('', '', uri)
        if scheme in ('', 'file'):
            candidates = [base / rest, *(folder / rest for folder in self.folders)]
        elif scheme in ('model', 'package') and '..' not in Path(rest).parts:
            candidates = [folder / rest for folder in self.folders]
        else:
            raise MissingFileError(
                f'{where}: {shown(uri)} is not on this machine in a folder of models; '
                'download the model into one and name it by model://'
            )
        for path in (*candidates, *(_in_any_case(item) for item in candidates)):
            if path is not None and resolved(path) is not None:
                return self._within(path, rest, f'{where}: {shown(uri)}')
        searched = ', '.join(str(folder) for folder in dict.fromkeys(self.folders))
        raise MissingFileError(
            f'{where}: {shown(uri)} is in none of {searched}; name its folder with --models'
        )

    def texture(self, uri: str, base: Path, where: str) -> Path:
        """Return a picture as `find` does, else the one of its name below `textures`."""
        try:
            return self.find(uri, base, where)
        except MissingFileError:
            found = picture_below(uri, self.textures)
            if found is None:
                raise
            return found

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
            for _, name in sorted(
                _listed(config), key=lambda item: _version(item[0]), reverse=True
            ):
                if name and resolved(folder / name) is not None:
                    return self._within(folder / name, name, f'{where}: {shown(name)}')
        if (folder / 'model.sdf').is_file():
            return self._within(folder / 'model.sdf', 'model.sdf', where)
        raise MissingFileError(f'{where}: {folder} holds no model.sdf; the model is incomplete')


def _listed(config: Path) -> list[tuple[str, str]]:
    """Return versions and names of SDF files in a `model.config`; none, but a word, if broken."""
    try:
        root = read_xml(config, SceneError)
    except SceneError as error:
        warnings.warn(f'{error}; model.sdf beside it is read', OsmabenchWarning, stacklevel=2)
        return []
    return [(item.get('version', '0'), (item.text or '').strip()) for item in root.iter('sdf')]


def _in_any_case(path: Path) -> Path | None:
    """Return the only path that differs from a missing one in case alone, else None."""
    place = Path(path.anchor)
    for part in path.parts[1 if path.anchor else 0 :]:
        if resolved(place / part) is None:
            try:
                alike = [item for item in place.iterdir() if item.name.lower() == part.lower()]
            except OSError:
                return None
            if len(alike) != 1:
                return None
            part = alike[0].name
        place = place / part
    return place


def _version(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split('.') if part.isdigit())
