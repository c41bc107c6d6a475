"""Open vocabulary: pretrained networks see, geometry and features keep objects apart.

Two ways: objects of masks and their features, as ConceptGraphs (Gu et al., ICRA 2024) builds its
map, or points with the labels of a network whose classes are fixed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from osmabench_ros.base.progress import shown_progress
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.mappers.fusion import VoxelFusion
from osmabench_ros.mappers.nodes import NodeBuilder
from osmabench_ros.mappers.open_vocabulary.association import (
    AssociationOptions,
    MappedObject,
    ObjectMap,
    joined_cells,
)
from osmabench_ros.mappers.open_vocabulary.features import (
    FeatureOptions,
    ImageEncoder,
    make_encoder,
    mask_features,
)
from osmabench_ros.mappers.open_vocabulary.lifting import Detections, LiftingOptions, lift
from osmabench_ros.mappers.open_vocabulary.masks import SemanticNetwork, mask_finder
from osmabench_ros.mappers.open_vocabulary.networks import DeviceOptions, NetworkSource, Runtime
from osmabench_ros.mappers.rooms import with_rooms
from osmabench_ros.maps.labelling import averaged_text_features
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode

NAME = 'open_vocabulary'
SPACE = 'objects'
"""Feature space of the objects."""


class OpenVocabularyOptions(Strict):
    """Options of the mapper.

    Parameters
    ----------
    masks, features : NetworkSource
        What finds masks, and what gives each a feature: name (or folder) and revision.
    detector : NetworkSource, optional
        What finds boxes by text (Grounding DINO, OWL), for which `masks` then finds masks.
    prompts : tuple of str
        What the detector looks for; the classes of the scene by default.
    min_confidence : float
        Of a box of the detector, or of a segment of Mask2Former.
    templates : tuple of str
        Sentences by which class names are compared with features, averaged.
    segmentation : NetworkSource, optional
        With it, points get the labels of this network, and there are no objects.
    names : mapping of str to str
        For `segmentation`: class of the scene by class of the network, where spelt differently.
    pictures, device, lifting, association : sections
        See `FeatureOptions`, `DeviceOptions`, `LiftingOptions`, `AssociationOptions`.
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
    lifting: LiftingOptions = LiftingOptions()
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
    """What is done with frames once its networks are loaded."""

    models: dict[str, str]

    def integrate(self, frame: Frame) -> None: ...

    def semantic_map(self, header: MapHeader) -> SemanticMap: ...


class OpenVocabularyMapper:
    """Maps what pretrained networks see; the first frame waits until they are loaded."""

    name = NAME
    uses_ground_truth = False

    def __init__(self, *, label_set: LabelSet, seed: int, options: dict[str, Any]) -> None:
        del seed
        self.options = validated(OpenVocabularyOptions, options, f'mapper "{self.name}"')
        self.label_set = label_set
        self._way: _Way | None = None
        self._frames = 0
        self._stamp_ns = 0

    def integrate(self, frame: Frame) -> None:
        """Take one frame into the map; ConfigError if a network cannot be loaded for the first."""
        if self._way is None:
            self._way = self._loaded()
        self._way.integrate(frame)
        self._frames += 1
        self._stamp_ns = max(self._stamp_ns, frame.stamp_ns)

    def _loaded(self) -> _Way:
        with shown_progress() as progress:
            runtime = Runtime(self.options.device)
            progress(f'the first frame waits for the networks ({runtime.device})', 0.0)
            way: _Way
            if self.options.segmentation is not None:
                way = LabelledPoints(self.options, self.label_set, runtime)
            else:
                way = NetworkObjects(self.options, self.label_set, runtime)
            loaded = ', '.join(f'{role} {name}' for role, name in way.models.items())
            progress(f'networks are loaded: {loaded}', 1.0)
        return way

    def semantic_map(self, *, final: bool) -> SemanticMap:
        """Return the map so far; `final` if no frame will follow."""
        models = {} if self._way is None else self._way.models
        provenance = Provenance(
            self.name, models=MappingProxyType(dict(models)), frames_used=self._frames
        )
        header = MapHeader(provenance, stamp_ns=self._stamp_ns, complete=final)
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
        self._objects = ObjectMap(options.association, options.lifting.voxel_m)
        sentences = [[item.replace('{}', name) for name in names] for item in options.templates]
        self._text = averaged_text_features(
            np.stack([self._encoder.texts(texts) for texts in sentences])
        )
        features = f'{self._encoder.model}@{self._encoder.revision}'
        self.models = {**self._finder.models, 'features': features}

    def integrate(self, frame: Frame) -> None:
        """Find masks, give them features, and join them with the objects so far."""
        found = self._finder.find(frame.color)
        large = found.masks.sum(axis=(1, 2)) >= self._options.lifting.min_mask_pixels
        rows = np.flatnonzero(large)
        if not len(rows):
            self._objects.add([])
            return
        masks = found.masks[rows]
        features = mask_features(frame.color, masks, self._encoder, self._options.pictures)
        names = tuple(found.names[row] for row in rows)
        detections = Detections(masks, features, found.confidences[rows], names)
        self._objects.add(lift(frame, detections, self._options.lifting))

    def semantic_map(self, header: MapHeader) -> SemanticMap:
        """Return the objects, named by the detector or else by their features."""
        space = feature_space(self._encoder, self._options.templates)
        return map_of_objects(
            self._objects.objects(),
            header,
            self._label_set,
            space,
            class_text=self._text,
            scale=self._encoder.scale,
            rooms=self._options.rooms,
        )


