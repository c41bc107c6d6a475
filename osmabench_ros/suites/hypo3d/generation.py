"""Chooses changes of a scene, and asks about it after them, with answers of the changed scene."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache, partial
from itertools import cycle, islice, pairwise
from operator import itemgetter

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes import changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.relations import LIMITS
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.hypo3d.described_change import (
    HELD,
    ChangeType,
    DescribedChange,
    apply_to_graph,
    find_touched_nodes,
)
from osmabench_ros.suites.hypo3d.frame import (
    DIRECTION,
    Side,
    chosen_anchors,
    frame_of,
    say_anchors,
)
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.english import BASIC_COLORS, confusable
from osmabench_ros.vqa.evaluation import UNSEEABLE
from osmabench_ros.vqa.exact.generation import same_answer, with_neighbour_margins
from osmabench_ros.vqa.exact.view import SceneView, color_of, label_of, shuffled
from osmabench_ros.vqa.kinds import Kind, Query, QueryKind
from osmabench_ros.vqa.questions import AnswerValue, Question, make_question, question_id
from osmabench_ros.vqa.wording import parsed, worded

SUITE = 'hypo3d'
DEFAULT_CHANGES = 3
PER_KIND = 6
"""Questions of a kind about a change, at most."""

_DISTANCES_M = (0.6, 0.8, 1.0, 1.2, 1.5)
_MOST_TRIALS = 30
_NEAREST = 16
"""Objects around the changed one that questions are about."""

_REACH_M = {
    RelationType.NEXT_TO.value: LIMITS.next_to_m,
    RelationType.NEAR.value: LIMITS.near_m,
}
_TOLERANCES_M = {QueryKind.DISTANCE: 0.3}


class Hypo3DRun(str, Enum):
    """Which change is made, and which one is described, when a question is asked.

    TOLD: with the change in words, about the scene after it. UNCHANGED: with none, about the
    scene that was mapped. IRRELEVANT: with a change in words that leaves the answer as it is.
    REMAPPED: as TOLD, but without words, because the changed scene itself was mapped.
    """

    TOLD = 'told'
    UNCHANGED = 'unchanged'
    IRRELEVANT = 'irrelevant'
    REMAPPED = 'remapped'


CATEGORIES: Mapping[str, tuple[Kind, ...]] = {
    'Scale': (QueryKind.COUNT, QueryKind.MORE_OF, QueryKind.DISTANCE, QueryKind.CLOSER),
    'Direction': (DIRECTION,),
    'Semantic': (
        QueryKind.EXISTS,
        QueryKind.ABSENT,
        QueryKind.BOTH,
        QueryKind.SUPPORT_OF,
        QueryKind.RELATED,
        QueryKind.COLOR_OF,
        QueryKind.HAS_COLOR,
    ),
}
"""Types of questions in Hypo3D, and the kinds that are asked of each."""


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A change as it is made and described, and the scene and its graph after it."""

    change: changes.Change
    described: DescribedChange
    scene: Scene
    graph: SceneGraph
    touched: frozenset[int]


def whole_view(scene: Scene, graph: SceneGraph) -> SceneView:
    """Return the view of a scene and its exact graph of which everything is seen."""
    return SceneView(graph, graph.by_id, label_set=scene.label_set)


def anchors_of(view: SceneView, seen: Collection[int]) -> dict[Side, str]:
    """Return seen objects at the sides of a scene, from which directions follow."""
    names = {key: name for key, name in view.names.items() if key in seen}
    return chosen_anchors(view.graph, names)


