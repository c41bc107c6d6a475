"""Finds things and answers in one scene graph by rule."""

from __future__ import annotations

from collections.abc import Iterable

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.vqa.answering.execution import QueryExecutor
from osmabench_ros.vqa.answering.references import ReferenceResolver
from osmabench_ros.vqa.graph_index import Embedder, GraphIndex, LabelMatcher
from osmabench_ros.vqa.questions import Query


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
        matcher = LabelMatcher(self.index.by_label, vocabulary, embedder)
        self.resolver = ReferenceResolver(self.index, matcher)
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
