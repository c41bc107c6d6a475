"""Finds and reads the files of a method, with errors that name the expected files."""

import hashlib
import importlib.util
import math
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base import documents
from osmabench_ros.base.configuration import extra
from osmabench_ros.base.files import add_file
from osmabench_ros.errors import MapError, MissingDependencyError, errors_as
from osmabench_ros.geometry.point_files import read_ply
from osmabench_ros.maps.importers.assembly import SourceObject
from osmabench_ros.maps.pickles import CLASS, load_pickle
from osmabench_ros.maps.semantic_map import CHANNELS, COORDINATES

Value = TypeVar('Value')
# Arrays with more elements are described by type and shape only.
MAX_ARRAY = 4096
_MAX_DEPTH = 32


def make_plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON-serialisable form; large arrays, cycles, other objects as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return float(value) if math.isfinite(value) else None
    if depth >= _MAX_DEPTH:
        return '(nested deeper than is kept)'
    if isinstance(value, np.ndarray):
        # Without elements it may still have any number of rows.
        if max(value.size, *value.shape) > MAX_ARRAY:
            return f'({value.dtype} array of shape {value.shape})'
        return make_plain(value.tolist(), depth + 1)
    if isinstance(value, dict) and CLASS in value:
        held = [value[key] for key in ('_content', '_val') if key in value]  # of OmegaConf
        return make_plain(held[0], depth + 1) if held else f'({value[CLASS]})'
    if isinstance(value, dict):
        return {str(key): make_plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [make_plain(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((make_plain(item, depth + 1) for item in value), key=str)
    return f'({type(value).__name__})'


def keep_unknown(
    items: Mapping[str, Any], known: Collection[str], name: str = 'objects'
) -> dict[str, Any]:
    """Return as extras called `name` the data of objects by id, without the `known` keys."""
    kept = {
        key: {str(field): make_plain(item[field]) for field in item if field not in known}
        for key, item in items.items()
        if isinstance(item, Mapping)
    }
    kept = {key: values for key, values in kept.items() if values}
    return {name: kept} if kept else {}


def find_file(path: Path, patterns: Sequence[str], what: str, besides: Sequence[str] = ()) -> Path:
    """Return a file, or the one in a folder that the first matching of some glob patterns finds.

    Files named in `besides` do not count. Raises MapError, which says `what` is sought, if no
    pattern matches, or several files match one.
    """
    found = find_any_file(path, patterns, what, besides)
    if found is None:
        raise MapError(f'{path} has no {what}; expected {" or ".join(patterns)}')
    return found


def find_any_file(
    path: Path, patterns: Sequence[str], what: str, besides: Sequence[str] = ()
) -> Path | None:
    """As `find_file`, but return None if there is none."""
    if path.is_file():
        return path
    for pattern in patterns:
        files = filter(Path.is_file, path.glob(pattern))
        found = sorted(file for file in files if file.name not in besides)
        if len(found) > 1:
            names = ', '.join(file.name for file in found[:5])
            raise MapError(f'{path} has more than one {what} ({names}); give the file itself')
        if found:
            return found[0]
    return None


def require(library: str, what: str, extra_name: str) -> None:
    """Raise MissingDependencyError, which names the extra, if a library is not installed."""
    if importlib.util.find_spec(library) is None:
        raise MissingDependencyError(f'reading {what} needs {library}; {extra(extra_name)}')


def read_json(path: Path) -> Any:
    """Read a JSON file; raises MapError if it is missing or malformed."""
    return documents.read_json(path, MapError)


def read_each(listed: Any, where: Path | str, read: Callable[[Any], Value]) -> list[Value]:
    """Return what `read` makes of each entry of a list or mapping; MapError names a bad one."""
    if not isinstance(listed, list | Mapping):
        raise MapError(f'{where} holds neither a list nor an object of entries')
    made = []
    for key, item in listed.items() if isinstance(listed, Mapping) else enumerate(listed):
        caught = (AttributeError, LookupError, TypeError, ValueError)
        with errors_as(MapError, f'{where}: entry {key} is malformed', caught):
            made.append(read(item))
    return made


def read_points(path: Path) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Read points (N, 3) and, if there are any, colours (N, 3) of a PLY file."""
    return get_points_and_colors(read_ply(path), path)


def get_points_and_colors(
    columns: Mapping[str, NDArray[Any]], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Return points and colours of the columns of a file; MapError without coordinates."""
    if not {*COORDINATES} <= set(columns):
        raise MapError(f'{path} has no properties x, y, z')
    points = np.stack([columns[name] for name in COORDINATES], axis=1).astype(np.float64)
    if not {*CHANNELS} <= set(columns):
        return points, None
    channels = np.stack([columns[name] for name in CHANNELS], axis=1)
    return points, scale_colors(channels, channels.dtype.kind == 'f')


def check_numbers(value: Any, what: str) -> NDArray[Any]:
    """Return an array of numbers that a method saved; raises MapError if it is none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in 'biuf':
        raise MapError(f'{what} holds no array of numbers, but a {type(value).__name__}')
    return value


def scale_colors(values: NDArray[Any], unit_range: bool) -> NDArray[np.uint8]:
    """Return 8-bit colours of values in [0, 1] (`unit_range`) or [0, 255]."""
    scaled = np.asarray(values, np.float64) * (255.0 if unit_range else 1.0)
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def hash_files(*paths: Path | None) -> str:
    """Return the sha256 of names (from their common folder) and contents, in name order."""
    files = {path for path in paths if path is not None}
    root = os.path.commonpath([file.parent for file in files])
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in files):
        digest.update(f'{name}\0{path.stat().st_size}\0'.encode())
        add_file(digest, path)
    return digest.hexdigest()


def load_object_pickle(path: Path) -> dict[str, Any]:
    """Read a map pickle without its image masks; MapError if it holds no list of objects."""
    data = load_pickle(path, drop_masks=True)
    if isinstance(data, list):  # the pruned map of ConceptGraphs
        data = {'objects': data}
    if not isinstance(data, dict) or not isinstance(data.get('objects'), list):
        raise MapError(f'{path} holds no list "objects"; is it the map and not its detections?')
    return data


def read_object(
    item: Any, source_id: str, where: str, features: Mapping[str, str]
) -> SourceObject:
    """Return an object with its `features`, given by key of the item; MapError names `where`."""
    if not isinstance(item, Mapping):
        raise MapError(f'{where} is not a dictionary')
    points, colors = read_colored_points(item, 'pcd_np', 'pcd_color_np', where)
    vectors = {name: read_vector(item, key, where) for name, key in features.items()}
    return SourceObject(
        source_id,
        points=points,
        colors=colors,
        features={name: values for name, values in vectors.items() if values is not None},
        corners=read_table(item, 'bbox_np', (8, 3), where) if 'bbox_np' in item else None,
        observations=max(int(item.get('num_detections') or 0), 0),
    )


def read_colored_points(
    item: Mapping[str, Any], points_key: str, colors_key: str, where: str
) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Return points (N, 3) and their colours, None where they are not one a point."""
    points = read_table(item, points_key, (None, 3), where)
    colors = read_table(item, colors_key, (None, 3), where) if colors_key in item else None
    if colors is None or len(colors) != len(points):
        return points, None  # Open3D leaves colours away for clouds that have none
    return points, scale_colors(colors, unit_range=True)


def read_table(
    item: Mapping[str, Any], key: str, shape: tuple[int | None, int], where: str
) -> NDArray[np.float64]:
    """Return an array of a given shape (None: any length)."""
    with errors_as(MapError, f'{where} has no numbers "{key}"', KeyError, TypeError, ValueError):
        values = np.asarray(item[key], np.float64)
    if not values.size and shape[0] is None:
        values = values.reshape(0, shape[1])
    if values.ndim != 2 or values.shape[1] != shape[1] or shape[0] not in (None, len(values)):
        raise MapError(f'{where}: "{key}" has shape {values.shape}, expected {shape}')
    return values


def read_vector(item: Mapping[str, Any], key: str, where: str) -> NDArray[np.float32] | None:
    """Return a feature as shape (D,), None if there is none."""
    if item.get(key) is None:
        return None
    with errors_as(MapError, f'{where}: feature "{key}" holds no numbers', TypeError, ValueError):
        values = np.asarray(item[key], np.float32).ravel()
    return values if values.size else None
