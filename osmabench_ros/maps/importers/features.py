"""Feature spaces of imported maps: which encoder, which rows, which are of unit length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.source_model import Method, SourceObject
from osmabench_ros.maps.semantic_map import FeatureSpace


def feature_spaces(
    method: Method, options: ImportOptions, objects: Sequence[SourceObject]
) -> tuple[dict[str, tuple[str, int | None]], dict[str, FeatureSpace]]:
    """Return (space, row) of each object and the feature spaces.

    An object with features in several spaces refers to the first one of the method; where the
    others' rows belong is their order: one row an object that has such a feature.
    """
    rows: dict[str, tuple[str, int | None]] = {}
    spaces: dict[str, FeatureSpace] = {}
    for name in method.encoders:
        owners = [item for item in objects if name in item.features]
        vectors = [np.asarray(item.features[name], np.float32).ravel() for item in owners]
        if not vectors:
            continue
        spaces[name] = feature_space(method, options, name, _stacked(method, name, vectors))
        for row, item in enumerate(owners):
            rows.setdefault(item.source_id, (name, row))
    return rows, spaces


def _stacked(
    method: Method, name: str, vectors: Sequence[NDArray[np.float32]]
) -> NDArray[np.float32]:
    lengths = {len(vector) for vector in vectors}
    if len(lengths) > 1:
        raise MapError(f'{method.name}: {name} features have different lengths: {sorted(lengths)}')
    return np.stack(vectors)


def feature_space(
    method: Method, options: ImportOptions, name: str, vectors: NDArray[np.floating]
) -> FeatureSpace:
    """Return a feature space with the method's encoder, or the one that the options name.

    Raises
    ------
    MapError
        If a feature is NaN or infinite.
    """
    vectors = np.ascontiguousarray(vectors, np.float32)
    if not np.isfinite(vectors).all():
        row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
        raise MapError(f'{method.name}: {name} feature {row} is NaN or infinite')
    encoder = method.encoders[name]
    first = name == next(iter(method.encoders))
    comparable = options.text_comparable
    length = np.linalg.norm(vectors, axis=1)
    return FeatureSpace(
        name,
        vectors,
        (options.feature_model if first else '') or encoder.model,
        (options.feature_pretrained if first else '') or encoder.pretrained,
        bool(len(vectors)) and bool((np.abs(length - 1) < 1e-3).all()),
        encoder.text_comparable if comparable is None or not first else comparable,
        encoder.templates,
    )