def chosen_hypotheses(
    scene: Scene,
    graph: SceneGraph,
    seen: Collection[int],
    seed: int,
    count: int = DEFAULT_CHANGES,
) -> list[Hypothesis]:
    """Choose changes of a scene that can be made and described without ambiguity, seeded.

    Only `seen` instances are changed, or named by a description. Types differ as far as there are
    five; fewer than `count` come where none fits.
    """
    rng = np.random.default_rng([seed, 3])
    chooser = _Chooser(scene, whole_view(scene, graph), frozenset(seen), rng)
    # What moves can be asked about in all kinds; so there is always a movement.
    rest = [kind for kind in ChangeType if kind is not ChangeType.MOVEMENT]
    order = [ChangeType.MOVEMENT, *shuffled(rng, rest)]
    made = map(chooser.choose, islice(cycle(order), max(count, len(order))))
    return list(islice(filter(None, made), count))


class _Chooser:
    """Draws changes of one scene; no object is part of two of them."""

    def __init__(
        self, scene: Scene, view: SceneView, seen: frozenset[int], rng: np.random.Generator
    ) -> None:
        self._scene = scene
        self._view = view
        self._rng = rng
        self._named = [node for node in view.named_boxed if node.id in seen]
        held = [edge for edge in view.graph.edges if edge.type in HELD]
        self._holders = {edge.source: view.graph.by_id[edge.target] for edge in held}
        self._laden = {edge.target for edge in held}
        self._standing = {edge.source for edge in held if edge.type == RelationType.ON.value}
        self._anchors = anchors_of(view, seen)
        self._used = set(self._anchors.values())
        self._find = GraphReader(view.graph).named
        self._frame = frame_of(view.graph, self._anchors, self._find)
        self._draws: Mapping[ChangeType, Callable[[], Iterator[DescribedChange]]] = {
            ChangeType.MOVEMENT: self._draw_moves,
            ChangeType.REMOVAL: self._draw_removals,
            ChangeType.ATTRIBUTE: self._draw_paintings,
            ChangeType.ADDITION: self._draw_additions,
            ChangeType.REPLACEMENT: self._draw_replacements,
        }

    def choose(self, kind: ChangeType) -> Hypothesis | None:
        """Return the first change of a kind that the scene admits, None if none does."""
        before = self._view.graph
        for described in islice(self._draws[kind](), _MOST_TRIALS):
            by_rule = apply_to_graph(before, described, self._find)
            if by_rule is None:
                continue
            change = self._make_change(described)
            try:
                scene = changes.apply_changes(self._scene, (change,))
            except SceneError:
                continue
            self._used |= {described.thing, described.other}
            touched = find_touched_nodes(before, by_rule)
            return Hypothesis(change, described, scene, build_ground_truth_graph(scene), touched)
        return None

    def _make_change(self, described: DescribedChange) -> changes.Change:
        """Return a described change as it is made to the scene."""
        nodes = {self._view.name(node): node for node in self._named}
        thing = nodes[described.thing]
        other = nodes.get(described.other)
        if described.type is ChangeType.REMOVAL:
            return changes.Remove(kind='remove', object=thing.source_id)
        if described.type is ChangeType.ATTRIBUTE:
            return changes.Recolor(kind='recolor', object=thing.source_id, color=described.color)
        if described.type is ChangeType.REPLACEMENT:
            assert other is not None
            return changes.Replace(kind='replace', object=thing.source_id, like=other.source_id)
        assert self._frame is not None
        shift = self._frame.axis(described.side) * described.distance_m
        if other is None:
            x, y, z = shift.tolist()
            return changes.Move(kind='move', object=thing.source_id, offset_m=(x, y, z))
        x, y, _ = (other.known_box.center + shift).tolist()
        z = float(thing.known_box.minimum[2])
        name = f'{thing.source_id}_added'
        return changes.Add(kind='add', name=name, like=thing.source_id, position_m=(x, y, z))

    def _list_free(self) -> list[SceneNode]:
        """Return named objects that no change has touched, and that hold nothing."""
        nodes = [node for node in self._named if node.id not in self._laden]
        names = self._view.names
        return shuffled(self._rng, [node for node in nodes if names[node.id] not in self._used])

    def _draw_way(self) -> tuple[Side, float]:
        side = tuple(Side)[int(self._rng.integers(4))]
        return side, _DISTANCES_M[int(self._rng.integers(len(_DISTANCES_M)))]

    def _draw_moves(self) -> Iterator[DescribedChange]:
        for node in self._list_free() if self._frame else ():
            if node.id in self._standing:
                name = self._view.name(node)
                way = self._draw_way()
                yield DescribedChange(ChangeType.MOVEMENT, name, '', *way, anchors=self._anchors)

    def _draw_removals(self) -> Iterator[DescribedChange]:
        for node in self._list_free():
            yield DescribedChange(ChangeType.REMOVAL, self._view.name(node))

    def _draw_paintings(self) -> Iterator[DescribedChange]:
        for node in self._list_free():
            name = self._view.name(node)
            old = color_of(node)
            new = [color for color in sorted(BASIC_COLORS) if old and not confusable(old, color)]
            # The name of an object must not say the colour that it no longer has.
            if new and name == label_of(node):
                color = shuffled(self._rng, new)[0]
                yield DescribedChange(ChangeType.ATTRIBUTE, name, color=color)

    def _draw_additions(self) -> Iterator[DescribedChange]:
        for like in self._list_free() if self._frame else ():
            name = self._view.name(like)
            on_floor = (
                like.id in self._standing and self._holders[like.id].kind is NodeKind.BACKGROUND
            )
            if not on_floor or name != label_of(like):
                continue
            for other in shuffled(self._rng, self._named)[:8]:
                if other is not like:
                    other_name = self._view.name(other)
                    way = self._draw_way()
                    yield DescribedChange(
                        ChangeType.ADDITION, name, other_name, *way, anchors=self._anchors
                    )

    def _draw_replacements(self) -> Iterator[DescribedChange]:
        for old in self._list_free():
            for new in self._list_free()[:4]:
                name = self._view.name(new)
                label = label_of(new)
                if label_of(old) != label == name and {old.id, new.id} <= self._standing:
                    yield DescribedChange(ChangeType.REPLACEMENT, self._view.name(old), name)


