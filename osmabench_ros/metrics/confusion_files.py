"""Saved confusion matrices: archives of this package and the pickles OSMa-Bench publishes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.limits.boundary import naming_errors
from osmabench_ros.errors import MetricError
from osmabench_ros.maps.unpickling import load_pickle
from osmabench_ros.metrics.confusion import ConfusionMatrix, read_confusions

PICKLE_SUFFIX = '_conf_matrix.pkl'
"""A published pickle is named after its scene, followed by this."""


def read_confusion_sets(
    paths: Sequence[Path], *, together: bool = False
) -> dict[str, dict[str, ConfusionMatrix]]:
    """Read sets of scenes that belong together, such as a method under a condition.

    Parameters
    ----------
    paths : sequence of Path
        An .npz archive is a set, and so is a folder of pickles or archives; pickles that are
        named one by one form one set together.
    together : bool
        Take everything as one set, as the archives of several runs of one method.

    Returns
    -------
    dict
        Matrices per scene and set; a set is called by its path.

    Raises
    ------
    MetricError
        If a file is missing or malformed, or a folder holds no matrices.
    """
    sets: dict[str, dict[str, ConfusionMatrix]] = {}
    single: dict[str, ConfusionMatrix] = {}
    for path in paths:
        if path.is_dir():
            sets[str(path)] = _read_folder(path)
        elif path.suffix == '.npz':
            sets[str(path)] = read_confusions(path)
        else:
            _add(single, _scene_of(path), read_confusion_pickle(path), path)
    if together:
        for scenes in sets.values():
            for scene, matrix in scenes.items():
                _add(single, scene, matrix, paths[0])
        return {' '.join(str(path) for path in paths): single}
    if single:
        sets[' '.join(str(path) for path in paths if path.suffix != '.npz')] = single
    return sets


def read_confusion_pickle(path: Path) -> ConfusionMatrix:
    """Read one published pickle, a dictionary of 'conf_matrix' and 'labels', without running it.

    Raises
    ------
    MetricError
        If the file does not hold these two.
    MapError
        If the file is missing or damaged.
    UnsafePickleError
        If it asks for anything but numbers and arrays.
    """
    with naming_errors(path, MetricError):
        data: Any = load_pickle(path)
        if not isinstance(data, Mapping) or not {'conf_matrix', 'labels'} <= set(data):
            raise MetricError(f'{path} holds no dictionary of "conf_matrix" and "labels"')
        counts = data['conf_matrix']
        if not isinstance(counts, np.ndarray):  # of a list of texts any size could be made
            raise MetricError(f'{path}: "conf_matrix" is no array')
        try:
            return ConfusionMatrix(counts, np.asarray(data['labels'], np.int64))
        except MetricError as error:
            raise MetricError(f'{path}: no published confusion matrix: {error}') from error


def _read_folder(path: Path) -> dict[str, ConfusionMatrix]:
    found: dict[str, ConfusionMatrix] = {}
    for file in sorted(path.glob(f'*{PICKLE_SUFFIX}')):
        _add(found, _scene_of(file), read_confusion_pickle(file), file)
    for file in sorted(path.glob('*.npz')):
        for scene, matrix in read_confusions(file).items():
            _add(found, scene, matrix, file)
    if not found:
        raise MetricError(f'{path} holds neither *{PICKLE_SUFFIX} nor *.npz files')
    return found


def _scene_of(path: Path) -> str:
    return path.name.removesuffix(PICKLE_SUFFIX).removesuffix('.pkl')


def _add(
    found: dict[str, ConfusionMatrix], scene: str, matrix: ConfusionMatrix, path: Path
) -> None:
    if scene in found:
        raise MetricError(f'{path}: scene "{scene}" occurs twice in one set; score them apart')
    found[scene] = matrix
