"""The data model of map.json; the JSON Schema in config/ is made from it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    ValidationInfo,
    model_validator,
)

from osmabench_ros.semantics.scene_graph import NodeKind

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
