"""Categories that a map cannot serve: they are not applicable, not wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.graph_index import THINGS
from osmabench_ros.vqa.questions import Category, Question

RELATION_CATEGORIES = frozenset(
    {
        Category.RELATIONS_SPATIAL.value,
        Category.RELATIONS_FUNCTIONAL.value,
        'Object Relations - Spatial',
        'Object Relations - Functional',
    }
)
"""Categories about relations, under today's names and those of the published files."""

METHODS_WITHOUT: Mapping[str, frozenset[str]] = MappingProxyType({'bbq': RELATION_CATEGORIES})
"""What the outputs of published methods lack by design: BBQ writes no edges."""


UNSERVED = 'not applicable: the map holds nothing that such questions are answered from'
"""Note on the answer to a question that was not asked, and reason of its verdict."""


def unserved_categories(
    semantic_map: SemanticMap, questions: Sequence[Question]
) -> frozenset[str]:
    """Return the categories that a map cannot serve: of a map without things, all that are asked.

    A map may say so itself: `extras['unserved_question_categories']` lists categories.
    """
    if not any(node.kind in THINGS for node in semantic_map.graph.nodes):
        return frozenset(question.category for question in questions)
    stated = semantic_map.extras.get('unserved_question_categories', ())
    method = semantic_map.header.provenance.method.lower()
    own = frozenset(str(item) for item in stated) if isinstance(stated, (list, tuple)) else ()
    return METHODS_WITHOUT.get(method, frozenset()) | frozenset(own)
