"""Makes JSON of whatever a method saved, for the extras of a map."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from osmabench_ros.maps.pickle_machine import Name
from osmabench_ros.maps.pickle_names import Inert

MAX_ARRAY = 4096
"""Arrays with more elements are described by type and shape only."""
_MAX_DEPTH = 32


def plain(value: Any, depth: int = 0) -> Any:
    """Return a JSON-serialisable form: arrays as lists, OmegaConf nodes as what they hold.

    Large arrays, cycles and unknown objects become a short text. Infinite and undefined numbers
    become null.
    """
    if value is None or isinstance(value, bool | str):
        return value
    if isinstance(value, int | float | np.number):
        return _number(value)
    if depth >= _MAX_DEPTH:
        return '(nested deeper than is kept)'
    if isinstance(value, np.ndarray):
        if value.size > MAX_ARRAY:
            return f'({value.dtype} array of shape {value.shape})'
        return plain(value.tolist(), depth + 1)
    if isinstance(value, dict):
        return {str(key): plain(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item, depth + 1) for item in value]
    if isinstance(value, set | frozenset):
        return sorted((plain(item, depth + 1) for item in value), key=str)
    return _object(value, depth)


def unknown_data(items: Mapping[str, Any], known: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return what objects hold beside the keys that an importer understands.

    Parameters
    ----------
    items : mapping of str to mapping
        Objects of the source by their id; what is no mapping is passed over.
    known : collection of str
        Keys that are imported, or left out on purpose.

    Returns
    -------
    dict
        JSON-serialisable: id to unknown keys and values, without objects that have none.
    """
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


def _object(value: Any, depth: int) -> Any:
    if isinstance(value, Inert):
        state = value.state if isinstance(value.state, dict) else {}
        for key in ('_content', '_val'):  # OmegaConf's containers and leaves
            if key in state:
                return plain(state[key], depth + 1)
        if value.name.module == 'pathlib':
            return '/'.join(str(part) for part in value.arguments).replace('//', '/')
        return f'({value.name})'
    return str(value) if isinstance(value, Name) else f'({type(value).__name__})'
