"""The data model of map.json, from which its JSON Schema is made, and the files' whole content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, FailFast, Field, model_validator

from osmabench_ros.errors import MapError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import (
    FORMAT,
    MAX_ENTRIES,
    STRICT,
    ArrayForm,
    Count,
    DenseMap,
    FeatureSpace,
    MapHeader,
    Membership,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, graph_from_json, graph_to_json

# Most nodes of a scene graph; each takes about a kilobyte, however short its text is.
MAX_NODES = 200_000
_MAX_CLASSES = 65535
Name = Annotated[str, Field(min_length=1)]
Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
ClassId = Annotated[int, Field(ge=0, le=65534)]
Few = Field(max_length=MAX_ENTRIES)
DensePart = Literal[
    'colors', 'labels', 'instances', 'scores', 'feature_rows', 'valid', 'membership'
]


class _Document(BaseModel):
    model_config = STRICT


class LabelClassDocument(_Document):
    """A class of the label set."""

    id: ClassId
    name: Name
    structure: bool = False


class LabelSetDocument(_Document):
    """Meaning of the class ids."""

    name: str
    classes: Annotated[list[LabelClassDocument], Field(max_length=_MAX_CLASSES), FailFast()]


class FeatureSpaceDocument(_Document):
    """A table of feature vectors: its encoder and its file, float32 of shape (rows, dimension)."""

    name: Name
    model: Name
    pretrained: str = ''
    rows: int = Field(ge=0)
    dimension: int = Field(ge=1)
    normalised: bool = False
    text_comparable: bool = True
    templates: Annotated[list[str], Few] = []
    file: str = Field(pattern=r'^features/[A-Za-z0-9_-]+\.npy$')


class LabelDocument(_Document):
    """A label of a node; score and class id are null if the method gives none."""

    name: Name
    score: float | None = None
    class_id: ClassId | None = None


class BoxDocument(_Document):
    """Axis-aligned box, opposite corners in metres."""

    min: Vector
    max: Vector

    @model_validator(mode='after')
    def _in_order(self) -> BoxDocument:
        if any(low > high for low, high in zip(self.min, self.max, strict=True)):
            raise ValueError(f'min {self.min} exceeds max {self.max}')
        return self


class OrientedBoxDocument(_Document):
    """Oriented box: centre in metres, rotation matrix by rows, full edge lengths in metres."""

    center: Vector
    rotation: Annotated[list[Vector], Field(min_length=3, max_length=3)]
    size: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=3, max_length=3)]


class NodeDocument(_Document):
    """A node of the scene graph."""

    id: int = Field(ge=1, le=2**31 - 1)
    kind: NodeKind = NodeKind.OBJECT
    source_id: str = ''
    parent: int | None = None
    labels: Annotated[list[LabelDocument], Few] = []
    captions: Annotated[list[str], Few] = []
    attributes: Annotated[dict[str, str | float | bool], Few] = {}
    box: BoxDocument | None = None
    oriented_box: OrientedBoxDocument | None = None
    feature_row: int | None = Field(None, ge=0)
    feature_space: str = ''
    observations: Count = 0


class EdgeDocument(_Document):
    """A directed relation: source TYPE target."""

    source: int
    target: int
    type: Name
    text: str = ''
    score: float | None = None


class DenseDocument(_Document):
    """The points in cloud.ply and which parts the method gives for them.

    Colours, labels, instances and scores are properties of cloud.ply (red green blue, label,
    instance, score); feature_rows, valid and membership are arrays in dense/.
    """

    points: int = Field(ge=0)
    parts: Annotated[list[DensePart], Few] = []
    feature_space: str = ''


_NEVER_ASSUMED = ('provenance', 'frame_id', 'stamp_ns', 'complete')


def _check_header(header: Any) -> Any:
    """Refuse a header that lacks a key which has a default only where a program makes the map."""
    if isinstance(header, dict) and (missing := [x for x in _NEVER_ASSUMED if x not in header]):
        raise ValueError(f'lacks {", ".join(missing)}')
    return header


class MapDocument(_Document):
    """map.json of a semantic map."""

    format: Literal['osmabench.semantic_map/1']
    header: Annotated[MapHeader, BeforeValidator(_check_header)]
    label_set: LabelSetDocument | None = None
    feature_spaces: Annotated[list[FeatureSpaceDocument], Few] = []
    nodes: Annotated[list[NodeDocument], Field(max_length=MAX_NODES), FailFast()] = []
    edges: Annotated[list[EdgeDocument], FailFast()] = []
    dense: DenseDocument | None = None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of map.json."""
    schema = MapDocument.model_json_schema()
    schema['$defs']['MapHeader']['required'] = list(_NEVER_ASSUMED)
    return {'$schema': 'https://json-schema.org/draft/2020-12/schema', **schema}


