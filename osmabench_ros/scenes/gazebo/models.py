"""Resolves the URIs of a world, and derives classes from the names of models."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path

from osmabench_ros.base.limits.documents import read_xml
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.asset_files import leads_into, resolved
from osmabench_ros.semantics.labels import normalised_name

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ModelFinder:
    """Looks for models and their files in given folders, near the world, then by variables."""

    def __init__(self, world: Path, folders: Sequence[Path] = ()) -> None:
        home = world.absolute().parent
        near = [home, home / 'models', home.parent / 'models']
        near += [home.parent] if home.name == 'worlds' else []
        variables = [part for name in VARIABLES for part in os.environ.get(name, '').split(':')]
        self.folders = [*folders, *near, *(Path(part) for part in variables if part)]

    def find(self, uri: str, base: Path, where: str) -> Path:
        """Return the file or folder within the folders searched that a URI or a path names."""
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


def common_prefix(names: Iterable[str]) -> str:
    """Return what at least three names (behind '::') all start with, up to the last underscore."""
    every = sorted({name.rpartition('::')[2] for name in names})
    if len(every) < 3:
        return ''
    # All of a sorted list share what its ends share.
    pairs = zip(every[0], every[-1], strict=False)
    shared = ''.join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs))
    return shared[: shared.rfind('_') + 1]


def class_name_of(model: str, patterns: Mapping[str, str], prefix: str = '') -> str:
    """Return the class of a model by shell `patterns`, else its name without prefix and numbers.

    ``'aws_robomaker_residential_KitchenTable_01_001'`` is by default a ``'kitchen table'``;
    patterns are tried in order, case-insensitive, and an empty class name means no class.
    """
    for pattern, name in patterns.items():
        if fnmatchcase(model.lower(), pattern.lower()):
            return normalised_name(name)
    plain = model.rpartition('::')[2].removeprefix(prefix)
    plain = re.sub(r'([_\-. ]?\d+|_clone)+$', '', plain) or plain
    words = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', ' ', plain)
    name = normalised_name(words.replace('-', ' ').replace('.', ' '))
    # Variants of a model are often lettered: ChairA, ChairD.
    return re.sub(r'(?<=\w\w) [a-z]$', '', name)
