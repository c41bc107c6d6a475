"""Questions about existence and about spatial and functional relations."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneNode
from osmabench_ros.vqa.english import confusable
from osmabench_ros.vqa.exact.view import (
    Draft,
    SceneView,
    color_of,
    drafted,
    is_basic,
    label_of,
    sample_pairs,
    shuffled,
)
from osmabench_ros.vqa.kinds import ATTACHED, IN, NEXT_TO, ON, Kind, Query, QueryKind
from osmabench_ros.vqa.questions import Category

_KINDS = (QueryKind.EXISTS, QueryKind.ABSENT)
CLOSE = (NEXT_TO, RelationType.NEAR.value)
UNDER = RelationType.UNDER.value

_FAR_M = {ON: 0.5, IN: 0.5, UNDER: 0.5, ATTACHED: 0.5, CLOSE[0]: 2.0, CLOSE[1]: 3.0}
"""Two boxes at least this far apart are certainly not so related."""

_OVERHEAD_M = 0.5


def spatial(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask whether two objects are related, right and clearly wrong, and for related objects."""
    for relation in _FAR_M:
        pairs = [pair for pair in _pairs(view, relation) if not _is_overhead(relation, *pair)]
        pairs = shuffled(rng, pairs)[:limit]
        for source, target in pairs:
            yield view.about(QueryKind.RELATED, source, target, word=relation, answer=True)
        yield from _wrong(view, rng, relation, pairs)
    for relation in (ON, IN, UNDER):
        yield from _sole(view, relation, QueryKind.RELATED_TO)