def _read_forms(model: type) -> dict[str, ArrayForm]:
    hints = get_type_hints(model, include_extras=True)
    forms = {name: getattr(hint, '__metadata__', (None,))[0] for name, hint in hints.items()}
    return {name: form for name, form in forms.items() if form is not None}


_DENSE = _read_forms(DenseMap)
_MEMBERSHIP = _read_forms(Membership)
MEMBERSHIP_FILES = tuple(f'dense/membership_{name}.npy' for name in _MEMBERSHIP)


def list_array_forms(document: Mapping[str, Any]) -> dict[str, tuple[Any, tuple[int, ...] | None]]:
    """Return type and shape of each .npy file that map.json names; None: a list of any length."""
    forms: dict[str, tuple[Any, tuple[int, ...] | None]] = {
        space['file']: (np.float32, (space['rows'], space['dimension']))
        for space in document.get('feature_spaces', ())
    }
    dense = document.get('dense') or {}
    for part in dense.get('parts', ()):
        if part == 'membership':
            types = (form.dtype for form in _MEMBERSHIP.values())
            forms |= {
                file: (kind, None) for file, kind in zip(MEMBERSHIP_FILES, types, strict=True)
            }
        elif not _DENSE[part].properties:
            forms[f'dense/{part}.npy'] = (_DENSE[part].dtype, (dense['points'],))
    return forms


