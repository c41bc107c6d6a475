"""Labels for open-vocabulary maps from text encoders that are installed here."""

from __future__ import annotations

import dataclasses

from osmabench_ros.errors import MapError
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.maps.labelling import label_by_features, space_to_label_by
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.runs.caption_features import CAPTIONS, with_caption_features
from osmabench_ros.runs.text_matching import TextMatching
from osmabench_ros.semantics.labels import LabelSet


def label_map(
    semantic_map: SemanticMap, label_set: LabelSet, *, space: str = '', by_captions: bool = False
) -> tuple[SemanticMap, str]:
    """Give nodes and points the classes that are most like their features or captions.

    Without `space` the feature space of the points counts, else the only comparable one; with
    `by_captions`, captions and the sentence embedder. Returns what encoded the text too. Raises
    MapError if such a space, its encoder or captions are missing, MissingDependencyError if the
    sentence embedder is.
    """
    if by_captions:
        return _by_captions(semantic_map, label_set)
    chosen = space_to_label_by(semantic_map, space)
    matching = TextMatching(semantic_map, {})
    if not matching.serves(chosen):
        raise MapError(
            f'the text encoder of feature space "{chosen.name}", {chosen.model} '
            f'{chosen.pretrained}, is not installed here; install open-clip-torch, give '
            '--text-features, or label by --captions'
        )
    assert matching.text_encoder is not None
    text = matching.text_encoder(chosen, _names(label_set))
    made = label_by_features(semantic_map, text, label_set, space=chosen.name)
    return made, matching.encoders['prompts']


def _by_captions(semantic_map: SemanticMap, label_set: LabelSet) -> tuple[SemanticMap, str]:
    given = semantic_map.graph
    if not any(any(node.captions) for node in given.nodes):
        method = semantic_map.header.provenance.method
        raise MapError(f'no node of the map of {method} has a caption; label it by features')
    sentences = SentenceEmbedder()
    described = with_caption_features(semantic_map, sentences)
    text = sentences.embed(_names(label_set))
    made = label_by_features(described, text, label_set, space=CAPTIONS)
    nodes = tuple(
        dataclasses.replace(node, feature_row=own.feature_row, feature_space=own.feature_space)
        for node, own in zip(made.graph.nodes, given.nodes, strict=True)
    )
    graph = dataclasses.replace(made.graph, nodes=nodes)
    restored = dataclasses.replace(made, graph=graph, feature_spaces=semantic_map.feature_spaces)
    return restored, f'{sentences.name} on captions'


def _names(label_set: LabelSet) -> list[str]:
    return [item.name for item in label_set.classes]
