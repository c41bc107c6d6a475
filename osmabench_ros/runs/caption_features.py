"""Features of captions, for maps that describe their nodes in words."""

from __future__ import annotations

import dataclasses

from osmabench_ros.language.embedding import TextEmbedder
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap

CAPTIONS = 'captions'
"""Feature space that is made of the captions of nodes."""


def with_caption_features(semantic_map: SemanticMap, embedder: TextEmbedder) -> SemanticMap:
    """Return a map whose nodes have features of their captions, in a space of that name alone."""
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
