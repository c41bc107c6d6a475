"""Class prototypes of region descriptors: how they are read and compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.appearance.descriptors import FEATURES
from osmabench_ros.semantics.labels import LabelSet, normalised_name

FORMAT = 'osmabench.appearance_prototypes/1'


@dataclass(frozen=True, eq=False)
class Prototypes:
    """Typical regions of each class.

    Parameters
    ----------
    names : tuple of str
        Class name of each prototype.
    centers : ndarray of float64, shape (P, F)
        Descriptors, in units of `scale`.
    scale : ndarray of float64, shape (F,)
        Spread of each feature within a prototype.
    shares : ndarray of float64, shape (P,)
        Share of the learnt surface that each stands for; they sum to 1.
    provenance : mapping
        Scene, seeds and condition they were learnt from.
    """

    names: tuple[str, ...]
    centers: NDArray[np.float64]
    scale: NDArray[np.float64]
    shares: NDArray[np.float64]
    provenance: Mapping[str, Any]

    def for_label_set(self, label_set: LabelSet) -> tuple[Prototypes, NDArray[np.int32]]:
        """Return the prototypes whose class the label set has, and their class ids."""
        known = np.array([name in label_set.by_name for name in self.names], np.bool_)
        if not known.any():
            raise ConfigError(
                f'mapper "appearance" knows none of the classes of label set "{label_set.name}"; '
                'learn prototypes with classes of these names and set the option "prototypes"'
            )
        names = tuple(name for name, keep in zip(self.names, known, strict=True) if keep)
        shares = self.shares[known] / self.shares[known].sum()
        kept = Prototypes(names, self.centers[known], self.scale, shares, self.provenance)
        return kept, np.array([label_set.id_of(name) for name in names], np.int32)

    def posterior(self, descriptors: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the probability (R, P) of each prototype, a Gaussian, for descriptors (R, F)."""
        scaled = descriptors / self.scale
        squared = (
            (scaled**2).sum(axis=1)[:, None]
            + (self.centers**2).sum(axis=1)
            - 2 * scaled @ self.centers.T
        )
        logits = np.log(self.shares) - squared / 2
        logits -= logits.max(axis=1, keepdims=True)
        weights = np.exp(logits)
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def read_prototypes(path: Path) -> Prototypes:
    """Read prototypes from JSON; ConfigError names the file if it is for other features."""
    try:
        data = read_json(path, ConfigError)
        if data['format'] != FORMAT or tuple(data['features']) != FEATURES:
            raise ConfigError(
                f'{path}: made for other features than this version uses; learn the prototypes '
                'again with benchmarks/learn_prototypes.py of the source'
            )
        items = data['prototypes']
        shares = np.array([item['share'] for item in items], np.float64)
        result = Prototypes(
            tuple(normalised_name(item['class']) for item in items),
            np.array([item['center'] for item in items], np.float64),
            np.array(data['scale'], np.float64),
            shares / shares.sum(),
            data['provenance'],
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ConfigError(f'{path}: not a file of prototypes: {error!r}') from error
    if result.centers.shape != (len(items), len(FEATURES)) or not (result.scale > 0).all():
        raise ConfigError(f'{path}: prototypes do not have {len(FEATURES)} features and scales')
    return result
