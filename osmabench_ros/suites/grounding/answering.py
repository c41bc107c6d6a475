"""Answers to referring expressions: by rule, by text features, and from what models say."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.metrics.similarity import cosine_similarity
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.suites.grounding.expressions import (
    ExpressionReader,
    quoted,
    read_expression,
)
from osmabench_ros.suites.suite import TextEncoder
from osmabench_ros.vqa.answering.answerer import Answerer, OneByOne
from osmabench_ros.vqa.answering.rule import GraphReader
from osmabench_ros.vqa.grading import numbers_of
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import Answer, AnswerValue, Inquiry

Ranking = Callable[[str], Sequence[SceneNode] | None]
"""Returns the things that an expression may mean, best first; None where it is not understood."""


class RankingAnswerer(OneByOne):
    """Answers with the box of the best thing; all that are ranked are the nodes of the answer."""

    @abstractmethod
    def ranking(self, semantic_map: SemanticMap) -> Ranking:
        """Return what ranks the things of a map."""

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return what answers with the things that an expression may mean."""
        ranking = self.ranking(semantic_map)

        def answered(item: Inquiry) -> Answer:
            found = ranking(quoted(item.text))
            note = 'the wording is not one that the rules know' if found is None else ''
            ids = tuple(node.id for node in found or ())
            note = note or ('' if ids else 'the map has nothing of this kind')
            return located(Answer(item.id, None, self.name, ids, note), semantic_map.graph)

        return answered


class RuleOfExpressions(RankingAnswerer):
    """Reads the clauses of an expression, and counts which hold for each thing of the kind.

    Implements `Answerer`.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def ranking(self, semantic_map: SemanticMap) -> Ranking:
        """Return what ranks the things of a map by rule."""
        reader = ExpressionReader(GraphReader.of_map(semantic_map, self._embedder))

        def ranked(text: str) -> Sequence[SceneNode] | None:
            expression = read_expression(text)
            return None if expression is None else reader.ranked(expression)

        return ranked


class FeaturesOfExpressions(RankingAnswerer):
    """Ranks things by the cosine of their features with the text feature of the expression.

    Implements `Answerer`.
    """

    name = 'features'

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder

    def ranking(self, semantic_map: SemanticMap) -> Ranking:
        """Return what ranks the things of a map by features."""
        space = text_space(semantic_map)
        nodes = [] if space is None else _featured(semantic_map.graph, space)

        def ranked(text: str) -> Sequence[SceneNode]:
            if space is None or not nodes:
                return ()
            rows: NDArray[np.float32] = space.vectors[[node.feature_row or 0 for node in nodes]]
            alike = cosine_similarity(rows, self._encoder(space, [text]))[:, 0]
            return [nodes[i] for i in np.argsort(-alike, kind='stable').tolist()]

        return ranked


def text_space(semantic_map: SemanticMap) -> FeatureSpace | None:
    """Return the feature space whose rows objects have and text can be compared with."""
    spaces = semantic_map.feature_spaces.values()
    comparable = (space for space in spaces if space.text_comparable)
    return next((space for space in comparable if _featured(semantic_map.graph, space)), None)


def _featured(graph: SceneGraph, space: FeatureSpace) -> list[SceneNode]:
    return [
        node
        for node in graph.of_kind(NodeKind.OBJECT)
        if node.feature_row is not None and node.feature_space == space.name
    ]


def located(answer: Answer, graph: SceneGraph) -> Answer:
    """Return an answer with the box that it gives, else that of the first of its nodes."""
    value: AnswerValue | None = answer.value
    given = () if value is None else tuple(numbers_of(value))
    boxes = (graph.by_id[key].box for key in answer.nodes if key in graph.by_id)
    box = next((box for box in boxes if box is not None), None)
    if len(given) == 6:
        value = given
    elif box is not None:
        value = (*box.minimum.tolist(), *box.maximum.tolist())
    return replace(answer, value=value)


class Located:
    """An answerer that may name a node instead of giving a box. Implements `Answerer`."""

    def __init__(self, answerer: Answerer) -> None:
        self._answerer = answerer
        self.name = answerer.name

    def answer(
        self,
        semantic_map: SemanticMap,
        inquiries: Sequence[Inquiry],
        progress: Progress = silent,
    ) -> list[Answer]:
        """Return the answers with boxes."""
        answers = self._answerer.answer(semantic_map, inquiries, progress)
        return [located(answer, semantic_map.graph) for answer in answers]
