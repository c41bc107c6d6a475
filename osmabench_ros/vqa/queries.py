"""The meaning of a question, between its wording and the graph."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class QueryKind(str, Enum):
    """What is asked; phrases are noun phrases, first, second and third."""

    EXISTS = 'exists'
    ABSENT = 'absent'
    BOTH = 'both exist'
    EITHER = 'either exists'
    FIRST_ONLY = 'only the first exists'
    NEITHER = 'neither exists'
    COUNT = 'count'
    MORE_OF = 'more of the first'
    HEIGHT = 'height in metres'
    DISTANCE = 'distance in metres'
    COLOR_OF = 'colour of'
    HAS_COLOR = 'has colour'
    MATERIAL_OF = 'material of'
    HAS_MATERIAL = 'has material'
    RELATED = 'related'
    RELATED_TO = 'what is related to'
    SUPPORT_OF = 'what supports'
    SUPPORTED_BY = 'what is supported by'
    CONTAINER_OF = 'what contains'
    FIXED_TO = 'what is it attached to'
    WHICH_MORE = 'which is more'
    IS_MORE = 'is the first more'
    CLOSER = 'which is closer'
    REACHABLE = 'top within reach'
    PASSABLE = 'gap wide enough'
    CLEARANCE = 'free space above'
    AFFORDS_ON = 'usable thing on'
    AFFORDS_NEAR = 'usable thing next to'
    AFFORDS_COUNT = 'count of usable things'
    LOADED = 'must be cleared'
    UNLOADED = 'can be moved at once'
    OPEN_FIRST = 'what must be opened'


@dataclass(frozen=True)
class Query:
    """A question's meaning.

    Phrases are singular noun phrases without article, e.g. ``'red wooden chair'``; `word` is the
    relation, colour, material, comparative or affordance the kind needs, `number` is in metres.
    """

    kind: QueryKind
    phrases: tuple[str, ...] = ()
    word: str = ''
    number: float | None = None