def list_cloud_types(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the type of each property of cloud.ply that map.json names."""
    parts = ('points', *document['dense'].get('parts', ()))
    forms = [_DENSE[part] for part in parts if part in _DENSE]
    return {name: form.dtype for form in forms for name in form.properties}


@dataclass(frozen=True, eq=False)
class RawMap:
    """Unchecked content of a map's files: map.json, .npy by name, cloud.ply, extras, poses."""

    document: dict[str, Any]
    arrays: Mapping[str, NDArray[Any]]
    cloud: Mapping[str, NDArray[Any]] | None
    extras: dict[str, Any]
    trajectory: StampedTrajectory | None = None


def make_raw_map(semantic_map: SemanticMap) -> RawMap:
    """Return the files' content of a map; MapError if shapes or frames do not fit."""
    header, graph, dense = semantic_map.header, semantic_map.graph, semantic_map.dense
    if graph.nodes and graph.frame_id != header.frame_id:
        raise MapError(
            f'the scene graph is in frame "{graph.frame_id}", the map in "{header.frame_id}"; '
            'transform the graph into the frame of the map'
        )
    spaces = list(semantic_map.feature_spaces.values())
    files = [f'features/{i}.npy' for i in range(len(spaces))]
    document = {
        'format': FORMAT,
        'header': _header_to_json(header),
        'label_set': semantic_map.label_set and semantic_map.label_set.to_json(),
        'feature_spaces': list(map(_space_to_json, spaces, files)),
        **{key: value for key, value in graph_to_json(graph).items() if key != 'frame_id'},
        'dense': dense
        and {
            'points': len(dense.points),
            'parts': [part for part in get_args(DensePart) if getattr(dense, part) is not None],
            'feature_space': dense.feature_space,
        },
    }
    arrays = {
        file: np.asarray(space.vectors, np.float32)
        for file, space in zip(files, spaces, strict=True)
    }
    return RawMap(
        document,
        arrays | ({} if dense is None else _make_arrays(dense)),
        None if dense is None else make_cloud(dense),
        dict(semantic_map.extras),
        semantic_map.trajectory,
    )


def _header_to_json(header: MapHeader) -> dict[str, Any]:
    origin = header.provenance
    values = {**vars(header), 'provenance': {**vars(origin), 'models': dict(origin.models)}}
    return {key: value for key, value in values.items() if key != 'remark' or value}


def _space_to_json(space: FeatureSpace, file: str) -> dict[str, Any]:
    rows, dimension = space.vectors.shape
    values = {**vars(space), 'rows': rows, 'dimension': dimension, 'file': file}
    return {key: value for key, value in values.items() if key != 'vectors'}


def make_cloud(dense: DenseMap) -> dict[str, NDArray[Any]]:
    """Return the columns of cloud.ply; MapError if the shape of a part does not fit."""
    cloud: dict[str, NDArray[Any]] = {}
    for part, form in _DENSE.items():
        values = getattr(dense, part)
        if values is None or not form.properties:
            continue
        columns = np.asarray(values, form.dtype)
        columns = columns if len(form.properties) > 1 else columns[..., None]
        if columns.shape != (len(dense.points), len(form.properties)):
            raise MapError(
                f'dense.{part} has shape {values.shape}; it must have {len(form.properties)} '
                f'value(s) for each of {len(dense.points)} points'
            )
        cloud |= {name: columns[:, i] for i, name in enumerate(form.properties)}
    return cloud


def _make_arrays(dense: DenseMap) -> dict[str, NDArray[Any]]:
    arrays = {
        f'dense/{part}.npy': np.asarray(getattr(dense, part), form.dtype)
        for part, form in _DENSE.items()
        if not form.properties and getattr(dense, part) is not None
    }
    if dense.membership is not None:
        for file, (name, form) in zip(MEMBERSHIP_FILES, _MEMBERSHIP.items(), strict=True):
            arrays[file] = np.asarray(getattr(dense.membership, name), form.dtype)
    return arrays


def make_semantic_map(raw: RawMap, source: str) -> SemanticMap:
    """Build the map from valid content; `source` is named in errors."""
    document = raw.document
    header = document['header']
    made = MapHeader(**{**header, 'provenance': Provenance(**header['provenance'])})
    spaces = {}
    for space in document.get('feature_spaces', ()):
        values = {k: v for k, v in space.items() if k not in ('rows', 'dimension', 'file')}
        values['templates'] = tuple(space.get('templates', ()))
        spaces[space['name']] = FeatureSpace(vectors=raw.arrays[space['file']], **values)
    label_set = document.get('label_set')
    return SemanticMap(
        made,
        graph_from_json({**document, 'frame_id': made.frame_id}, source),
        _make_dense(document['dense'], raw) if document.get('dense') else None,
        LabelSet.from_json(label_set) if label_set else None,
        spaces,
        raw.extras,
        raw.trajectory and replace(raw.trajectory, frame_id=made.frame_id),
    )


def _make_dense(document: Mapping[str, Any], raw: RawMap) -> DenseMap:
    cloud, values = raw.cloud or {}, dict[str, Any]()
    for part in ('points', *document.get('parts', ())):
        if part == 'membership':
            values[part] = Membership(*(raw.arrays[file] for file in MEMBERSHIP_FILES))
            continue
        columns = [cloud[name] for name in _DENSE[part].properties]
        if not columns:
            values[part] = raw.arrays[f'dense/{part}.npy']
        else:
            values[part] = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    return DenseMap(**values, feature_space=document.get('feature_space', ''))
