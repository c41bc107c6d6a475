"""Writes maps in OpenLex3D's interchange form, for its own evaluation code."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.maps.array_files import write_npy
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap


def export_openlex3d(semantic_map: SemanticMap, directory: Path) -> int:
    """Write `point_cloud.pcd`, `index.npy` and `embeddings.npy`.

    Points without a feature are left out: OpenLex3D reads index -1 as the last object's feature,
    while ground truth with no point nearby counts as missing, which is what it is.

    Parameters
    ----------
    semantic_map : SemanticMap
        With points that have features.
    directory : Path
        Must not exist.

    Returns
    -------
    int
        How many points were left out.

    Raises
    ------
    MapError
        If the directory exists, or no point has a feature that text can be compared with.
    """
    if directory.exists():
        raise MapError(f'{directory} exists; choose another directory or remove it')
    dense = semantic_map.dense
    if dense is None or dense.feature_rows is None:
        raise MapError(
            f'the map of {semantic_map.header.provenance.method} has no points with features; '
            'OpenLex3D scores features'
        )
    space = semantic_map.feature_spaces[dense.feature_space]
    if not space.text_comparable:
        raise MapError(f'features "{space.name}" of {space.model} cannot be compared with text')
    keep = dense.feature_rows >= 0
    partial = directory.with_name(f'.{directory.name}.{os.getpid()}.partial')
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        with (partial / 'point_cloud.pcd').open('wb') as stream:
            _write_pcd(stream, dense, keep)
        with (partial / 'index.npy').open('wb') as stream:
            write_npy(stream, dense.feature_rows[keep].astype(np.int64))
        with (partial / 'embeddings.npy').open('wb') as stream:
            write_npy(stream, space.vectors)
        partial.rename(directory)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return int((~keep).sum())


def _write_pcd(stream: IO[bytes], dense: DenseMap, keep: NDArray[np.bool_]) -> None:
    """Write binary PCD 0.7 with x, y, z and, if there are colours, packed rgb."""
    points = dense.points[keep]
    fields = [('x', '<f4'), ('y', '<f4'), ('z', '<f4')]
    if dense.colors is not None:
        fields.append(('rgb', '<u4'))
    rows = np.empty(len(points), np.dtype(fields))
    for i, name in enumerate('xyz'):
        rows[name] = points[:, i]
    if dense.colors is not None:
        red, green, blue = dense.colors[keep].astype(np.uint32).T
        rows['rgb'] = red << 16 | green << 8 | blue
    names = ' '.join(name for name, _ in fields)
    kinds = ' '.join('U' if name == 'rgb' else 'F' for name, _ in fields)
    lines = (
        'VERSION 0.7', f'FIELDS {names}', f'SIZE {" ".join("4" for _ in fields)}',
        f'TYPE {kinds}', f'COUNT {" ".join("1" for _ in fields)}', f'WIDTH {len(points)}',
        'HEIGHT 1', 'VIEWPOINT 0 0 0 1 0 0 0', f'POINTS {len(points)}', 'DATA binary',
    )  # fmt: skip
    stream.write(('\n'.join(lines) + '\n').encode('ascii'))
    stream.write(rows.tobytes())
