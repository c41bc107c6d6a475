"""Answers exact questions by rule from the graph of a map."""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.language.embedding import Embedder, SentenceEmbedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.vqa.answering.answerer import AnsweringMaterial, OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.questions import Answer, Inquiry
from osmabench_ros.vqa.wording import parsed


def label_embedder(semantic_map: SemanticMap, label_set: LabelSet) -> SentenceEmbedder | None:
    """Return the embedder for a map without the scene's own label set; None if not installed."""
    own = semantic_map.label_set
    speaks_it = own is not None and own.sha256 == label_set.sha256
    return SentenceEmbedder() if not speaks_it and SentenceEmbedder.is_available() else None


class RuleAnswerer(OneByOne):
    """Parses exact questions, and answers them from the graph."""

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._read = lru_cache(maxsize=1)(partial(GraphReader.of_map, embedder=embedder))

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return the answerer of a map; its index is kept for further calls."""
        return partial(_answer_question, self._read(semantic_map), name=self.name)


def rule_answerer(*, material: AnsweringMaterial, options: dict[str, Any]) -> RuleAnswerer:
    """Make the answerer by rule, which has no options."""
    validated(Strict, options, 'answerer "rule"')
    return RuleAnswerer(material.embedder)


def _answer_question(reader: GraphReader, item: Inquiry, name: str) -> Answer:
    query = parsed(item.text)
    if query is None:
        return Answer(item.id, None, name, note='the wording is not one that the rules know')
    finding = reader.execute(query)
    return Answer(item.id, finding.value, name, finding.nodes, finding.note)
