"""The content of a map's files: a JSON document, arrays, columns of the cloud."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import (
    FORMAT,
    DenseMap,
    FeatureSpace,
    MapHeader,
    Membership,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.graph_json import graph_from_json, graph_to_json
from osmabench_ros.semantics.labels import LabelSet

COORDINATES = ('x', 'y', 'z')
CHANNELS = ('red', 'green', 'blue')
CLOUD_SCALARS = {'labels': 'label', 'instances': 'instance', 'scores': 'score'}
"""Part of the dense map -> property of cloud.ply."""
MEMBERSHIP_ARRAYS = ('node_ids', 'offsets', 'point_indices')
PART_TYPES: dict[str, Any] = {
    'colors': np.uint8, 'labels': np.int32, 'instances': np.int32, 'scores': np.float32,
    'feature_rows': np.int32, 'valid': np.bool_,
    'node_ids': np.int32, 'offsets': np.int64, 'point_indices': np.int64,
}  # fmt: skip
"""Element type of every array of a dense map."""


@dataclass(frozen=True, eq=False)
class RawMap:
    """Unchecked content of a map's files: map.json, .npy by name, cloud.ply, extras, poses."""

    document: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    cloud: Mapping[str, NDArray[Any]] | None
    extras: dict[str, Any]
    trajectory: StampedTrajectory | None = None


def array_names(document: Mapping[str, Any]) -> list[str]:
    """Return the .npy files that a valid map.json names."""
    names = [str(space['file']) for space in document.get('feature_spaces', ())]
    parts = (document.get('dense') or {}).get('parts', ())
    names += [f'dense/{part}.npy' for part in ('feature_rows', 'valid') if part in parts]
    if 'membership' in parts:
        names += [f'dense/membership_{name}.npy' for name in MEMBERSHIP_ARRAYS]
    return names


def raw_map_of(semantic_map: SemanticMap) -> RawMap:
    """Return the files' content of a map; MapError if shapes or frames do not fit."""
    header, graph = semantic_map.header, semantic_map.graph
    if graph.nodes and graph.frame_id != header.frame_id:
        raise MapError(
            f'the scene graph is in frame "{graph.frame_id}", the map in "{header.frame_id}"; '
            'transform the graph into the frame of the map'
        )
    arrays: dict[str, NDArray[Any]] = {}
    document = {
        'format': FORMAT,
        'header': _header_to_json(header),
        'label_set': None if semantic_map.label_set is None else semantic_map.label_set.to_json(),
        'feature_spaces': [
            _space_to_json(space, arrays) for space in semantic_map.feature_spaces.values()
        ],
        **{key: value for key, value in graph_to_json(graph).items() if key != 'frame_id'},
        'dense': None
        if semantic_map.dense is None
        else _dense_to_json(semantic_map.dense, arrays),
    }
    cloud = None if semantic_map.dense is None else _cloud_of(semantic_map.dense)
    return RawMap(document, arrays, cloud, dict(semantic_map.extras), semantic_map.trajectory)


def semantic_map_of(raw: RawMap, source: str) -> SemanticMap:
    """Build the map from valid content; `source` is named in errors."""
    document = raw.document
    header = document['header']
    made = MapHeader(**{**header, 'provenance': Provenance(**header['provenance'])})
    graph = graph_from_json({**document, 'frame_id': header['frame_id']}, source)
    spaces = {}
    for space in document.get('feature_spaces', ()):
        keys = ('name', 'model', 'pretrained', 'normalised', 'text_comparable')
        spaces[space['name']] = FeatureSpace(
            vectors=raw.arrays[space['file']],
            templates=tuple(space.get('templates', ())),
            **{key: space[key] for key in keys if key in space},
        )
    label_set = document.get('label_set')
    return SemanticMap(
        made,
        graph,
        _dense_of(document['dense'], raw) if document.get('dense') else None,
        LabelSet.from_json(label_set) if label_set else None,
        spaces,
        raw.extras,
        raw.trajectory and replace(raw.trajectory, frame_id=made.frame_id),
    )


