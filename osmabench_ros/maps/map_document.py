"""The files of a map: the model of map.json, which gives its JSON Schema, and the arrays."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, BeforeValidator, FailFast, Field

from osmabench_ros.base.strict import STRICT_JSON
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import (
    FORMAT,
    ArrayForm,
    DenseMap,
    FeatureSpace,
    MapHeader,
    Membership,
    SemanticMap,
)
from osmabench_ros.semantics.labels import LabelClass, LabelSet, Name
from osmabench_ros.semantics.scene_graph import Few, FewTexts, SceneEdge, SceneGraph, SceneNode

# Most nodes of a scene graph; each takes about a kilobyte, however short its text is.
MAX_NODES = 200_000
_MAX_CLASSES = 65535
DensePart = Literal[
    'colors', 'labels', 'instances', 'scores', 'feature_rows', 'valid', 'membership'
]
PARTS = get_args(DensePart)


class _Document(BaseModel):
    model_config = STRICT_JSON


class LabelSetDocument(_Document):
    """Meaning of the class ids."""

    name: str
    classes: Annotated[list[LabelClass], Field(max_length=_MAX_CLASSES), FailFast()]


class FeatureSpaceDocument(_Document):
    """A table of feature vectors: its encoder and its file, float32 of shape (rows, dimension)."""

    name: Name
    model: Name
    pretrained: str = ''
    rows: int = Field(ge=0)
    dimension: int = Field(ge=1)
    normalised: bool = False
    text_comparable: bool = True
    templates: FewTexts = ()
    file: str = Field(pattern=r'^features/[A-Za-z0-9_-]+\.npy$')


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
    nodes: Annotated[list[SceneNode], Field(max_length=MAX_NODES), FailFast()] = []
    edges: Annotated[list[SceneEdge], FailFast()] = []
    dense: DenseDocument | None = None

    @property
    def parts(self) -> list[str]:
        """The parts that the points have, without themselves."""
        return [] if self.dense is None else list(self.dense.parts)

    def to_json(self) -> dict[str, Any]:
        """Return the content of map.json."""
        unset = {'header': {'remark'}} if not self.header.remark else None
        return self.model_dump(exclude=unset, warnings=False)


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema (2020-12) of map.json."""
    schema = MapDocument.model_json_schema()
    schema['$defs']['MapHeader']['required'] = list(_NEVER_ASSUMED)
    return {'$schema': 'https://json-schema.org/draft/2020-12/schema', **schema}


CLOUD = 'cloud.ply'


class Column(NamedTuple):
    """An array of a map: its file, and its property there if that is cloud.ply, else ''."""

    file: str
    name: str = ''


def _read_forms(model: type) -> dict[str, ArrayForm]:
    hints = get_type_hints(model, include_extras=True)
    forms = {name: getattr(hint, '__metadata__', (None,))[0] for name, hint in hints.items()}
    return {name: form for name, form in forms.items() if form is not None}


_FORMS = _read_forms(DenseMap)
_MEMBERSHIP = _read_forms(Membership)
# Columns and element types of each part of the points.
COLUMNS: dict[str, dict[Column, Any]] = {
    **{
        part: {Column(CLOUD, name): form.dtype for name in form.properties}
        or {Column(f'dense/{part}.npy'): form.dtype}
        for part, form in _FORMS.items()
    },
    'membership': {
        Column(f'dense/membership_{name}.npy'): form.dtype for name, form in _MEMBERSHIP.items()
    },
}


def list_columns(document: MapDocument) -> dict[Column, tuple[Any, tuple[int, ...] | None]]:
    """Return type and shape of each array that map.json names; None: a list of any length."""
    forms: dict[Column, tuple[Any, tuple[int, ...] | None]] = {
        Column(space.file): (np.float32, (space.rows, space.dimension))
        for space in document.feature_spaces
    }
    if document.dense is not None:
        for part in ('points', *document.parts):
            shape = None if part == 'membership' else (document.dense.points,)
            forms |= {column: (dtype, shape) for column, dtype in COLUMNS[part].items()}
    return forms


