"""Resolves the URIs of a world, and derives classes from the names of models."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from fnmatch import fnmatchcase
from itertools import takewhile
from pathlib import Path

from osmabench_ros.base.limits.documents import read_xml
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.errors import MissingFileError, OsmabenchWarning, SceneError
from osmabench_ros.scenes.asset_files import leads_into, picture_below, resolved
from osmabench_ros.semantics.labels import STRUCTURE_NOUNS, normalised_name

VARIABLES = ('GZ_SIM_RESOURCE_PATH', 'GAZEBO_MODEL_PATH', 'SDF_PATH', 'GAZEBO_RESOURCE_PATH')


class ColladaUp(str, Enum):
    """What the `up_axis` of a Collada file does: Gazebo Classic ignores it, new Gazebo does not.

    VERSION takes a world of SDF 1.7, the last that Classic reads, or older for one of Classic.
    """

    VERSION = 'version'
    IGNORED = 'ignored'
    APPLIED = 'applied'


@dataclass(frozen=True)
class WorldOptions:
    """How a Gazebo world is read.

    Parameters
    ----------
    models : sequence of Path
        Folders that models are searched in first.
    classes : mapping
        Class names by shell pattern of model names, see `class_name_of`.
    known_classes : sequence of str
        Names that classes guessed from the names of models are matched to by their words.
    collada_up : ColladaUp
        Whether the `up_axis` of Collada files turns them.
    textures : sequence of Path
        Folders below which textures are searched by name that are not near their mesh.
    skip_missing : bool
        Leave out what names files that are not there, instead of raising MissingFileError.
    """

    models: Sequence[Path] = ()
    classes: Mapping[str, str] = field(default_factory=dict)
    known_classes: Sequence[str] = ()
    collada_up: ColladaUp = ColladaUp.VERSION
    textures: Sequence[Path] = ()
    skip_missing: bool = False


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
    plain = re.sub(r'^aws_robomaker_[a-z]+_(?=.)', '', plain)
    plain = re.sub(r'([_\-. ]?\d+|_clone)+$', '', plain) or plain
    words = re.sub(r'(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])', ' ', plain)
    name = normalised_name(words.replace('-', ' ').replace('.', ' '))
    # Variants of a model are often lettered: ChairA, ChairD.
    name = re.sub(r'(?<=\w\w) [a-z]$', '', name)
    before, _, last = name.rpartition(' ')
    noun = _singular(last)
    if noun not in STRUCTURE_NOUNS:
        return name
    # Parts of buildings are often numbered: "floor 01 walls" are the walls of the first floor.
    return noun if re.search(r'\d', before) else f'{before} {noun}'.strip()


def known_class(name: str, known: Sequence[str]) -> str:
    """Return the known class that the words of a name end with, else hold, else the name itself.

    Singular and plural are the same, longer known names win: of 'table' and 'coffee table',
    ``'big coffee tables'`` is a 'coffee table'.
    """
    words = [_singular(word) for word in name.split(' ')]
    spelt = {' '.join(map(_singular, normalised_name(item).split(' '))): item for item in known}
    ends = [' '.join(words[start:]) for start in range(len(words))]
    parts = [
        ' '.join(words[start:end]) for end in range(len(words) - 1, 0, -1) for start in range(end)
    ]
    return next((normalised_name(spelt[part]) for part in (*ends, *parts) if part in spelt), name)


def _singular(word: str) -> str:
    """Return an English noun without its plural, as far as its letters tell."""
    if re.search(r'(ss|us|is)$', word) or len(word) < 4:
        return word
    word = re.sub(r'(?<=[^aeiou])ies$', 'y', word)
    return re.sub(r'(?<=ch)es$|(?<=sh)es$|(?<=[xs])es$|(?<!s)s$', '', word)