def hypothetical_questions(
    scene: Scene,
    truth: GroundTruth,
    *,
    scene_key: str,
    seed: int,
    count: int = DEFAULT_CHANGES,
) -> tuple[list[Question], list[changes.Change]]:
    """Choose changes of a scene and generate questions of three runs about them, seeded.

    The questions are of `Hypo3DRun` UNCHANGED, TOLD and IRRELEVANT; the category is one of
    CATEGORIES, the provenance has `run`, `change` (its type), `item` (equal in all runs),
    `affected`, 'yes' where the change changes the answer, `number` (of the change among those that
    are returned), and `changed_scene`, the name of the scene after the change. Answers of TOLD
    come from the graph of the changed meshes. Questions are only about objects that the path saw,
    and the visible parts give the same answer after the change is made to them by rule. The
    changes are for `changed_scene`, in order.
    """
    hypotheses = chosen_hypotheses(scene, truth.graph, truth.seen_instances, seed, count)
    builder = _Builder(scene, truth, scene_key, seed)
    found: dict[str, Question] = {}
    for number, made in enumerate(hypotheses):
        others = [item for item in hypotheses if item is not made]
        for question in builder.list_questions(made, others):
            noted = {**question.provenance, 'number': str(number)}
            found.setdefault(question.id, replace(question, provenance=noted))
    return list(found.values()), [made.change for made in hypotheses]


