"""Open vocabulary: pretrained networks see, geometry and features keep objects apart.

Two ways: objects of masks and their features, as ConceptGraphs (Gu et al., ICRA 2024) builds its
map, or points with the labels of a network with fixed classes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator
from scipy.special import softmax

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.bundled import BundledMapper, map_of_instances
from osmabench_ros.mappers.fusion import VoxelFusion
from osmabench_ros.mappers.nodes import NodeBuilder, rows_by
from osmabench_ros.mappers.open_vocabulary.association import (
    MAX_DEPTH_M,
    VOXEL_M,
    AssociationOptions,
    Detections,
    MappedObject,
    ObjectMap,
    joined_cells,
    lift,
)
from osmabench_ros.mappers.open_vocabulary.features import (
    DeviceOptions,
    FeatureOptions,
    NetworkSource,
    Runtime,
    make_encoder,
    mask_features,
)
from osmabench_ros.mappers.open_vocabulary.masks import SemanticNetwork, mask_finder
from osmabench_ros.maps.labelling import average_text_features
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    SemanticMap,
)
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneNode

NAME = 'open_vocabulary'
# Masks with fewer pixels are left out; as in the code of ConceptGraphs.
MIN_MASK_PIXELS = 25

# Feature space of the objects.
SPACE = 'objects'


class OpenVocabularyOptions(Strict):
    """Options of the mapper.

    Parameters
    ----------
    masks, features : NetworkSource
        What finds masks, and what gives each a feature: name (or folder) and revision.
    detector : NetworkSource, optional
        What finds boxes by text (Grounding DINO, OWL), for which `masks` then finds masks.
    prompts : tuple of str
        Prompts of the detector; the classes of the scene by default.
    min_confidence : float
        Of a box of the detector, or of a segment of Mask2Former.
    templates : tuple of str
        Sentences by which class names are compared with features, averaged.
    segmentation : NetworkSource, optional
        With it, points get the labels of this network, and there are no objects.
    names : mapping of str to str
        For `segmentation`: class of the scene by class of the network, where spelt differently.
    pictures, device, association : sections
        See `FeatureOptions`, `DeviceOptions`, `AssociationOptions`.
    rooms : bool
        Add room nodes, found in the floor plan, and make them parents of the objects.
    """

    masks: NetworkSource = NetworkSource(name='facebook/sam2.1-hiera-large')
    features: NetworkSource = NetworkSource(name='laion/CLIP-ViT-H-14-laion2B-s32B-b79K')
    detector: NetworkSource | None = None
    prompts: tuple[str, ...] = ()
    min_confidence: float = Field(0.3, ge=0, le=1)
    templates: tuple[str, ...] = Field(('an image of {}',), min_length=1)
    segmentation: NetworkSource | None = None
    names: dict[str, str] = Field(default_factory=dict)
    pictures: FeatureOptions = FeatureOptions()
    device: DeviceOptions = DeviceOptions()
    association: AssociationOptions = AssociationOptions()
    rooms: bool = True

    @model_validator(mode='after')
    def _belongs_together(self) -> OpenVocabularyOptions:
        if self.prompts and self.detector is None:
            raise ValueError('prompts need a detector')
        if self.names and self.segmentation is None:
            raise ValueError('names need segmentation')
        return self


class _Way(Protocol):
    """The mapping pipeline, with its networks loaded."""

    models: dict[str, str]

    def integrate(self, frame: Frame) -> None: ...

    def semantic_map(self, header: MapHeader) -> SemanticMap: ...


class OpenVocabularyMapper(BundledMapper):
    """Maps what pretrained networks see; the first frame waits until they are loaded."""

    name = NAME

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        super().__init__(label_set, seed)
        self.options = validated(OpenVocabularyOptions, options, f'mapper "{self.name}"')
        self._way: _Way | None = None

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map; ConfigError if a network cannot be loaded for the first."""
        if self._way is None:
            self._way = self._loaded()
        self._way.integrate(frame)
        self.count(frame)

    def _loaded(self) -> _Way:
        with shown_progress() as progress:
            runtime = Runtime(self.options.device)
            progress(f'the first frame waits for the networks ({runtime.device})', 0.0)
            kind = NetworkObjects if self.options.segmentation is None else LabelledPoints
            way: _Way = kind(self.options, self.label_set, runtime)
            loaded = ', '.join(f'{role} {name}' for role, name in way.models.items())
            progress(f'networks are loaded: {loaded}', 1.0)
        return way

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        models = {} if self._way is None else self._way.models
        header = self.header(final=final, models=MappingProxyType(dict(models)))
        if self._way is None:
            return SemanticMap(header, label_set=self.label_set)
        return self._way.semantic_map(header)


