"""Files that the files of a scene name: found in folders that these may read, and read."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_json
from osmabench_ros.errors import SceneError, choose, errors_as
from osmabench_ros.geometry.pose import Pose

# Of files that are textures.
IMAGE_SUFFIXES = ('.png', '.jpg', '.jpeg', '.bmp', '.tga', '.tif', '.tiff', '.gif', '.webp')

# Environment variable: folders, parted by colons, that links within scenes may lead to.
LINKED_FOLDERS = 'OSMABENCH_LINKED_FOLDERS'

# A download from Hugging Face is `snapshots/<commit>/...`, links to files of `blobs`.
_SNAPSHOTS, _BLOBS = 'snapshots', 'blobs'


@dataclass(frozen=True)
class TextureSearch:
    """How textures are found that are not near their mesh.

    They are looked for by name anywhere below `folders`; those found nowhere are errors, or grey.
    """

    folders: tuple[Path, ...] = ()
    grey_if_missing: bool = False


NEARBY = TextureSearch()


def is_picture_name(name: str) -> bool:
    """Return whether a file of this name is a texture."""
    return name.lower().endswith(IMAGE_SUFFIXES)


def find_picture(name: str, folders: tuple[Path, ...]) -> Path | None:
    """Return the first picture below the folders that is called like the last part of a name."""
    last = name.rpartition('/')[2].lower()
    return _find_pictures(folders).get(last) if is_picture_name(last) else None


@lru_cache(maxsize=8)
def _find_pictures(folders: tuple[Path, ...]) -> dict[str, Path]:
    """Return the pictures below folders by name in lower case, in the order of their paths."""
    found: dict[str, Path] = {}
    for folder in folders:
        for path in sorted(folder.rglob('*')):
            if is_picture_name(path.name) and leads_into([folder], path):
                found.setdefault(path.name.lower(), path)
    return found


def resolve_path(path: Path) -> Path | None:
    """Return where a path leads, None if the system knows no such path."""
    try:
        return path.resolve() if path.exists() else None
    except (OSError, ValueError, RuntimeError):  # too long, with NUL, links in a loop
        return None


def leads_into(roots: Iterable[Path], path: Path) -> bool:
    """Return whether a path, after links, is in a folder or its `find_linked_places`."""
    target = resolve_path(path)
    places = [place for place in map(resolve_path, roots) if place]
    return target is not None and any(
        target.is_relative_to(place) for place in (*places, *find_linked_places(places))
    )


def find_linked_places(roots: Iterable[Path]) -> list[Path]:
    """Return where links in folders may also lead: the rest of a download, `LINKED_FOLDERS`."""
    named = filter(None, os.environ.get(LINKED_FOLDERS, '').split(os.pathsep))
    places = [place for place in map(resolve_path, map(Path, named)) if place]
    for root in roots:
        folders = (root.resolve(), *root.resolve().parents)
        if snapshot := next((item for item in folders if item.parent.name == _SNAPSHOTS), None):
            blobs = snapshot.parent.parent / _BLOBS
            # As a link it would be a way out that the download itself has laid.
            places += [blobs] if blobs.is_dir() and not blobs.is_symlink() else []
    return places


def locate_file_within(root: Path, name: str, base: Path, where: str) -> Path:
    """Return the path of a file within `root` that another names; may raise SceneError."""
    path = base / name
    if resolve_path(path) is None:
        raise SceneError(f'{where}: {path} does not exist; check the path that names it')
    if Path(name).is_absolute() or not leads_into([root], path):
        remedy = f'put the file there, or name the folder that a link leads to in {LINKED_FOLDERS}'
        raise SceneError(f'{where} names {name}, which is outside of {root}; {remedy}')
    return path


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file with an object at its top level; SceneError for a missing or other file."""
    data = read_json(path, SceneError)
    if not isinstance(data, dict):
        raise SceneError(f'{path} must hold a JSON object, not {type(data).__name__}')
    return data


def floats(items: Iterable[Any]) -> NDArray[np.float64]:
    """Return items as numbers, none at all if one of them is not a number."""
    try:
        return np.array([float(item) for item in items])
    except (TypeError, ValueError):
        return np.empty(0)


def vector(
    data: Mapping[str, Any], key: str, default: Sequence[float], where: str
) -> NDArray[np.float64]:
    """Return a list of finite numbers, as many as the default has."""
    value = data.get(key, default)
    numbers = floats(value)
    if numbers.shape != (len(default),) or not np.isfinite(numbers).all():
        raise SceneError(f'{where}: "{key}" must be {len(default)} finite numbers, not {value!r}')
    return numbers


def number(data: Mapping[str, Any], key: str, default: float, where: str) -> float:
    """Return a finite number."""
    return float(vector({key: [data.get(key, default)]}, key, [default], where)[0])


def numbers(
    element: ElementTree.Element | None, default: tuple[float, ...], where: str
) -> NDArray[np.float64]:
    """Return as many numbers of an element as the default has, which it is if absent."""
    text = '' if element is None else (element.text or '').strip()
    if element is None or not text:
        return np.array(default)
    values, count = floats(text.split()), len(default)
    if len(values) < count or not np.isfinite(values).all():
        raise SceneError(f'{where}: <{element.tag}> needs {count} finite numbers, not "{text}"')
    return values[:count]


def find_text(element: ElementTree.Element, path: str, default: str = '') -> str:
    """Return the stripped text of a child, the default if it is absent."""
    return (element.findtext(path) or default).strip()


def read_pose(element: ElementTree.Element, where: str) -> tuple[Pose, str]:
    """Return the <pose> of an element and the name of the frame that it is relative to."""
    item = element.find('pose')
    if item is None:
        return Pose.identity(), ''
    frame = item.get('relative_to', item.get('frame', ''))
    if item.get('rotation_format') == 'quat_xyzw':
        values = numbers(item, (0.0,) * 6 + (1.0,), where)
        with errors_as(SceneError, f'{where}: <pose>', ValueError):
            return Pose.from_quaternion(values[3:].tolist(), values[:3]), frame
    values = numbers(item, (0.0,) * 6, where)
    degrees = item.get('degrees', 'false').lower() in ('1', 'true')
    return make_pose_from_rpy(values[:3], values[3:], degrees), frame


def make_pose_from_rpy(
    xyz: NDArray[np.float64], rpy: NDArray[np.float64], degrees: bool = False
) -> Pose:
    """Return a pose from a translation and roll, pitch, yaw about fixed axes."""
    from scipy.spatial.transform import Rotation

    return Pose(Rotation.from_euler('xyz', rpy, degrees=degrees).as_matrix(), xyz)


@dataclass(frozen=True, eq=False)
class FrameScope:
    """Named frames with poses that may refer to each other, or to '', which is the scope."""

    entries: Mapping[str, tuple[Pose, str]] = field(default_factory=dict)
    where: str = ''

    def resolve(self, pose: Pose, relative_to: str) -> Pose:
        """Return a pose in the scope."""
        seen: list[str] = []
        while relative_to not in ('', 'world', '__model__'):
            if relative_to in seen:
                raise SceneError(f'{self.where}: frames {", ".join(seen)} refer to each other')
            problem = f'{self.where}: no frame "{relative_to}"'
            choose(relative_to, self.entries, SceneError, problem)
            seen.append(relative_to)
            parent, relative_to = self.entries[relative_to]
            pose = parent @ pose
        return pose
