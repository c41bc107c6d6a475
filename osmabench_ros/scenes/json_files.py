"""JSON files of scenes, read with errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.errors import SceneError


def read_object(path: Path) -> dict[str, Any]:
    """Read a JSON file whose top level is an object; SceneError if it is missing or another."""
    data = read_json(path, SceneError)
    if not isinstance(data, dict):
        raise SceneError(f'{path} must hold a JSON object, not {type(data).__name__}')
    return data


def vector(
    data: Mapping[str, Any], key: str, default: Sequence[float], where: str
) -> NDArray[np.float64]:
    """Return a list of finite numbers, as many as the default has."""
    value = data.get(key, default)
    try:
        numbers = np.array([float(item) for item in value])
    except (TypeError, ValueError):
        numbers = np.empty(0)
    if numbers.shape != (len(default),) or not np.isfinite(numbers).all():
        raise SceneError(f'{where}: "{key}" must be {len(default)} finite numbers, not {value!r}')
    return numbers


def number(data: Mapping[str, Any], key: str, default: float, where: str) -> float:
    """Return a finite number."""
    return float(vector({key: [data.get(key, default)]}, key, [default], where)[0])


def rotation_of(
    data: Mapping[str, Any], key: str, where: str
) -> tuple[float, float, float, float]:
    """Return a unit quaternion (x, y, z, w) from one stored as (w, x, y, z)."""
    w, x, y, z = vector(data, key, (1.0, 0.0, 0.0, 0.0), where)
    norm = float(np.sqrt(w * w + x * x + y * y + z * z))
    if norm < 1e-6:
        raise SceneError(f'{where}: "{key}" is a quaternion of length 0')
    return (float(x / norm), float(y / norm), float(z / norm), float(w / norm))
