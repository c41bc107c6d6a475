"""Confusion matrices: counted in one pass, added over scenes, read and written."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.device import resolve_device, to_tensor
from osmabench_ros.base.files import atomic_write
from osmabench_ros.base.reading import naming_errors, read_npz
from osmabench_ros.errors import MetricError, errors_as
from osmabench_ros.maps.pickles import load_pickle

if TYPE_CHECKING:
    import torch


# Label of points outside the vocabulary or without a class.
OUTSIDE = -1

# Label of places where there is nothing: as a column missed, as a row hallucinated.
NOTHING = -2

# Small enough for the cache, and for torch not to wake its threads.
_CHUNK_OF_CPU = 1 << 15

_CHUNK_OF_CUDA = 1 << 24


@dataclass(frozen=True, eq=False)
class ConfusionMatrix:
    """Counts of true (row) against predicted (column) labels.

    Parameters
    ----------
    counts : ndarray of int64, shape (C, C)
        Points.
    labels : ndarray of int64, shape (C,)
        Label of each row and column; negative ones are not classes.
    """

    counts: NDArray[np.int64]
    labels: NDArray[np.int64]

    def __post_init__(self) -> None:
        counts = np.asarray(self.counts)
        labels = np.asarray(self.labels, np.int64)
        if counts.shape != (len(labels), len(labels)):
            raise MetricError(
                f'a confusion matrix of shape {counts.shape} does not fit {len(labels)} labels'
            )
        if not np.issubdtype(counts.dtype, np.integer) or (counts < 0).any():
            raise MetricError('a confusion matrix holds counts: integers that are not negative')
        if len(np.unique(labels)) != len(labels):
            raise MetricError('a label of a confusion matrix occurs more than once')
        object.__setattr__(self, 'counts', counts.astype(np.int64))
        object.__setattr__(self, 'labels', labels)

    def __add__(self, other: ConfusionMatrix) -> ConfusionMatrix:
        """Add by label; see `sum_matrices`."""
        return sum_matrices([self, other])


def count_pairs(truth: torch.Tensor, predicted: torch.Tensor, classes: int) -> torch.Tensor:
    """Count pairs of indices with one bincount.

    Parameters
    ----------
    truth, predicted : torch.Tensor of int32 or int64, shape (N,)
        Indices in [0, classes).
    classes : int
        Number of rows and columns.

    Returns
    -------
    torch.Tensor of int64, shape (classes * classes,)
    """
    import torch

    pairs = (truth * classes).add_(predicted)
    return torch.bincount(pairs, minlength=classes * classes)


def confusion_matrix(
    truth: Sequence[int] | NDArray[np.integer] | torch.Tensor,
    predicted: Sequence[int] | NDArray[np.integer] | torch.Tensor,
    vocabulary: Sequence[int] | NDArray[np.integer],
    *,
    extra_labels: Sequence[int] = (OUTSIDE,),
    device: str = 'auto',
) -> ConfusionMatrix:
    """Count true against predicted labels.

    Parameters
    ----------
    truth, predicted : array or torch.Tensor of int, shape (N,)
        Labels. Labels in neither the vocabulary nor `extra_labels` count as OUTSIDE.
    vocabulary : sequence of int
        Labels in the order of rows and columns, none negative.
    extra_labels : sequence of int
        Negative labels that follow them; OUTSIDE must be among them.
    device : str
        'auto', 'cpu' or 'cuda'; counts are the same.

    Raises
    ------
    MetricError
        If the shapes differ.
    """
    pair: list[Any] = [
        np.asarray(x) if isinstance(x, (list, tuple)) else x for x in (truth, predicted)
    ]
    shapes = [tuple(item.shape) for item in pair]
    if shapes[0] != shapes[1] or len(shapes[0]) != 1:
        raise MetricError(f'true labels have shape {shapes[0]}, predicted ones {shapes[1]}')
    labels = np.array([*(int(item) for item in vocabulary), *extra_labels], np.int64)
    where = resolve_device(device)
    counts = _counts(pair, labels, where)
    return ConfusionMatrix(counts.reshape(len(labels), len(labels)).cpu().numpy(), labels)


def _counts(pair: Sequence[Any], labels: NDArray[np.int64], device: torch.device) -> torch.Tensor:
    import torch

    table, offset = _make_lookup(labels, device)
    counts = torch.zeros(len(labels) ** 2, dtype=torch.int64, device=device)
    size = _CHUNK_OF_CPU if device.type == 'cpu' else _CHUNK_OF_CUDA
    for start in range(0, len(pair[0]), size):
        rows, columns = (
            table.index_select(0, _places(item[start : start + size], offset, table))
            for item in pair
        )
        counts += count_pairs(rows, columns, len(labels))
    return counts


def _places(labels: Any, offset: int, table: torch.Tensor) -> torch.Tensor:
    """Return the table index of each label; labels beyond the table get its ends."""
    import torch

    values = to_tensor(labels, table.device)
    if values.dtype not in (torch.int32, torch.int64):
        values = values.long()
    # First clamped, so that the sum cannot overflow.
    return values.clamp(-offset, len(table) - 1 - offset).add_(offset)


def _make_lookup(labels: NDArray[np.int64], device: torch.device) -> tuple[torch.Tensor, int]:
    """Return the index of every label, and the offset to add to a label to look it up."""
    offset = 1 - int(labels.min())
    outside = int(np.flatnonzero(labels == OUTSIDE)[0])
    small = len(labels) ** 2 < 2**31
    table = np.full(int(labels.max()) + offset + 2, outside, np.int32 if small else np.int64)
    table[labels + offset] = np.arange(len(labels))
    return to_tensor(table, device), offset


def sum_matrices(matrices: Iterable[ConfusionMatrix]) -> ConfusionMatrix:
    """Add matrices by label; each may have different labels.

    Returns
    -------
    ConfusionMatrix
        Classes in ascending order, then the negative labels, -1 first.
    """
    matrices = list(matrices)
    everything = np.unique(np.concatenate([item.labels for item in matrices]))
    labels = np.concatenate([everything[everything >= 0], everything[everything < 0][::-1]])
    place = {int(label): index for index, label in enumerate(labels)}
    counts = np.zeros((len(labels), len(labels)), np.int64)
    for item in matrices:
        index = np.array([place[int(label)] for label in item.labels])
        counts[np.ix_(index, index)] += item.counts
    return ConfusionMatrix(counts, labels)


def write_confusions(matrices: Mapping[str, ConfusionMatrix], path: Path) -> None:
    """Write `<scene>/matrix` and `<scene>/labels` of every scene to an .npz file."""
    arrays: dict[str, Any] = {}
    for scene, item in matrices.items():
        arrays[f'{scene}/matrix'], arrays[f'{scene}/labels'] = item.counts, item.labels
    with atomic_write(path) as draft, draft.open('wb') as stream:
        np.savez_compressed(stream, **arrays)


def read_confusions(path: Path) -> dict[str, ConfusionMatrix]:
    """Read what `write_confusions` wrote; scenes in the order of the file.

    Raises MetricError if the file cannot be read or an array is missing or of another shape.
    """
    arrays = read_npz(path, MetricError)
    try:
        return {
            scene: ConfusionMatrix(arrays[f'{scene}/matrix'], arrays[f'{scene}/labels'])
            for scene in dict.fromkeys(name.rpartition('/')[0] for name in arrays)
        }
    except (ValueError, KeyError, MetricError) as error:
        raise MetricError(
            f'{path}: not a file of confusion matrices (<scene>/matrix, <scene>/labels): {error}'
        ) from error


# A published pickle is named after its scene, followed by this.
PICKLE_SUFFIX = '_conf_matrix.pkl'


def read_confusion_sets(
    paths: Sequence[Path], *, together: bool = False
) -> dict[str, dict[str, ConfusionMatrix]]:
    """Read sets of scenes that belong together, such as a method under a condition.

    Parameters
    ----------
    paths : sequence of Path
        An .npz archive is a set, and so is each folder of pickles or archives below a folder
        that is named; pickles that are named one by one form one set together.
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
            sets.update((str(folder), _read_folder(folder)) for folder in _list_folders(path))
        elif path.suffix == '.npz':
            sets[str(path)] = read_confusions(path)
        else:
            _add(single, _find_scene(path), read_confusion_pickle(path), path)
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

    Raises MetricError if the file does not hold these two, MapError if the file is missing or
    damaged, UnsafePickleError if it asks for anything but numbers and arrays.
    """
    with naming_errors(path, MetricError):
        data: Any = load_pickle(path)
        if not isinstance(data, Mapping) or not {'conf_matrix', 'labels'} <= set(data):
            raise MetricError(f'{path} holds no dictionary of "conf_matrix" and "labels"')
        counts = data['conf_matrix']
        if not isinstance(counts, np.ndarray):  # of a list of texts any size could be made
            raise MetricError(f'{path}: "conf_matrix" is not an array')
        with errors_as(MetricError, f'{path}: no published confusion matrix', MetricError):
            return ConfusionMatrix(counts, np.asarray(data['labels'], np.int64))


def _list_folders(path: Path) -> list[Path]:
    """Return the folders at or below a path that hold matrices themselves."""
    patterns = (f'*{PICKLE_SUFFIX}', '*.npz')
    found = sorted({file.parent for pattern in patterns for file in path.rglob(pattern)})
    if not found:
        raise MetricError(f'{path} holds neither {" nor ".join(patterns)} files')
    return found


def _read_folder(path: Path) -> dict[str, ConfusionMatrix]:
    found: dict[str, ConfusionMatrix] = {}
    for file in sorted(path.glob(f'*{PICKLE_SUFFIX}')):
        _add(found, _find_scene(file), read_confusion_pickle(file), file)
    for file in sorted(path.glob('*.npz')):
        for scene, matrix in read_confusions(file).items():
            _add(found, scene, matrix, file)
    return found


def _find_scene(path: Path) -> str:
    return path.name.removesuffix(PICKLE_SUFFIX).removesuffix('.pkl')


def _add(
    found: dict[str, ConfusionMatrix], scene: str, matrix: ConfusionMatrix, path: Path
) -> None:
    if scene in found:
        raise MetricError(f'{path}: scene "{scene}" occurs twice in one set; score them apart')
    found[scene] = matrix
