"""Questions about existence and about spatial and functional relations."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.vqa.english import confusable
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    color_of,
    label_of,
    plain_color_of,
    sample_pairs,
    shuffled,
)
from osmabench_ros.vqa.kinds import ATTACHED, IN, NEXT_TO, ON, Kind, Query, QueryKind
from osmabench_ros.vqa.questions import Category

NEAR, UNDER = RelationType.NEAR.value, RelationType.UNDER.value
CLOSE = (NEXT_TO, NEAR)

# Two boxes at least this far apart are certainly not so related.
_FAR_M = {ON: 0.5, IN: 0.5, UNDER: 0.5, ATTACHED: 0.5, NEXT_TO: 2.0, NEAR: 3.0}

_OVERHEAD_M = 0.5

_LOGICAL = (QueryKind.BOTH, QueryKind.EITHER, QueryKind.FIRST_ONLY, QueryKind.NEITHER)


def spatial(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether two objects are related, right and clearly wrong, and for related objects."""
    for relation in _FAR_M:
        pairs = [
            (source, view.index.by_id[number])
            for source in view.named
            for number in view.index.targets(relation, source.id)
            if number in view.names
        ]
        pairs = [pair for pair in pairs if not _is_overhead(relation, *pair)]
        pairs = shuffled(rng, pairs)[:limit]
        for pair in (*pairs, *_draw_wrong(view, rng, relation, pairs)):
            yield from view.ask(QueryKind.RELATED, *pair, relation)
    for relation in (ON, IN, UNDER):
        yield from _ask_for_sole(view, QueryKind.RELATED_TO, relation, relation)


def functional(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the one object that supports, is supported by, contains or holds another."""
    drafts = [
        *_ask_for_holder(view, QueryKind.SUPPORT_OF, ON),
        *_ask_for_holder(view, QueryKind.CONTAINER_OF, IN),
        *_ask_for_holder(view, QueryKind.FIXED_TO, ATTACHED),
        *_ask_for_sole(view, QueryKind.SUPPORTED_BY, ON),
    ]
    yield from shuffled(rng, drafts)[:limit]


def _draw_wrong(
    view: SceneView,
    rng: np.random.Generator,
    relation: str,
    pairs: list[tuple[SceneNode, SceneNode]],
) -> Iterator[tuple[SceneNode, SceneNode]]:
    """Make wrong pairs by exchanging ends of true ones, so that both ends stay plausible."""
    targets = list({target.id: target for _, target in pairs}.values())
    others = [node for node in view.named_boxed if _could_be_target(view, relation, node)]
    for source, target in pairs:
        for other in [*shuffled(rng, targets)[:6], *shuffled(rng, others)[:6]]:
            if other not in (source, target) and _clearly_not(view, relation, source, other):
                yield source, other
                break


def _clearly_not(view: SceneView, relation: str, source: SceneNode, target: SceneNode) -> bool:
    if view.index.connected(source.id, target.id) or source.box is None or target.box is None:
        return False
    return source.box.measure_gap(target.box) >= _FAR_M[relation]


def _could_be_target(view: SceneView, relation: str, node: SceneNode) -> bool:
    if relation in CLOSE:
        return True
    return relation == ON and could_carry(node) and not view.index.targets(ATTACHED, node.id)


def _is_overhead(relation: str, source: SceneNode, target: SceneNode) -> bool:
    """Return whether one hangs over the other, which people do not agree to call near."""
    if relation not in CLOSE or source.box is None or target.box is None:
        return False
    low, high = sorted((source.box, target.box), key=lambda box: float(box.minimum[2]))
    return float(high.minimum[2] - low.maximum[2]) > _OVERHEAD_M


def could_carry(node: SceneNode) -> bool:
    """Return whether an object is low and wide enough to put something on."""
    if node.box is None:
        return False
    return bool(node.box.size[:2].min() >= 0.3 and node.box.size[2] <= 1.3)


def _find_only(view: SceneView, ids: tuple[int, ...]) -> SceneNode | None:
    """Return the one object among ids if its label may be an answer."""
    if len(ids) != 1:
        return None
    node = view.wide.by_id[ids[0]]
    is_nameable = node.kind is NodeKind.OBJECT and node.label and label_of(node) in view.by_label
    return node if is_nameable else None


def _ask_for_sole(view: SceneView, kind: Kind, relation: str, *word: str) -> Iterator[Draft]:
    """Yield questions for the one object that has a relation to a named one."""
    for target in view.named:
        source = _find_only(view, view.wide.sources(relation, target.id))
        # In a pile, the objects on top of it would be answers as well.
        if source is None or view.wide.sources(relation, source.id):
            continue
        if relation == UNDER and view.wide.targets(ON, target.id):
            continue
        # Books in a bookshelf are on it, and borne by it, to most people.
        if relation == ON and view.wide.sources(IN, target.id):
            continue
        yield from view.ask(kind, target, *word, nodes=(source, target))


def _ask_for_holder(view: SceneView, kind: Kind, relation: str) -> Iterator[Draft]:
    """Yield questions for the one object that a named one is on, in or fixed to."""
    for source in view.named:
        target = _find_only(view, view.wide.targets(relation, source.id))
        if target is not None and label_of(target) != label_of(source):
            yield from view.ask(kind, source)


def _ask_existence(view: SceneView, phrases: list[str], is_there: bool) -> Iterator[Draft]:
    for phrase in phrases:
        yield from view.ask(QueryKind.EXISTS, phrases=(phrase,), answer=is_there)
        yield from view.ask(QueryKind.ABSENT, phrases=(phrase,), answer=not is_there)


def present(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about classes of the scene, half of the time whether they are missing."""
    phrases = dict.fromkeys((*view.by_label, *view.names.values()))
    yield from _ask_existence(view, shuffled(rng, phrases)[:limit], is_there=True)


def absent(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about plausible classes, and colours of classes, that the scene does not have."""
    phrases = [*view.absent, *_name_wrong_colors(view, rng)]
    for draft in _ask_existence(view, shuffled(rng, phrases)[:limit], is_there=False):
        yield replace(draft, category=Category.EXISTENCE_NEGATIVE)


def _name_wrong_colors(view: SceneView, rng: np.random.Generator) -> Iterator[str]:
    """Yield classes of the scene in a colour of the scene that none of them has."""
    palette = sorted({plain_color_of(node) for node in view.objects} - {''})
    for label, nodes in view.groups.items():
        own = [color_of(node) for node in nodes]
        if '' not in own:
            other = [c for c in palette if not any(confusable(c, color) for color in own)]
            yield from (f'{color} {label}' for color in shuffled(rng, other)[:2])


def logical(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Join two existence questions so that neither half gives the answer away."""
    pools = list(view.by_label), list(view.absent)
    for first, second in product(pools, repeat=2) if all(pools) else ():
        for pair in _join_names(rng, first, second, max(1, limit // 8)):
            # One yes and one no of a pair: more would ask the same fact again.
            queries = [Query(kind, pair) for kind in shuffled(rng, _LOGICAL)]
            for query in {view.reader.execute(query).value: query for query in queries}.values():
                yield from view.ask(query.kind, phrases=pair)


def _join_names(
    rng: np.random.Generator, first: list[str], second: list[str], limit: int
) -> Iterator[tuple[str, str]]:
    if first is second:
        yield from sample_pairs(rng, first, limit)
        return
    total = len(first) * len(second)
    for number in rng.choice(total, size=min(limit, total), replace=False).tolist():
        yield first[number // len(second)], second[number % len(second)]
