"""Columns of PLY and PCD files."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.child import read_limited
from osmabench_ros.errors import MapError, MissingDependencyError
from osmabench_ros.geometry.ply import read_ply
from osmabench_ros.maps.importers.source_files import colors_of

_CHANNELS = ('red', 'green', 'blue')


def read_columns(path: Path) -> dict[str, NDArray[Any]]:
    """Return the columns of a point cloud: x, y, z, and what else it has, each of shape (N,).

    Colours come as red, green and blue of 8 bits.

    Raises
    ------
    MapError
        If the file is no point cloud.
    MissingDependencyError
        If it is a PCD file and Open3D is not installed.
    """
    if not path.is_file():
        raise MapError(f'{path} does not exist')
    columns = _pcd(path) if path.suffix.lower() == '.pcd' else read_ply(path)
    if not {'x', 'y', 'z'} <= set(columns):
        raise MapError(f'{path} has no coordinates x, y, z')
    if set(_CHANNELS) <= set(columns) and columns['red'].dtype.kind == 'f':
        for name in _CHANNELS:
            columns[name] = colors_of(columns[name], unit_range=True)
    return columns


def points_and_colors(
    columns: dict[str, NDArray[Any]],
) -> tuple[NDArray[np.float64], NDArray[np.uint8] | None]:
    """Return points (N, 3) and, if there are any, colours (N, 3) of columns."""
    points = np.stack([columns[name] for name in 'xyz'], axis=1).astype(np.float64)
    if not set(_CHANNELS) <= set(columns):
        return points, None
    return points, np.stack([columns[name] for name in _CHANNELS], axis=1).astype(np.uint8)


def _pcd(path: Path) -> dict[str, NDArray[Any]]:
    if importlib.util.find_spec('open3d') is None:
        raise MissingDependencyError(
            'reading PCD files needs Open3D; install osmabench_ros[geometry]'
        )
    found: dict[str, NDArray[Any]] = read_limited(read_pcd, path, libraries=('open3d',))
    return found


def read_pcd(path: Path) -> dict[str, NDArray[Any]]:
    """Read the columns of a PCD file, in the limited child.

    Raises
    ------
    MapError
        If it is no PCD file, or has no points.
    """
    import open3d

    with path.open('rb') as stream:
        if b'VERSION' not in stream.read(2048):
            raise MapError(f'{path} is no PCD file: it has no VERSION line')
    try:
        with open3d.utility.VerbosityContextManager(open3d.utility.VerbosityLevel.Error):
            cloud = dict(open3d.t.io.read_point_cloud(path).point.items())
    except (RuntimeError, ValueError) as error:
        raise MapError(f'{path} cannot be read as PCD: {error}') from error
    columns: dict[str, NDArray[Any]] = {}
    for name in sorted(cloud):
        values = cloud[name].numpy()
        parts = {'positions': 'xyz', 'colors': _CHANNELS}.get(name)
        if parts is not None:
            columns |= {part: np.array(values[:, i]) for i, part in enumerate(parts)}
        elif values.ndim == 1 or values.shape[1] == 1:
            columns[name] = np.array(values).reshape(len(values))
    if not columns:
        raise MapError(f'{path} cannot be read as PCD, or has no points')
    return columns
