"""Finds things in one scene graph, and answers exact questions from it by rule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.language.embedding import SentenceEmbedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial, OneByOne
from osmabench_ros.vqa.answering.execution import QueryExecutor, ReferenceResolver
from osmabench_ros.vqa.answering.space import SpaceExecutor, storeys_of_map
from osmabench_ros.vqa.answering.ways import ways_of_map
from osmabench_ros.vqa.graph_index import Embedder, GraphIndex, LabelMatcher
from osmabench_ros.vqa.questions import Answer, Inquiry, Query
from osmabench_ros.vqa.wording import parsed


class GraphReader:
    """Finds things by noun phrases, and answers to queries, in one scene graph."""

    def __init__(
        self,
        graph: SceneGraph,
        vocabulary: Iterable[str] = (),
        embedder: Embedder | None = None,
        ids: Iterable[int] | None = None,
    ) -> None:
        self.graph = graph
        self.index = GraphIndex(graph, ids)
        self.matcher = LabelMatcher(self.index.by_label, vocabulary, embedder)
        self.resolver = ReferenceResolver(self.index, self.matcher)
        self._executor = QueryExecutor(self.index, self.resolver)

    @classmethod
    def of_map(cls, semantic_map: SemanticMap, embedder: Embedder | None = None) -> GraphReader:
        """Return a reader of the graph of a map, which knows the names of its label set."""
        known = semantic_map.label_set
        vocabulary = () if known is None else known.by_name
        return cls(semantic_map.graph, vocabulary, embedder)

    def named(self, phrase: str) -> SceneNode | None:
        """Return the best observed thing that a phrase may mean."""
        return next(iter(self.all_named(phrase)), None)

    def all_named(self, phrase: str) -> tuple[SceneNode, ...]:
        """Return all that a phrase may mean, best observed first."""
        return self.resolver.resolve(phrase).nodes

    def answer(self, query: Query) -> str | int | float | None:
        """Return the answer to a query, None if the graph does not say."""
        value = self._executor.execute(query).value
        return None if isinstance(value, tuple) else value


def label_embedder(semantic_map: SemanticMap, label_set: LabelSet) -> SentenceEmbedder | None:
    """Return the embedder for a map without the scene's own label set; None if not installed."""
    own = semantic_map.label_set
    speaks_it = own is not None and own.sha256 == label_set.sha256
    return SentenceEmbedder() if not speaks_it and SentenceEmbedder.is_available() else None


class RuleAnswerer(OneByOne):
    """Parses exact questions, and answers them from the graph."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder
        self._latest: tuple[SemanticMap, QueryExecutor] | None = None

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return what answers from a map, whose index is kept for further calls."""
        if self._latest is None or self._latest[0] is not semantic_map:
            self._latest = (semantic_map, self._built(semantic_map))
        return partial(_answered, self._latest[1], name=self.name)

    def _built(self, semantic_map: SemanticMap) -> QueryExecutor:
        reader = GraphReader.of_map(semantic_map, self._embedder)
        storeys_m = partial(storeys_of_map, semantic_map)
        return SpaceExecutor(reader.index, reader.resolver, ways_of_map(semantic_map), storeys_m)


def rule_answerer(*, material: AnsweringMaterial, options: dict[str, Any]) -> RuleAnswerer:
    """Make the answerer by rule, which has no options."""
    validated(Strict, options, 'answerer "rule"')
    return RuleAnswerer(material.embedder)


def _answered(executor: QueryExecutor, item: Inquiry, name: str) -> Answer:
    query = parsed(item.text)
    if query is None:
        return Answer(item.id, None, name, note='the wording is not one that the rules know')
    finding = executor.execute(query)
    return Answer(item.id, finding.value, name, finding.nodes, finding.note)
