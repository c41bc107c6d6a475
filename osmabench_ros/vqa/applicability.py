"""Categories that a mapping method cannot serve: they are not applicable, not wrong."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.vqa.questions import Category

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


def unserved_categories(semantic_map: SemanticMap) -> frozenset[str]:
    """Return the categories that the method behind a map cannot serve.

    A map may say so itself: `extras['unserved_question_categories']` lists categories.
    """
    stated = semantic_map.extras.get('unserved_question_categories', ())
    method = semantic_map.header.provenance.method.lower()
    own = frozenset(str(item) for item in stated) if isinstance(stated, (list, tuple)) else ()
    return METHODS_WITHOUT.get(method, frozenset()) | frozenset(own)