@dataclass(frozen=True, eq=False)
class RawMap:
    """Content of a map's files: map.json in the right form, arrays, extras, poses."""

    document: MapDocument
    arrays: Mapping[Column, NDArray[Any]]
    extras: dict[str, Any]
    trajectory: StampedTrajectory | None = None


def make_raw_map(semantic_map: SemanticMap) -> RawMap:
    """Return the files' content of a map; MapError if shapes or frames do not fit."""
    header = semantic_map.header
    graph = semantic_map.graph
    dense = semantic_map.dense
    if graph.nodes and graph.frame_id != header.frame_id:
        frames = f'in frame "{graph.frame_id}", the map in "{header.frame_id}"'
        raise MapError(f'the scene graph is {frames}; transform it')
    known, arrays = semantic_map.label_set, dict[Column, NDArray[Any]]()
    spaces = []
    for number, space in enumerate(semantic_map.feature_spaces.values()):
        file, (rows, dimension) = f'features/{number}.npy', space.vectors.shape
        values = {key: value for key, value in vars(space).items() if key != 'vectors'}
        spaces.append(
            FeatureSpaceDocument.model_construct(
                **values, rows=rows, dimension=dimension, file=file
            )
        )
        arrays[Column(file)] = np.asarray(space.vectors, np.float32)
    document = MapDocument.model_construct(
        format=FORMAT,
        header=header,
        label_set=None
        if known is None
        else LabelSetDocument.model_construct(name=known.name, classes=list(known.classes)),
        feature_spaces=spaces,
        nodes=list(graph.nodes),
        edges=list(graph.edges),
        dense=None
        if dense is None
        else DenseDocument.model_construct(
            points=len(dense.points),
            parts=[part for part in PARTS if getattr(dense, part) is not None],
            feature_space=dense.feature_space,
        ),
    )
    arrays |= {} if dense is None else make_columns(dense)
    return RawMap(document, arrays, dict(semantic_map.extras), semantic_map.trajectory)


def make_columns(dense: DenseMap) -> dict[Column, NDArray[Any]]:
    """Return the columns of points; MapError if the shape of a part does not fit."""
    made: dict[Column, NDArray[Any]] = {}
    for part, columns in COLUMNS.items():
        values = getattr(dense, part)
        if values is not None:
            arrays = _split(part, values, len(dense.points))
            for (column, dtype), array in zip(columns.items(), arrays, strict=True):
                made[column] = np.asarray(array, dtype)
    return made


def _split(part: str, values: Any, count: int) -> list[NDArray[Any]]:
    """Return the columns of a part of the points."""
    if part == 'membership':
        return [getattr(values, name) for name in _MEMBERSHIP]
    width = len(COLUMNS[part])
    if values.shape != ((count, width) if width > 1 else (count,)):
        wanted = f'{width} value(s) for each of {count} points'
        raise MapError(f'dense.{part} has shape {values.shape}; it must have {wanted}')
    return list(values.T) if width > 1 else [values]


def make_semantic_map(raw: RawMap) -> SemanticMap:
    """Build the map from valid content."""
    document, header = raw.document, raw.document.header
    known, spaces = document.label_set, dict[str, FeatureSpace]()
    for item in document.feature_spaces:
        values = {k: v for k, v in vars(item).items() if k not in ('rows', 'dimension', 'file')}
        spaces[item.name] = FeatureSpace(vectors=raw.arrays[Column(item.file)], **values)
    return SemanticMap(
        header,
        SceneGraph(tuple(document.nodes), tuple(document.edges), header.frame_id),
        None if document.dense is None else _make_dense(document.dense, raw.arrays),
        None if known is None else LabelSet(known.name, tuple(known.classes)),
        spaces,
        raw.extras,
        raw.trajectory and replace(raw.trajectory, frame_id=header.frame_id),
    )


def _make_dense(document: DenseDocument, arrays: Mapping[Column, NDArray[Any]]) -> DenseMap:
    values: dict[str, Any] = {}
    for part in ('points', *document.parts):
        columns = [arrays[column] for column in COLUMNS[part]]
        if part == 'membership':
            values[part] = Membership(*columns)
        else:
            values[part] = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    return DenseMap(**values, feature_space=document.feature_space)
