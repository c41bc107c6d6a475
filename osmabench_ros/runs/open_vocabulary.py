"""Text encoders for maps with features, and labelling with them."""

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, MapError, errors_as
from osmabench_ros.language.embedding import Embedder, PrecomputedEmbedder, SentenceEmbedder
from osmabench_ros.mappers.open_vocabulary import features
from osmabench_ros.maps import labelling
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelClass, LabelSet
from osmabench_ros.suites.suite import Labeller, NodeLabeller, Similarity, TextEncoder

# Feature space that is made of the captions of nodes.
CAPTIONS = 'captions'


def with_caption_features(semantic_map: SemanticMap, embedder: Embedder) -> SemanticMap:
    """Return a map with features of its captions, in a feature space of that name."""
    nodes = semantic_map.graph.nodes
    rows = [index for index, node in enumerate(nodes) if any(node.captions)]
    vectors = embedder.embed(['. '.join(nodes[index].captions) for index in rows])
    place = {index: row for row, index in enumerate(rows)}
    described = tuple(
        dataclasses.replace(node, feature_row=place.get(index), feature_space=CAPTIONS)
        for index, node in enumerate(nodes)
    )
    space = FeatureSpace(CAPTIONS, vectors, embedder.name, normalised=True)
    graph = dataclasses.replace(semantic_map.graph, nodes=described)
    return dataclasses.replace(semantic_map, graph=graph, feature_spaces={CAPTIONS: space})


_NOT_HERE = ' (not here: install open-clip-torch, or name a file under text_features)'
# Ranks that top-k accuracies may ask for.
_NAMES_OF_A_NODE = 5