class _Builder:
    def __init__(self, scene: Scene, truth: GroundTruth, scene_key: str, seed: int) -> None:
        self._truth = truth
        self._key = scene_key
        self._seed = seed
        self._vocabulary = tuple(scene.label_set.by_name)
        self._seen = frozenset(truth.seen_instances)
        # Hidden attributes must not be needed, not even to distinguish objects.
        visible = [g.drop_attributes(UNSEEABLE) for g in (truth.visible_graph,) if g]
        self._before = [truth.graph, truth.evaluated_graph, *visible]
        self._readers_before = self._make_readers(self._before, self._seen)
        view = whole_view(scene, truth.graph)
        self._names = view.names
        self._facing = say_anchors(anchors_of(view, self._seen))
        self._after = cache(self._make_readers_after)

    def _make_readers(self, graphs: Sequence[SceneGraph], ids: Iterable[int]) -> list[GraphReader]:
        """Return readers of graphs, with nearness a little farther and a little closer too."""
        every = [*graphs, *with_neighbour_margins(graphs[0])]
        return [GraphReader(graph, self._vocabulary, ids=ids) for graph in every]

    def _make_readers_after(self, made: Hypothesis) -> list[GraphReader] | None:
        """Return readers of the changed scene, and of the visible parts changed by rule."""
        new = made.graph.by_id.keys() - self._truth.graph.by_id.keys()
        graphs = [made.graph]
        for reader in self._readers_before[1 : len(self._before)]:
            graph = apply_to_graph(
                reader.graph, made.described, reader.named, new_id=max(new, default=None)
            )
            if graph is None:
                return None
            graphs.append(graph)
        return self._make_readers(graphs, self._seen | new)

    def list_questions(self, made: Hypothesis, others: Sequence[Hypothesis]) -> Iterator[Question]:
        """Yield the questions about one change in all runs."""
        if not (made.touched & self._truth.graph.by_id.keys()) <= self._seen:
            return
        after, change = self._after(made), made.described.sentence
        if after is None:
            return
        for category in CATEGORIES:
            known = []
            for query in self._draw_queries(made, category):
                now, was = (_find_answer(query, g) for g in (after, self._readers_before))
                if now is not None:
                    known.append((not _is_affected(query, now, was), query, now, was))
            # Questions with a changed answer come first; sorting keeps the order of the rest.
            for same, query, now, was in sorted(known, key=itemgetter(0))[:PER_KIND]:
                make = partial(self._make_question, query, category, made)
                yield make(Hypo3DRun.TOLD, now, change, affected=not same)
                if was is None:
                    continue
                yield make(Hypo3DRun.UNCHANGED, was, '')
                for other in others:
                    if self._is_irrelevant(query, other, was):
                        yield make(Hypo3DRun.IRRELEVANT, was, other.described.sentence)
                        break

    def _is_irrelevant(self, query: Query, other: Hypothesis, was: AnswerValue) -> bool:
        """Return whether another change has nothing to do with a question."""
        if {other.described.thing, other.described.other} & set(query.phrases):
            return False
        after = self._after(other)
        return after is not None and _find_answer(query, after) == was

    def _draw_queries(self, made: Hypothesis, category: str) -> list[Query]:
        """Return queries of a category, about changed objects first, in a seeded order."""
        rng = np.random.default_rng([self._seed, 5, *made.described.sentence.encode()])
        before, after = self._truth.graph.by_id, made.graph.by_id
        names = whole_view(made.scene, made.graph).names
        # Only objects with the same unambiguous name before and after.
        same = {name: key for key, name in self._names.items() if names.get(key) == name}
        thing = made.described.thing if made.described.thing in same else ''
        key = min(made.touched)
        center = before.get(key, after.get(key))
        near = sorted(
            (name for name, key in same.items() if key in self._seen and name != thing),
            key=lambda name: (_measure_distance_m(before[same[name]], center), name),
        )[:_NEAREST]
        touched = (nodes[key] for key in made.touched for nodes in (after, before) if key in nodes)
        labels = sorted({label_of(node) for node in touched if node.label})
        chosen = [
            query
            for query in _list_queries(made.described, thing, labels, near, self._facing)
            if query.kind in CATEGORIES[category]
        ]
        return chosen if category == 'Direction' else _take_turns(shuffled(rng, chosen))

    def _make_question(
        self,
        query: Query,
        category: str,
        made: Hypothesis,
        run: Hypo3DRun,
        answer: AnswerValue,
        change: str,
        *,
        affected: bool = False,
    ) -> Question:
        text = worded(query, 0)
        assert parsed(text) == query, text
        return make_question(
            SUITE, self._key, text, query.kind.answer_type, answer,
            key=f'{change}\n{text}', category=category,
            tolerance=_TOLERANCES_M.get(query.kind, 0.0),
            nodes=sorted(made.touched & self._truth.graph.by_id.keys()), context_change=change,
            provenance={
                'generator': 'hypo3d/1',
                'seed': str(self._seed),
                'run': run.value,
                'change': made.described.type.value,
                'item': question_id(SUITE, self._key, text),
                'affected': 'yes' if affected else 'no',
                'changed_scene': made.scene.name,
            },
        )  # fmt: skip


