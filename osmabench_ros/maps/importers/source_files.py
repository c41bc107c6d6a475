"""Finds and reads the files of a method, with errors that name the expected files."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base import documents
from osmabench_ros.base.files import add_file
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.point_files import read_ply
from osmabench_ros.maps.disk.document import CHANNELS, COORDINATES
from osmabench_ros.maps.importers.assembly import SourceObject
from osmabench_ros.maps.pickles import CLASS, load_pickle

MAX_ARRAY = 4096
"""Arrays with more elements are described by type and shape only."""
_MAX_DEPTH = 32


def plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON-serialisable form; large arrays, cycles, foreign objects as text."""
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | np.number):
        return _number(value)
    if depth >= _MAX_DEPTH:
        return '(nested deeper than is kept)'
    if isinstance(value, np.ndarray):
        # Without elements it may still have any number of rows.
        if max(value.size, *value.shape) > MAX_ARRAY:
            return f'({value.dtype} array of shape {value.shape})'
        return plain(value.tolist(), depth + 1)
    if isinstance(value, dict) and CLASS in value:
        return _object(value, depth)
    if isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item, depth + 1) for item in value), key=str)
    return f'({type(value).__name__})'


def unknown_data(items: Mapping[str, Any], known: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return by id what objects hold beside the `known` keys, JSON-serialisable."""
    kept = {
        name: {str(key): plain(item[key]) for key in item if key not in known}
        for name, item in items.items()
        if isinstance(item, Mapping)
    }
    return {name: values for name, values in kept.items() if values}


def _number(value: Any) -> int | float | None:
    if isinstance(value, int | np.integer):
        return int(value)
    return float(value) if math.isfinite(value) else None


def _object(state: Mapping[str, Any], depth: int) -> Any:
    for key in ('_content', '_val'):  # OmegaConf's containers and leaves
        if key in state:
            return plain(state[key], depth + 1)
    return f'({state[CLASS]})'


def the_file(
    folder: Path, patterns: Sequence[str], what: str, besides: Sequence[str] = ()
) -> Path:
    """Return the one file that the first matching of some glob patterns, best first, finds.

    Names in `besides` are something else. Raises MapError, which says `what` is sought, if no
    pattern matches, or several files match one.
    """
    found = a_file(folder, patterns, what, besides)
    if found is None:
        raise MapError(f'{folder} has no {what}; expected {" or ".join(patterns)}')
    return found


def a_file(
    folder: Path, patterns: Sequence[str], what: str, besides: Sequence[str] = ()
) -> Path | None:
    """As `the_file`, but return None if there is none."""
    for pattern in patterns:
        found = sorted(
            path for path in folder.glob(pattern) if path.is_file() and path.name not in besides
        )
        if len(found) > 1:
            names = ', '.join(path.name for path in found[:5])
            raise MapError(
                f'{folder} has more than one {what} ({names}); give the folder of one run, '
                'or the file itself'
            )
        if found:
            return found[0]
    return None


def read_json(path: Path) -> Any:
    """Read a JSON file; raises MapError if it is missing or malformed."""
    return documents.read_json(path, MapError)


def read_points(path: Path) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Read points (N, 3) and, if there are any, colours (N, 3) of a PLY file."""
    return points_and_colors(read_ply(path), path)


def points_and_colors(
    columns: Mapping[str, NDArray[Any]], path: Path
) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Return points and colours of the columns of a file; MapError without coordinates."""
    if not {*COORDINATES} <= set(columns):
        raise MapError(f'{path} has no properties x, y, z')
    points = np.stack([columns[name] for name in COORDINATES], axis=1).astype(np.float64)
    if not {*CHANNELS} <= set(columns):
        return points, None
    channels = np.stack([columns[name] for name in CHANNELS], axis=1)
    return points, colors_of(channels, channels.dtype.kind == 'f')


def numbers_of(value: Any, what: str) -> NDArray[Any]:
    """Return an array of numbers that a method saved; raises MapError if it is none."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in 'biuf':
        raise MapError(f'{what} holds no array of numbers, but a {type(value).__name__}')
    return value


def colors_of(values: NDArray[Any], unit_range: bool) -> NDArray[np.uint8]:
    """Return 8-bit colours of values in [0, 1] (`unit_range`) or [0, 255]."""
    scaled = np.asarray(values, np.float64) * (255.0 if unit_range else 1.0)
    return np.clip(np.rint(scaled), 0, 255).astype(np.uint8)


def digest_of(paths: Iterable[Path], root: Path) -> str:
    """Return the sha256 of names (relative to `root`) and contents of files, in name order."""
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(root).as_posix(), path) for path in set(paths)):
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


def object_of(item: Any, source_id: str, where: str, features: Mapping[str, str]) -> SourceObject:
    """Return an object with its `features`, given by key of the item; MapError names `where`."""
    if not isinstance(item, Mapping):
        raise MapError(f'{where} is no dictionary')
    points, colors = colored_points(item, 'pcd_np', 'pcd_color_np', where)
    vectors = {name: vector(item, key, where) for name, key in features.items()}
    return SourceObject(
        source_id,
        points=points,
        colors=colors,
        features={name: values for name, values in vectors.items() if values is not None},
        corners=table(item, 'bbox_np', (8, 3), where) if 'bbox_np' in item else None,
        observations=max(int(item.get('num_detections') or 0), 0),
    )


def colored_points(
    item: Mapping[str, Any], points_key: str, colors_key: str, where: str
) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Return points (N, 3) and their colours, None where they are not one a point."""
    points = table(item, points_key, (None, 3), where)
    colors = table(item, colors_key, (None, 3), where) if colors_key in item else None
    if colors is None or len(colors) != len(points):
        return points, None  # Open3D leaves colours away for clouds that have none
    return points, colors_of(colors, unit_range=True)


def table(
    item: Mapping[str, Any], key: str, shape: tuple[int | None, int], where: str
) -> NDArray[np.float64]:
    """Return an array of a given shape (None: any length)."""
    try:
        values = np.asarray(item[key], np.float64)
    except (KeyError, TypeError, ValueError) as error:
        raise MapError(f'{where} has no numbers "{key}"') from error
    if not values.size and shape[0] is None:
        values = values.reshape(0, shape[1])
    if values.ndim != 2 or values.shape[1] != shape[1] or shape[0] not in (None, len(values)):
        raise MapError(f'{where}: "{key}" has shape {values.shape}, expected {shape}')
    return values


def vector(item: Mapping[str, Any], key: str, where: str) -> NDArray[np.float32] | None:
    """Return a feature as shape (D,), None if there is none."""
    if item.get(key) is None:
        return None
    try:
        values = np.asarray(item[key], np.float32).ravel()
    except (TypeError, ValueError) as error:
        raise MapError(f'{where}: feature "{key}" holds no numbers') from error
    return values if values.size else None