def feature_space(encoder: ImageEncoder, templates: tuple[str, ...]) -> FeatureSpace:
    """Return the space of an encoder, without a vector so far."""
    return FeatureSpace(
        SPACE,
        np.zeros((0, 0), np.float32),
        encoder.model,
        encoder.pretrained,
        normalised=True,
        templates=templates,
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
        What the map consists of.
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
    bounds = np.searchsorted(cells.segments, np.arange(len(ordered) + 1))
    nodes: list[SceneNode] = []
    for row, item in enumerate(ordered):
        votes = _named(item.votes, label_set)
        if not votes.any():
            votes = _softmax(scale * (class_text @ vectors[row]))
        own = np.arange(bounds[row], bounds[row + 1])
        node = builder.node(row + 1, own, votes, item.detections)
        nodes.append(replace(node, feature_row=row, feature_space=SPACE))
    placed = with_rooms(nodes, cells.points) if rooms else tuple(nodes)
    classes = np.array([node.class_id for node in nodes], np.int32)
    scores = np.array([node.labels[0].score for node in nodes], np.float32)
    return SemanticMap(
        header,
        SceneGraph(placed, derive_relations(placed)),
        DenseMap(
            cells.points,
            cells.colors,
            labels=classes[cells.segments],
            instances=(cells.segments + 1).astype(np.int32),
            scores=scores[cells.segments],
            feature_rows=cells.segments.astype(np.int32),
            feature_space=SPACE,
        ),
        label_set,
        MappingProxyType({SPACE: replace(space, vectors=vectors)}),
    )


def _named(votes: Mapping[str, float], label_set: LabelSet) -> NDArray[np.float64]:
    """Return the votes (C,) of the names that are classes."""
    shares = np.zeros(len(label_set.classes))
    for name, weight in votes.items():
        class_id = label_set.id_of(name)
        if class_id != UNLABELLED:
            shares[np.searchsorted(label_set.ids, class_id)] += weight
    return shares


def _softmax(logits: NDArray[np.floating]) -> NDArray[np.float64]:
    powers = np.exp(np.asarray(logits, np.float64) - logits.max())
    return np.asarray(powers / powers.sum())


class LabelledPoints:
    """Points with the labels of a network whose classes are fixed."""

    def __init__(
        self, options: OpenVocabularyOptions, label_set: LabelSet, runtime: Runtime
    ) -> None:
        assert options.segmentation is not None
        self._label_set, self._lifting = label_set, options.lifting
        self._network = SemanticNetwork(options.segmentation, label_set, options.names, runtime)
        self._fusion = VoxelFusion(options.lifting.voxel_m)
        self.models = self._network.models

    def integrate(self, frame: Frame) -> None:
        """Label the pixels and fuse them."""
        used = frame.valid & (frame.depth_m <= self._lifting.max_depth_m)
        labels = self._network.label(frame.color)[used]
        # Classes become small numbers, since a voxel grid holds few; the last is for none.
        known = labels != UNLABELLED
        rows = np.full(len(labels), len(self._label_set.classes))
        rows[known] = np.searchsorted(self._label_set.ids, labels[known])
        self._fusion.add(frame.world_points(used), frame.color[used], rows)

    def semantic_map(self, header: MapHeader) -> SemanticMap:
        """Return a point a voxel, with the class that most of its pixels got."""
        cells = self._fusion.cells()
        nameless = cells.segments == len(self._label_set.classes)
        winners = cells.winner_rows(abstaining=nameless)
        shares, kept = cells.vote_shares()[winners], cells.select(winners)
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