def functional(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask for the one object that supports, is supported by, contains or holds another."""
    drafts = [
        *_holders(view, ON, QueryKind.SUPPORT_OF),
        *_holders(view, IN, QueryKind.CONTAINER_OF),
        *_holders(view, ATTACHED, QueryKind.FIXED_TO),
        *_sole(view, ON, QueryKind.SUPPORTED_BY),
    ]
    yield from shuffled(rng, drafts)[:limit]


def _pairs(view: SceneView, relation: str) -> Iterator[tuple[SceneNode, SceneNode]]:
    """Yield the related pairs that can both be named."""
    for source in view.named:
        for target_id in view.index.targets(relation, source.id):
            if target_id in view.names:
                yield source, view.index.by_id[target_id]


def _wrong(
    view: SceneView,
    rng: np.random.Generator,
    relation: str,
    pairs: list[tuple[SceneNode, SceneNode]],
) -> Iterator[Draft]:
    """Make wrong pairs by exchanging ends of true ones, so that both ends stay plausible."""
    targets = list({target.id: target for _, target in pairs}.values())
    others = [node for node in view.named_boxed if _could_be_target(view, relation, node)]
    for source, target in pairs:
        for other in [*shuffled(rng, targets)[:6], *shuffled(rng, others)[:6]]:
            if other.id not in (source.id, target.id) and _clearly_not(
                view, relation, source, other
            ):
                yield view.about(QueryKind.RELATED, source, other, word=relation, answer=False)
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
    return (
        node.box is not None
        and bool(node.box.size[:2].min() >= 0.3)
        and bool(node.box.size[2] <= 1.3)
    )


def _only_object(view: SceneView, ids: tuple[int, ...]) -> SceneNode | None:
    """Return the one object among ids if its label may be an answer."""
    if len(ids) != 1:
        return None
    node = view.wide.by_id[ids[0]]
    is_nameable = node.kind is NodeKind.OBJECT and node.label and label_of(node) in view.by_label
    return node if is_nameable else None


def _sole(view: SceneView, relation: str, kind: Kind) -> Iterator[Draft]:
    """Yield questions for the one object that has a relation to a named one."""
    for target in view.named:
        source = _only_object(view, view.wide.sources(relation, target.id))
        # In a pile, the objects on top of it would be answers as well.
        if source is None or view.wide.sources(relation, source.id):
            continue
        if relation == UNDER and view.wide.targets(ON, target.id):
            continue
        # Books in a bookshelf are on it, and borne by it, to most people.
        if relation == ON and view.wide.sources(IN, target.id):
            continue
        word = relation if kind is QueryKind.RELATED_TO else ''
        query = Query(kind, (view.name(target),), word)
        yield drafted(query, (source, target), label_of(source))


def _holders(view: SceneView, relation: str, kind: Kind) -> Iterator[Draft]:
    """Yield questions for the one object that a named one is on, in or fixed to."""
    for source in view.named:
        target = _only_object(view, view.wide.targets(relation, source.id))
        if target is None or label_of(target) == label_of(source):
            continue
        yield drafted(Query(kind, (view.name(source),)), (source, target), label_of(target))


def present(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about classes of the scene, half of the time whether they are missing."""
    phrases = dict.fromkeys(view.by_label)
    phrases.update(dict.fromkeys(view.names.values()))
    nodes_of = {name: (node,) for node in view.named for name in (view.name(node),)}
    for phrase in shuffled(rng, phrases)[:limit]:
        nodes = view.by_label.get(phrase, nodes_of.get(phrase, ()))[:1]
        for kind in _KINDS:
            yield drafted(Query(kind, (phrase,)), nodes, kind is QueryKind.EXISTS)


def absent(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Ask about plausible classes, and colours of classes, that the scene does not have."""
    phrases = [*view.absent, *_wrong_colors(view, rng)]
    for phrase in shuffled(rng, phrases)[:limit]:
        for kind in _KINDS:
            draft = drafted(Query(kind, (phrase,)), (), kind is QueryKind.ABSENT)
            yield replace(draft, category=Category.EXISTENCE_NEGATIVE)


def _wrong_colors(view: SceneView, rng: np.random.Generator) -> list[str]:
    """Return classes of the scene in a colour of the scene that none of them has."""
    palette = sorted({color for node in view.objects if is_basic(color := color_of(node))})
    phrases = []
    for label, nodes in view.by_label.items():
        own = [color_of(node) for node in nodes]
        if view.has_rival(label) or '' in own:
            continue
        other = [c for c in palette if not any(confusable(c, color) for color in own)]
        phrases += [f'{color} {label}' for color in shuffled(rng, other)[:2]]
    return phrases


def logical(view: SceneView, rng: np.random.Generator, limit: int) -> Iterator[Draft]:
    """Join two existence questions so that neither half gives the answer away."""
    there = list(view.by_label)
    missing = list(view.absent)
    if not there or not missing:
        return
    per_case = max(1, limit // 8)
    for has_first, has_second in ((True, True), (True, False), (False, True), (False, False)):
        first_pool, second_pool = (there if has else missing for has in (has_first, has_second))
        for first, second in _join_names(rng, first_pool, second_pool, per_case):
            nodes = [view.by_label[x][0] for x in (first, second) if x in view.by_label]
            # One yes and one no of a pair: more would ask the same fact again.
            cases = shuffled(rng, _truth(has_first, has_second))
            for kind, answer in {a: (k, a) for k, a in cases}.values():
                yield drafted(Query(kind, (first, second)), nodes, answer)


def _truth(first: bool, second: bool) -> Iterator[tuple[Kind, bool]]:
    yield QueryKind.BOTH, first and second
    yield QueryKind.EITHER, first or second
    yield QueryKind.FIRST_ONLY, first and not second
    yield QueryKind.NEITHER, not (first or second)


def _join_names(
    rng: np.random.Generator, first: list[str], second: list[str], limit: int
) -> Iterator[tuple[str, str]]:
    if first is second:
        yield from sample_pairs(rng, first, limit)
        return
    total = len(first) * len(second)
    for number in rng.choice(total, size=min(limit, total), replace=False).tolist():
        yield first[number // len(second)], second[number % len(second)]