def _header_to_json(header: MapHeader) -> dict[str, Any]:
    provenance = header.provenance
    return {
        'frame_id': header.frame_id,
        'stamp_ns': int(header.stamp_ns),
        'complete': bool(header.complete),
        **({'remark': header.remark} if header.remark else {}),
        'provenance': {
            'method': provenance.method,
            'method_version': provenance.method_version,
            'models': dict(sorted(provenance.models.items())),
            'scene': provenance.scene,
            'condition': provenance.condition,
            'frames_used': int(provenance.frames_used),
            'source_sha256': provenance.source_sha256,
        },
    }


def _space_to_json(space: FeatureSpace, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    file = f'features/{len(arrays)}.npy'
    arrays[file] = np.asarray(space.vectors, np.float32)
    return {
        'name': space.name,
        'model': space.model,
        'pretrained': space.pretrained,
        'rows': len(space.vectors),
        'dimension': space.vectors.shape[1],
        'normalised': bool(space.normalised),
        'text_comparable': bool(space.text_comparable),
        'templates': list(space.templates),
        'file': file,
    }


def _dense_to_json(dense: DenseMap, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    for part in ('feature_rows', 'valid'):
        values = getattr(dense, part)
        if values is not None:
            arrays[f'dense/{part}.npy'] = np.asarray(values, PART_TYPES[part])
    if dense.membership is not None:
        for name in MEMBERSHIP_ARRAYS:
            values = np.asarray(getattr(dense.membership, name), PART_TYPES[name])
            arrays[f'dense/membership_{name}.npy'] = values
    parts = (*PART_TYPES, 'membership')
    given = [part for part in parts if getattr(dense, part, None) is not None]
    return {'points': len(dense.points), 'parts': given, 'feature_space': dense.feature_space}


def _cloud_of(dense: DenseMap) -> dict[str, NDArray[Any]]:
    points = np.asarray(dense.points, np.float32)
    if points.ndim != 2 or points.shape[1] != 3:
        raise MapError(f'dense.points has shape {points.shape}; it must be (N, 3)')
    cloud: dict[str, NDArray[Any]] = {name: points[:, i] for i, name in enumerate(COORDINATES)}
    if dense.colors is not None:
        if dense.colors.shape != points.shape:
            raise MapError(f'dense.colors has shape {dense.colors.shape}, not {points.shape}')
        cloud |= {name: dense.colors[:, i] for i, name in enumerate(CHANNELS)}
    for part, name in CLOUD_SCALARS.items():
        values = getattr(dense, part)
        if values is not None:
            cloud[name] = np.asarray(values, PART_TYPES[part])
            if cloud[name].shape != (len(points),):
                raise MapError(f'dense.{part} has shape {values.shape}, not ({len(points)},)')
    return cloud


def _dense_of(document: Mapping[str, Any], raw: RawMap) -> DenseMap:
    cloud, parts = raw.cloud or {}, document.get('parts', ())

    def column(part: str) -> NDArray[Any] | None:
        return cloud[CLOUD_SCALARS[part]] if part in parts else None

    return DenseMap(
        points=np.stack([cloud[name] for name in COORDINATES], axis=1),
        colors=np.stack([cloud[name] for name in CHANNELS], axis=1) if 'colors' in parts else None,
        labels=column('labels'),
        instances=column('instances'),
        scores=column('scores'),
        feature_rows=raw.arrays.get('dense/feature_rows.npy'),
        feature_space=document.get('feature_space', ''),
        valid=raw.arrays.get('dense/valid.npy'),
        membership=Membership(
            *(raw.arrays[f'dense/membership_{name}.npy'] for name in MEMBERSHIP_ARRAYS)
        )
        if 'membership' in parts
        else None,
    )
