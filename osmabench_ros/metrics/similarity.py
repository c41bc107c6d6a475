"""Similarity of features with text prompts, in chunks on the CPU or on CUDA."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.device import resolve_device, to_tensor
from osmabench_ros.errors import MetricError

if TYPE_CHECKING:
    import torch

_ELEMENTS_PER_CHUNK = 8_000_000


def _scale_rows(vectors: NDArray[np.floating], what: str, device: torch.device) -> torch.Tensor:
    if vectors.ndim != 2:
        raise MetricError(f'{what} have shape {vectors.shape}, expected (N, D)')
    tensor = to_tensor(np.asarray(vectors, np.float32), device)
    lengths = tensor.norm(dim=1, keepdim=True)
    if not bool(lengths.isfinite().all()):
        raise MetricError(f'{what} hold NaN or infinite values')
    # A row of zeros has no direction; it stays zero and is like nothing.
    unit: torch.Tensor = tensor / lengths.clamp_min(1e-12)
    return unit


def _chunks(
    features: NDArray[np.floating], prompts: NDArray[np.floating], device: str
) -> Iterator[tuple[slice, torch.Tensor]]:
    """Yield slices of features with their cosines, shape (n, L)."""
    table = CosineTable(features, prompts, device=device)
    for start in range(0, len(features), table.rows_per_chunk):
        part = slice(start, start + table.rows_per_chunk)
        yield part, table[part]


class CosineTable:
    """Cosines of features with prompts, computed for the rows that are asked for.

    The table of a map with a feature for each of a million points would not fit into memory.

    Parameters
    ----------
    features : ndarray, shape (M, D)
        Of the map.
    prompts : ndarray, shape (L, D)
        Of the words.
    device : str
        'auto', 'cpu' or 'cuda'.

    Raises
    ------
    MetricError
        If the dimensions differ, or a value is not finite.
    """

    def __init__(
        self,
        features: NDArray[np.floating],
        prompts: NDArray[np.floating],
        *,
        device: str = 'auto',
    ) -> None:
        self._device = resolve_device(device)
        _check_dimensions(features, prompts)
        self._features = features
        self._text = _scale_rows(prompts, 'prompts', self._device).T.contiguous()

    @property
    def shape(self) -> tuple[int, int]:
        """Features and prompts."""
        return len(self._features), self._text.shape[1]

    def __getitem__(self, rows: NDArray[np.integer] | slice) -> torch.Tensor:
        """Return the cosines of some features, shape (n, L)."""
        return _scale_rows(self._features[rows], 'features', self._device) @ self._text

    @property
    def rows_per_chunk(self) -> int:
        """Rows that may be asked for at once."""
        return max(1, _ELEMENTS_PER_CHUNK // max(1, self.shape[1]))


def _check_dimensions(features: NDArray[np.floating], prompts: NDArray[np.floating]) -> None:
    if features.ndim == prompts.ndim == 2 and features.shape[1] != prompts.shape[1]:
        raise MetricError(
            f'features have {features.shape[1]} dimensions, prompts {prompts.shape[1]}; '
            'they come from different encoders'
        )


def cosine_similarity(
    features: NDArray[np.floating], prompts: NDArray[np.floating], *, device: str = 'auto'
) -> NDArray[np.float32]:
    """Return the cosines of features (N, D) with prompts (L, D), shape (N, L), in [-1, 1].

    Raises MetricError if the dimensions differ, as they do between encoders, or a value is not
    finite.
    """
    result = np.empty((len(features), len(prompts)), np.float32)
    for part, cosines in _chunks(features, prompts, device):
        result[part] = cosines.cpu().numpy()
    return result


def find_best_prompts(
    features: NDArray[np.floating],
    prompts: NDArray[np.floating],
    n: int,
    *,
    device: str = 'auto',
) -> NDArray[np.int32]:
    """Return the n prompts most like each feature, best first, shape (N, n).

    Equally similar prompts keep their order in the list. The full similarity matrix never exists
    at once, and no more of it is sorted than needed.
    """
    if not 1 <= n <= len(prompts):
        raise MetricError(f'of {len(prompts)} prompts one cannot take the best {n}')
    result = np.empty((len(features), n), np.int32)
    for part, cosines in _chunks(features, prompts, device):
        result[part] = _find_first_best(cosines, n).cpu().numpy()
    return result


def _find_first_best(values: torch.Tensor, n: int) -> torch.Tensor:
    """Return the columns of the n largest values of each row, the first of equal ones first."""
    found = values.topk(min(n + 1, values.shape[1]), dim=1)
    columns = found.indices[:, :n].contiguous()
    # Rows without equal values, which are nearly all, need no stable sort.
    tied = (found.values[:, 1:] == found.values[:, :-1]).any(dim=1)
    if bool(tied.any()):
        order = values[tied].sort(dim=1, descending=True, stable=True).indices
        columns[tied] = order[:, :n]
    return columns


def rank_rows(
    similarity: NDArray[np.floating] | CosineTable,
    rows: NDArray[np.integer],
    wanted: NDArray[np.integer],
) -> NDArray[np.int32]:
    """Return `rank_prompts` of some features, in chunks, shape (len(rows), W)."""
    result = np.empty((len(rows), len(wanted)), np.int32)
    size = max(1, _ELEMENTS_PER_CHUNK // max(1, similarity.shape[1]))
    for start in range(0, len(rows), size):
        part = slice(start, start + size)
        result[part] = rank_prompts(similarity[rows[part]], wanted)
    return result


def rank_prompts(
    similarity: NDArray[np.floating] | torch.Tensor, wanted: NDArray[np.integer]
) -> NDArray[np.int32]:
    """Return the 0-based ranks of some prompts for each feature, shape (N, W).

    A rank is the number of prompts that are more similar, or as similar and earlier in the list;
    so only the wanted ranks are counted and nothing is sorted.

    Parameters
    ----------
    similarity : ndarray or torch.Tensor, shape (N, L)
        Similarities; chunks of it, if it is large.
    wanted : ndarray of int, shape (W,)
        Prompts to rank.
    """
    import torch

    values = similarity if isinstance(similarity, torch.Tensor) else to_tensor(similarity)
    result = np.empty((len(values), len(wanted)), np.int32)
    for column, prompt in enumerate(wanted):
        own = values[:, int(prompt), None]
        ahead = (values > own).sum(dim=1) + (values[:, : int(prompt)] == own).sum(dim=1)
        result[:, column] = ahead.cpu().numpy()
    return result
