"""The data model of map.json, from which its JSON Schema is made, and the files' whole content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

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
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, graph_from_json, graph_to_json

MAX_NODES = 200_000
"""Most nodes of a scene graph; each takes about a kilobyte, however short its text is."""
MAX_FORM_FAULTS = 1000
_MAX_ENTRIES = 1000
_MAX_CLASSES = 65535
_MAX_STAMP_NS = 2**63 - 1
_MAX_COUNT = 2**31 - 1
Vector = Annotated[list[float], Field(min_length=3, max_length=3)]
ClassId = Annotated[int, Field(ge=0, le=65534)]
DensePart = Literal[
    'colors', 'labels', 'instances', 'scores', 'feature_rows', 'valid', 'membership'
]


class _Part(BaseModel):
    model_config = ConfigDict(extra='forbid', strict=True, allow_inf_nan=False)


class TooManyFaultsError(Exception):
    """There are too many faults to list in memory."""


class _Item(_Part):
    """An item of a long list, whose faults are counted."""

    @model_validator(mode='wrap')
    @classmethod
    def _counted(
        cls, value: Any, handler: ModelWrapValidatorHandler[Any], info: ValidationInfo
    ) -> Any:
        try:
            return handler(value)
        except ValidationError as error:
            counted = {} if info.context is None else info.context
            counted['faults'] = counted.get('faults', 0) + error.error_count()
            if counted['faults'] > MAX_FORM_FAULTS:
                raise TooManyFaultsError from error
            raise


class ProvenanceDocument(_Part):
    """Origin of the map; empty and 0 mean unknown."""

    method: str = Field(min_length=1)
    method_version: str = ''
    models: Annotated[dict[str, str], Field(max_length=_MAX_ENTRIES)] = {}
    scene: str = ''
    condition: str = ''
    frames_used: int = Field(0, ge=0, le=_MAX_COUNT)
    source_sha256: str = Field('', pattern='^([0-9a-f]{64})?$')


class HeaderDocument(_Part):
    """Frame of all coordinates (z up, metres), time of the newest frame, completeness and why."""

    frame_id: str = Field(min_length=1)
    stamp_ns: int = Field(ge=0, le=_MAX_STAMP_NS)
    complete: bool
    remark: str = ''
    provenance: ProvenanceDocument


class LabelClassDocument(_Item):
    """A class of the label set."""

    id: ClassId
    name: str = Field(min_length=1)
    structure: bool = False


class LabelSetDocument(_Part):
    """Meaning of the class ids."""

    name: str
    classes: Annotated[list[LabelClassDocument], Field(max_length=_MAX_CLASSES)]


class FeatureSpaceDocument(_Part):
    """A table of feature vectors: its encoder and its file, float32 of shape (rows, dimension)."""

    name: str = Field(min_length=1)
    model: str = Field(min_length=1)
    pretrained: str = ''
    rows: int = Field(ge=0)
    dimension: int = Field(ge=1)
    normalised: bool = False
    text_comparable: bool = True
    templates: Annotated[list[str], Field(max_length=_MAX_ENTRIES)] = []
    file: str = Field(pattern=r'^features/[A-Za-z0-9_-]+\.npy$')


class LabelDocument(_Part):
    """A label of a node; score and class id are null if the method gives none."""

    name: str = Field(min_length=1)
    score: float | None = None
    class_id: ClassId | None = None


class BoxDocument(_Part):
    """Axis-aligned box, opposite corners in metres."""

    min: Vector
    max: Vector

    @model_validator(mode='after')
    def _in_order(self) -> BoxDocument:
        if any(low > high for low, high in zip(self.min, self.max, strict=True)):
            raise ValueError(f'min {self.min} exceeds max {self.max}')
        return self


class OrientedBoxDocument(_Part):
    """Oriented box: centre in metres, rotation matrix by rows, full edge lengths in metres."""

    center: Vector
    rotation: Annotated[list[Vector], Field(min_length=3, max_length=3)]
    size: Annotated[list[Annotated[float, Field(ge=0)]], Field(min_length=3, max_length=3)]


class NodeDocument(_Item):
    """A node of the scene graph."""

    id: int = Field(ge=1, le=2**31 - 1)
    kind: NodeKind = NodeKind.OBJECT
    source_id: str = ''
    parent: int | None = None
    labels: Annotated[list[LabelDocument], Field(max_length=_MAX_ENTRIES)] = []
    captions: Annotated[list[str], Field(max_length=_MAX_ENTRIES)] = []
    attributes: Annotated[dict[str, str | float | bool], Field(max_length=_MAX_ENTRIES)] = {}
    box: BoxDocument | None = None
    oriented_box: OrientedBoxDocument | None = None
    feature_row: int | None = Field(None, ge=0)
    feature_space: str = ''
    observations: int = Field(0, ge=0, le=_MAX_COUNT)


class EdgeDocument(_Item):
    """A directed relation: source TYPE target."""

    source: int
    target: int
    type: str = Field(min_length=1)
    text: str = ''
    score: float | None = None


class DenseDocument(_Part):
    """The points in cloud.ply and which parts the method gives for them.

    Colours, labels, instances and scores are properties of cloud.ply (red green blue, label,
    instance, score); feature_rows, valid and membership are arrays in dense/.
    """

    points: int = Field(ge=0)
    parts: Annotated[list[DensePart], Field(max_length=_MAX_ENTRIES)] = []
    feature_space: str = ''


class MapDocument(_Part):
    """map.json of a semantic map."""

    format: Literal['osmabench.semantic_map/1']
    header: HeaderDocument
    label_set: LabelSetDocument | None = None
    feature_spaces: Annotated[list[FeatureSpaceDocument], Field(max_length=_MAX_ENTRIES)] = []
    nodes: Annotated[list[NodeDocument], Field(max_length=MAX_NODES)] = []
    edges: list[EdgeDocument] = []
    dense: DenseDocument | None = None


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of map.json."""
    return {
        '$schema': 'https://json-schema.org/draft/2020-12/schema',
        **MapDocument.model_json_schema(),
    }


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
    cloud = None if semantic_map.dense is None else cloud_of(semantic_map.dense)
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
            **vars(provenance),
            'models': dict(sorted(provenance.models.items())),
            'frames_used': int(provenance.frames_used),
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


def cloud_of(dense: DenseMap) -> dict[str, NDArray[Any]]:
    """Return the columns of cloud.ply; MapError if the shape of a part does not fit."""
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
