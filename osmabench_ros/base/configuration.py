"""Installed parts: configuration files, version, extension points, packages from pip.

All that can be added by name is an entry point.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Mapping
from functools import cache, lru_cache
from importlib.metadata import EntryPoint, PackageNotFoundError, entry_points
from importlib.metadata import requires as installed_requirements
from importlib.metadata import version as installed_version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmabench_ros.errors import ConfigError, choose, errors_as

if TYPE_CHECKING:
    from packaging.requirements import Requirement


def version() -> str:
    """Return the version of the installed distribution, 'unknown' in a bare source tree."""
    return installed('osmabench_ros') or 'unknown'


def config_path(*parts: str) -> Path:
    """Return the path below `config/` of the package; ConfigError if no installation has it."""
    return shared_path('config', *parts)


def shared_path(*parts: str) -> Path:
    """Return the path of a file or folder next to `config/`; raises as `config_path`."""
    source = Path(__file__).resolve().parents[2]
    above = [folder for folder in source.parents if folder.name != 'share']
    shares = [source, *(x / 'share' / 'osmabench_ros' for x in (*above, Path(sys.prefix)))]
    for share in shares:
        path = share.joinpath(*parts)
        if path.exists():
            return path
    places = ', '.join(map(str, shares))
    raise ConfigError(f'{"/".join(parts)} is in none of {places}; reinstall the package')


def described_names(*folder: str) -> list[str]:
    """Return the names of the YAML files in a folder below `config/`."""
    return sorted(path.stem for path in config_path(*folder).glob('*.yaml'))


def bundled_file(name: str, *folder: str, problem: str = '') -> Path:
    """Return the path of a YAML file below `config/`; a ConfigError suggests another name."""
    problem = problem or f'there is no config/{"/".join(folder)}/{name}.yaml'
    choose(name, described_names(*folder), ConfigError, problem)
    return config_path(*folder, f'{name}.yaml')


def described(name_or_path: str, *folder: str) -> tuple[Any, str]:
    """Read a YAML file, by path or by name below `config/`; return its data and its path."""
    path = Path(name_or_path)
    if path.suffix != '.yaml':
        path = bundled_file(name_or_path, *folder)
    # Help and errors of arguments shall not wait for the parsers.
    from osmabench_ros.base.documents import read_yaml

    return read_yaml(path, ConfigError), str(path)


# Distributions by the name of another that holds the same modules.
SAME = {'open3d': 'open3d-cpu'}


def requirements_file() -> Path:
    """Return the file that the README gives to pip."""
    return shared_path('requirements', 'beside_ros.txt')


def requirements() -> list[Requirement]:
    """Return the requirements in the file."""
    from packaging.requirements import Requirement

    lines = requirements_file().read_text('utf-8').splitlines()
    return [Requirement(line) for line in lines if line and not line.startswith('#')]


def unmet_requirements() -> list[str]:
    """Return descriptions of the requirements that are missing here, or too old."""
    found = [(item, installed(item.name)) for item in requirements()]
    return [
        f'{item} ({version_here or "not installed"})'
        for item, version_here in found
        if not (version_here and item.specifier.contains(version_here, prereleases=True))
    ]


@cache
def extra(name: str) -> str:
    """Return the command that installs an extra, by its packages: no index has the package itself.

    It uses the pip of this interpreter, with its path unless the shell finds it.
    """
    from packaging.requirements import Requirement

    wanted = []
    for item in map(Requirement, installed_requirements('osmabench_ros') or ()):
        if item.marker is not None and item.marker.evaluate({'extra': name}):
            item.marker = None
            wanted.append(f"'{item}'")
    pip = shutil.which('pip')
    found = pip is not None and Path(pip).parent == Path(sys.executable).parent
    return f'{"pip" if found else f"{sys.executable} -m pip"} install {" ".join(wanted)}'


def installed(name: str) -> str | None:
    """Return the version of a distribution, or of another with its modules; None without one."""
    for candidate in (name, SAME.get(name, name)):
        try:
            return installed_version(candidate)
        except PackageNotFoundError:
            continue
    return None


SIMULATORS = 'osmabench.simulators'
MAP_IMPORTERS = 'osmabench.map_importers'
MAPPERS = 'osmabench.mappers'
SUITES = 'osmabench.suites'
LANGUAGE_MODELS = 'osmabench.language_models'
EFFECTS = 'osmabench.effects'
ANSWERERS = 'osmabench.answerers'


def extension_names(group: str) -> list[str]:
    """Return the names that are installed in a group, in alphabetical order."""
    return sorted(_find_registered(group, tuple(sys.path)))


def load_extension(group: str, name: str) -> Any:
    """Return the object of an entry point; ConfigError without one or if it is not importable."""
    registered = _find_registered(group, tuple(sys.path))
    kind = group.removeprefix('osmabench.').removesuffix('s').replace('_', ' ')
    problem = f'there is no {kind} "{name}" in the entry points of group "{group}"'
    choose(name, registered, ConfigError, problem)
    problem = f'{kind} "{name}" cannot be imported from "{registered[name].value}"'
    remedy = 'reinstall its package'
    with errors_as(ConfigError, problem, ImportError, AttributeError, remedy=remedy):
        return registered[name].load()


@lru_cache(maxsize=32)
def _find_registered(group: str, _places: tuple[str, ...]) -> Mapping[str, EntryPoint]:
    """Return the entry points of a group, for the distributions in some places."""
    return {point.name: point for point in entry_points(group=group)}