def _list_queries(
    change: DescribedChange, thing: str, labels: Sequence[str], others: Sequence[str], facing: str
) -> Iterator[Query]:
    """Yield possible questions about a change and the objects around it; `thing` may be ''."""
    for label in labels:
        for kind in (QueryKind.COUNT, QueryKind.EXISTS, QueryKind.ABSENT):
            yield Query(kind, (label,))
    for pair in pairwise(labels):
        yield Query(QueryKind.MORE_OF, pair)
        yield Query(QueryKind.BOTH, pair)
    if not thing:
        return
    yield Query(QueryKind.SUPPORT_OF, (thing,))
    for first, second in pairwise(others):
        yield Query(QueryKind.CLOSER, (first, second, thing))
    for other in others:
        yield Query(QueryKind.DISTANCE, (thing, other))
        for relation in _REACH_M:
            yield Query(QueryKind.RELATED, (thing, other), relation)
        for pair in ((thing, other), (other, thing)) if facing else ():
            yield Query(DIRECTION, pair, facing)
    if change.type is ChangeType.ATTRIBUTE:
        yield Query(QueryKind.COLOR_OF, (thing,))
        for color in (change.color, 'white' if change.color != 'white' else 'black'):
            yield Query(QueryKind.HAS_COLOR, (thing,), color)


def _is_nearly(query: Query, reader: GraphReader) -> bool:
    """Return whether objects are as close as a relation wants, and are only not called so."""
    reach_m = _REACH_M.get(query.word) if query.kind is QueryKind.RELATED else None
    boxes = [node.box for phrase in query.phrases if (node := reader.named(phrase)) and node.box]
    return reach_m is not None and len(boxes) == 2 and boxes[0].measure_gap(boxes[1]) <= reach_m


def _is_affected(query: Query, now: AnswerValue, was: AnswerValue | None) -> bool:
    """Return whether a change changes an answer; one that there was none to before does not."""
    tolerance = _TOLERANCES_M.get(query.kind, 0.0)
    return was is not None and not same_answer(now, was, tolerance)


def _measure_distance_m(first: SceneNode, second: SceneNode | None) -> float:
    if first.box is None or second is None or second.box is None:
        return float('inf')
    return float(np.linalg.norm(first.box.center - second.box.center))


def _take_turns(queries: Sequence[Query]) -> list[Query]:
    """Return queries so that every kind comes before any comes twice."""
    seen: Counter[Kind] = Counter()
    ranked = []
    for query in queries:
        ranked.append((seen[query.kind], query))
        seen[query.kind] += 1
    return [query for _, query in sorted(ranked, key=itemgetter(0))]


def _find_answer(query: Query, readers: Sequence[GraphReader]) -> AnswerValue | None:
    """Return the answer of the first graph if the others give it too, else None."""
    answers = []
    for reader in readers:
        value = reader.execute(query).value
        answers.append(None if value == 'no' and _is_nearly(query, reader) else value)
    first = answers[0]
    tolerance = _TOLERANCES_M.get(query.kind, 0.0) / 2
    if first is None or not all(same_answer(item, first, tolerance) for item in answers):
        return None
    return first