class NetworkObjects:
    """Objects of the masks and features of networks."""

    def __init__(
        self, options: OpenVocabularyOptions, label_set: LabelSet, runtime: Runtime
    ) -> None:
        self._options, self._label_set = options, label_set
        names = tuple(item.name for item in label_set.classes)
        self._finder = mask_finder(
            options.masks,
            options.detector,
            options.prompts or names,
            options.min_confidence,
            runtime,
        )
        self._encoder = make_encoder(options.features, runtime)
        self._objects = ObjectMap(options.association)
        sentences = [[item.replace('{}', name) for name in names] for item in options.templates]
        self._text = average_text_features(
            np.stack([self._encoder.texts(texts) for texts in sentences])
        )
        features = f'{self._encoder.model}@{self._encoder.revision}'
        self.models = {**self._finder.models, 'features': features}

    def integrate(self, frame: Frame) -> None:
        """Find masks, give them features, and join them with the objects so far."""
        found = self._finder.find(frame.color)
        large = found.masks.sum(axis=(1, 2)) >= MIN_MASK_PIXELS
        rows = np.flatnonzero(large)
        if not len(rows):
            self._objects.add([])
            return
        masks = found.masks[rows]
        features = mask_features(frame.color, masks, self._encoder, self._options.pictures)
        names = tuple(found.names[row] for row in rows)
        detections = Detections(masks, features, found.confidences[rows], names)
        self._objects.add(lift(frame, detections))

    def semantic_map(self, header: MapHeader) -> SemanticMap:
        """Return the objects, named by the detector or else by their features."""
        space = FeatureSpace(
            SPACE,
            np.zeros((0, 0), np.float32),
            self._encoder.model,
            self._encoder.pretrained,
            normalised=True,
            templates=self._options.templates,
        )
        return map_of_objects(
            self._objects.objects(),
            header,
            self._label_set,
            space,
            class_text=self._text,
            scale=self._encoder.scale,
            rooms=self._options.rooms,
        )


def map_of_objects(
    objects: Sequence[MappedObject],
    header: MapHeader,
    label_set: LabelSet,
    space: FeatureSpace,
    *,
    class_text: NDArray[np.floating],
    scale: float,
    rooms: bool,
) -> SemanticMap:
    """Return a map of objects, the most detected first.

    Parameters
    ----------
    objects : sequence of MappedObject
        The contents of the map.
    header : MapHeader
        Of the map.
    label_set : LabelSet
        Classes that objects are named by.
    space : FeatureSpace
        Encoder of the features; its vectors are replaced.
    class_text : ndarray, shape (C, D)
        Text feature of each class, of length 1.
    scale : float
        Factor of the cosines in the softmax that shares an object among the classes, as in
        CLIP's zero-shot classification (Radford et al., ICML 2021, section 3.1.2). Objects that
        a detector named are shared by the confidences of their names instead.
    rooms : bool
        Whether to add rooms.
    """
    if not objects:
        return SemanticMap(header, label_set=label_set)
    ordered = sorted(objects, key=lambda item: -item.detections)
    vectors = np.stack([item.direction for item in ordered]).astype(np.float32)
    cells = joined_cells(ordered)
    builder = NodeBuilder(cells, label_set)
    rows_of = rows_by(cells.segments)
    nodes: list[SceneNode] = []
    for row, item in enumerate(ordered):
        votes = _named(item.votes, label_set)
        if not votes.any():
            votes = softmax(scale * (class_text @ vectors[row]))
        node = builder.node(row + 1, rows_of[row], votes, item.detections)
        nodes.append(replace(node, feature_row=row, feature_space=SPACE))
    classes = np.array([node.class_id for node in nodes], np.int32)[cells.segments]
    scores = np.array([node.labels[0].score for node in nodes])[cells.segments]
    instances = (cells.segments + 1).astype(np.int32)
    made = map_of_instances(
        header, label_set, cells, nodes, classes, instances, scores, rooms=rooms
    )
    assert made.dense is not None
    rows = cells.segments.astype(np.int32)
    dense = replace(made.dense, feature_rows=rows, feature_space=SPACE)
    spaces = MappingProxyType({SPACE: replace(space, vectors=vectors)})
    return replace(made, dense=dense, feature_spaces=spaces)


def _named(votes: Mapping[str, float], label_set: LabelSet) -> NDArray[np.float64]:
    """Return the votes (C,) of the names that are classes."""
    shares = np.zeros(len(label_set.classes))
    for name, weight in votes.items():
        class_id = label_set.id_of(name)
        if class_id != UNLABELLED:
            shares[np.searchsorted(label_set.ids, class_id)] += weight
    return shares


class LabelledPoints:
    """Points with the labels of a network with fixed classes."""

    def __init__(
        self, options: OpenVocabularyOptions, label_set: LabelSet, runtime: Runtime
    ) -> None:
        assert options.segmentation is not None
        self._label_set = label_set
        self._network = SemanticNetwork(options.segmentation, label_set, options.names, runtime)
        self._fusion = VoxelFusion(VOXEL_M)
        self.models = self._network.models

    def integrate(self, frame: Frame) -> None:
        """Label the pixels and fuse them."""
        used = frame.valid & (frame.depth_m <= MAX_DEPTH_M)
        labels = self._network.label(frame.color)[used]
        # Classes become small numbers, since a voxel grid holds few; the last is for none.
        known = labels != UNLABELLED
        rows = np.full(len(labels), len(self._label_set.classes))
        rows[known] = np.searchsorted(self._label_set.ids, labels[known])
        self._fusion.add(frame.world_points(used), frame.color[used], rows)

    def semantic_map(self, header: MapHeader) -> SemanticMap:
        """Return a point per voxel, with the class that most of its pixels got."""
        cells = self._fusion.cells()
        nameless = cells.segments == len(self._label_set.classes)
        winners = cells.winner_rows(abstaining=nameless)
        shares = cells.vote_shares()[winners]
        kept = cells.select(winners)
        return SemanticMap(
            header,
            dense=DenseMap(
                kept.points,
                kept.colors,
                labels=np.append(self._label_set.ids, UNLABELLED).astype(np.int32)[kept.segments],
                scores=shares.astype(np.float32),
            ),
            label_set=self._label_set,
        )
