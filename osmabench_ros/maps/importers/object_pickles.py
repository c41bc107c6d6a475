"""The objects in the gzip pickles of ConceptGraphs and its derivatives."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importers.source_files import colors_of
from osmabench_ros.maps.importers.source_model import SourceObject
from osmabench_ros.maps.untrusted.unpickling import load_pickle


def is_image_mask(dtype: np.dtype[Any], shape: tuple[int, ...]) -> bool:
    """Return whether a key holds masks of detections: gigabytes that are not needed."""
    return dtype.kind == 'b' and len(shape) == 2


def load_object_pickle(path: Path) -> dict[str, Any]:
    """Read a map pickle without its image masks; MapError if it holds no list of objects."""
    data = load_pickle(path, drop=is_image_mask)
    if isinstance(data, list):  # the pruned map of ConceptGraphs
        data = {'objects': data}
    if not isinstance(data, dict) or not isinstance(data.get('objects'), list):
        raise MapError(f'{path} holds no list "objects"; is it the map and not its detections?')
    return data


def object_of(item: Any, source_id: str, where: str) -> SourceObject:
    """Return points, colours, box and number of detections; MapError names `where`."""
    if not isinstance(item, Mapping):
        raise MapError(f'{where} is no dictionary')
    points = table(item, 'pcd_np', (None, 3), where)
    colors = table(item, 'pcd_color_np', (None, 3), where) if 'pcd_color_np' in item else None
    if colors is not None and len(colors) != len(points):
        colors = None  # Open3D leaves colours away for clouds that have none
    return SourceObject(
        source_id,
        points=points,
        colors=None if colors is None else colors_of(colors, unit_range=True),
        corners=table(item, 'bbox_np', (8, 3), where) if 'bbox_np' in item else None,
        observations=max(int(item.get('num_detections') or 0), 0),
    )


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