class OpenClipEmbedder:
    """Text tower of a CLIP model (open_clip's names); `pretrained` may be a path to weights."""

    def __init__(self, model: str, pretrained: str, device: str = 'cpu') -> None:
        self.name = f'{model}/{pretrained}'
        source = features.NetworkSource(name=features.OPEN_CLIP + self.name)
        options = features.DeviceOptions(device=device, half_precision=False)
        self._encoder = features.OpenClipEncoder(source, features.Runtime(options))

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return features of shape (N, D), rows of length 1."""
        return self._encoder.texts(texts)


class OpenVocabularyLabeller:
    """Matches the class names of a scene with a map by text features.

    Nothing is loaded before a metric asks for it. Features of a space come from the file that
    the configuration names, from the sentence embedder if the space is of its making, or from
    open_clip where that is installed. A map that has no such features, or none that an encoder is
    here for, is labelled by the sentence embedder from the captions of its nodes.

    Parameters
    ----------
    semantic_map : SemanticMap
        The map that is scored.
    files : mapping of str to Path
        Precomputed text features (.npy, texts in the .json of the same name) by
        ``'model/pretrained'``, model or name of the feature space. The texts are class names (then
        templates are averaged in already) or class names in the templates of the space.
    device : str
        Where text is encoded: 'cuda', anything else is the processor.

    Attributes
    ----------
    encoders : dict of str to str
        The encoder of every feature space, and the encoders used so far: 'labels',
        'node_labels', 'prompts' and 'similarity'.
    labeller : Labeller or None
        Labels the points by features or captions; None if the map has neither.
    node_labeller : NodeLabeller or None
        Names the nodes by features or captions; None if the map has neither.
    similarity : Similarity or None
        Cosine of two labels in the sentence embedder; None if it is not installed.
    text_encoder : TextEncoder or None
        Encodes prompts for the feature spaces; None if no space has an installed encoder.
    """

    def __init__(
        self, semantic_map: SemanticMap, files: Mapping[str, Path], device: str = 'cpu'
    ) -> None:
        self._files = files
        self._device = 'cuda' if device == 'cuda' else 'cpu'
        self._made: dict[str, Embedder] = {}
        self.encoders: dict[str, str] = {}
        served: dict[str, FeatureSpace] = {}
        for name, space in sorted(semantic_map.feature_spaces.items()):
            if space.text_comparable and self.serves(space):
                served[name] = space
            here = not space.text_comparable or name in served
            self.encoders[f'map:{name}'] = _full_name(space) + ('' if here else _NOT_HERE)
        nodes, dense = semantic_map.graph.nodes, semantic_map.dense
        has_sentences = SentenceEmbedder.is_available()
        has_captions = has_sentences and any(node.captions for node in nodes)
        of_nodes = sorted({node.feature_space for node in nodes if node.feature_row is not None})
        # By the features of the points, else of the nodes that they are in.
        of_points = []
        if dense is not None and dense.feature_rows is not None:
            of_points.append(dense.feature_space)
        in_nodes = dense is not None and dense.instances is not None
        of_points += of_nodes if in_nodes else []
        self._of_nodes = next((served[name] for name in of_nodes if name in served), None)
        self._of_points = next((served[name] for name in of_points if name in served), None)
        labels_points = self._of_points is not None or (in_nodes and has_captions)
        labels_nodes = self._of_nodes is not None or has_captions
        self.labeller: Labeller | None = self._label if labels_points else None
        self.node_labeller: NodeLabeller | None = self._label_nodes if labels_nodes else None
        self.similarity: Similarity | None = self._similarity if has_sentences else None
        self.text_encoder: TextEncoder | None = self._encode if served else None

    @cached_property
    def _sentences(self) -> SentenceEmbedder:
        return SentenceEmbedder(self._device)

    def _find_file(self, space: FeatureSpace) -> Path | None:
        keys = (_full_name(space), space.model, space.name)
        return next((self._files[key] for key in keys if key in self._files), None)

    def serves(self, space: FeatureSpace) -> bool:
        """Return whether text can be encoded here for a feature space."""
        if self._find_file(space) is not None:
            return True
        if space.model == SentenceEmbedder.name:
            return SentenceEmbedder.is_available()
        # Without a name of weights open_clip would make a network of random numbers.
        if not space.pretrained or find_spec('open_clip') is None:
            return False
        return space.model in import_module('open_clip').list_models()

    def _embedder(self, space: FeatureSpace) -> Embedder:
        if known := self._made.get(space.name):
            return known
        made: Embedder
        if (file := self._find_file(space)) is not None:
            made = PrecomputedEmbedder(file)
        elif space.model == SentenceEmbedder.name:
            made = self._sentences
        else:
            problem = f'text encoder {_full_name(space)} of feature space "{space.name}"'
            remedy = 'name a file for it under text_features'
            with errors_as(ConfigError, problem, OSError, RuntimeError, ValueError, remedy=remedy):
                made = OpenClipEmbedder(space.model, space.pretrained, self._device)
        return self._made.setdefault(space.name, made)

    def _encode(self, space: FeatureSpace, texts: Sequence[str]) -> NDArray[np.float32]:
        if not self.serves(space):
            problem = f'feature space "{space.name}" is of {_full_name(space)}, not installed here'
            raise ConfigError(f'{problem}; name a file for it under text_features')
        self.encoders['prompts'] = self._name_of(space)
        return self._features(space, texts)

    def _features(self, space: FeatureSpace, texts: Sequence[str]) -> NDArray[np.float32]:
        embedder = self._embedder(space)
        templates = space.templates or ('{}',)
        if isinstance(embedder, PrecomputedEmbedder) and embedder.knows(texts):
            templates = ('{}',)
        sets = [embedder.embed([t.replace('{}', text) for text in texts]) for t in templates]
        vectors = labelling.average_text_features(np.stack(sets))
        if vectors.shape[1] != space.vectors.shape[1]:
            counts = vectors.shape[1], space.vectors.shape[1]
            raise ConfigError(
                f'text features of {embedder.name} have {counts[0]} dimensions, feature space '
                f'"{space.name}" of the map has {counts[1]}; take the same encoder for both'
            )
        return vectors

    def _name_of(self, space: FeatureSpace) -> str:
        embedder = self._embedder(space)
        if isinstance(embedder, PrecomputedEmbedder):
            return f'{_full_name(space)} from file {embedder.name}.npy'
        return embedder.name

    def _label(self, semantic_map: SemanticMap, names: Sequence[str]) -> NDArray[np.int64]:
        made = self.labelled(semantic_map, _vocabulary(names), self._of_points, 'labels', 1)
        assert made.dense is not None
        assert made.dense.labels is not None
        return np.where(made.dense.labels == UNLABELLED, -1, made.dense.labels).astype(np.int64)

    def _label_nodes(
        self, semantic_map: SemanticMap, names: Sequence[str]
    ) -> dict[int, tuple[tuple[int, float], ...]]:
        # The points are not asked for.
        graph_alone = dataclasses.replace(semantic_map, dense=None)
        made = self.labelled(
            graph_alone, _vocabulary(names), self._of_nodes, 'node_labels', _NAMES_OF_A_NODE
        )
        return {
            node.id: tuple((label.class_id, label.score) for label in node.labels)
            for node in made.graph.nodes
            if node.labels and node.class_id != UNLABELLED
        }

    def labelled(
        self,
        semantic_map: SemanticMap,
        label_set: LabelSet,
        space: FeatureSpace | None,
        use: str,
        top_k: int,
    ) -> SemanticMap:
        """Return the map labelled by a space or else by captions; a node keeps `top_k` labels."""
        names = [item.name for item in label_set.classes]
        if space is None:
            semantic_map = with_caption_features(semantic_map, self._sentences)
            space = semantic_map.feature_spaces[CAPTIONS]
            self.encoders[use] = f'{self._sentences.name} on captions'
            text = self._sentences.embed(names)
        else:
            self.encoders[use] = self._name_of(space)
            text = self._features(space, names)
        return labelling.label_by_features(
            semantic_map, text, label_set, space=space.name, top_k=top_k
        )

    def _similarity(self, first: str, second: str) -> float:
        self.encoders['similarity'] = self._sentences.name
        one, other = self._sentences.embed([first, second]).astype(np.float64)
        return float(one @ other)


def _vocabulary(names: Sequence[str]) -> LabelSet:
    classes = (LabelClass(index, name) for index, name in enumerate(names))
    return LabelSet('vocabulary', tuple(classes))


def _full_name(space: FeatureSpace) -> str:
    return f'{space.model}/{space.pretrained}' if space.pretrained else space.model


def label_map(
    semantic_map: SemanticMap, label_set: LabelSet, *, space: str = '', by_captions: bool = False
) -> tuple[SemanticMap, str]:
    """Give nodes and points the classes that are most like their features or captions.

    Without `space` the feature space of the points counts, else the only comparable one; with
    `by_captions`, captions and the sentence embedder. Returns what encoded the text too. Raises
    MapError if such a space, its encoder or captions are missing, MissingDependencyError if the
    sentence embedder is.
    """
    matching = OpenVocabularyLabeller(semantic_map, {})
    chosen = None if by_captions else labelling.choose_space(semantic_map, space)
    given = semantic_map.graph
    if chosen is None and not any(any(node.captions) for node in given.nodes):
        method = semantic_map.header.provenance.method
        raise MapError(f'no node of the map of {method} has a caption; label it by features')
    if chosen is not None and not matching.serves(chosen):
        problem = f'the text encoder {_full_name(chosen)} is not installed here'
        remedy = 'install open-clip-torch, give --text-features, or label by --captions'
        raise MapError(f'feature space "{chosen.name}": {problem}; {remedy}')
    made = matching.labelled(semantic_map, label_set, chosen, 'labels', labelling.LABELS_OF_A_NODE)
    if chosen is None:
        nodes = tuple(
            dataclasses.replace(node, feature_row=own.feature_row, feature_space=own.feature_space)
            for node, own in zip(made.graph.nodes, given.nodes, strict=True)
        )
        graph = dataclasses.replace(made.graph, nodes=nodes)
        spaces = semantic_map.feature_spaces
        made = dataclasses.replace(made, graph=graph, feature_spaces=spaces)
    return made, matching.encoders['labels']
