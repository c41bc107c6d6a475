"""Asks about a scene after changes of it, with answers of the changed scene."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from itertools import pairwise

import numpy as np

from osmabench_ros.scenes.changes import Change
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.relations import LIMITS
from osmabench_ros.semantics.scene_graph import RelationType, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.hypo3d import described_change
from osmabench_ros.suites.hypo3d.hypotheses import (
    DEFAULT_CHANGES,
    Hypothesis,
    anchors_of,
    chosen_hypotheses,
    whole_view,
)
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.evaluation import UNSEEABLE
from osmabench_ros.vqa.exact.generation import with_neighbour_margins
from osmabench_ros.vqa.exact.view import label_of, shuffled
from osmabench_ros.vqa.kinds import Kind, Query, QueryKind
from osmabench_ros.vqa.questions import (
    AnswerType,
    AnswerValue,
    Question,
    make_question,
    question_id,
)
from osmabench_ros.vqa.wording import parsed, worded

SUITE = 'hypo3d'
PER_KIND = 6
"""Questions of a kind about a change, at most."""


class Hypo3DRun(str, Enum):
    """How a question meets a map: with which change made, and which one described.

    TOLD: with the change in words, about the scene after it. UNCHANGED: with none, about the
    scene that was mapped. IRRELEVANT: with a change in words that leaves the answer as it is.
    REMAPPED: as TOLD, but without words, because the changed scene itself was mapped.
    """

    TOLD = 'told'
    UNCHANGED = 'unchanged'
    IRRELEVANT = 'irrelevant'
    REMAPPED = 'remapped'


class Hypo3DKind(str, Enum):
    """Kinds of questions in Hypo3D."""

    SCALE = 'Scale'
    DIRECTION = 'Direction'
    SEMANTIC = 'Semantic'


_SCALE = frozenset(
    {
        QueryKind.COUNT,
        QueryKind.MORE_OF,
        QueryKind.DISTANCE,
        QueryKind.CLOSER,
    }
)
_REACH_M = {
    RelationType.NEXT_TO.value: LIMITS.next_to_m,
    RelationType.NEAR.value: LIMITS.near_m,
}
_TOLERANCE_M = 0.3
_NEAREST = 16
"""Things around the changed one that questions are about."""


@dataclass(frozen=True)
class _Asked:
    """A question text with the way to answer it from a graph."""

    kind: Hypo3DKind
    text: str
    answer_type: AnswerType
    answer: Callable[[GraphReader], AnswerValue | None]
    phrases: tuple[str, ...]
    tolerance: float = 0.0


def hypothetical_questions(
    scene: Scene,
    truth: GroundTruth,
    *,
    scene_key: str,
    seed: int,
    count: int = DEFAULT_CHANGES,
) -> tuple[list[Question], list[Change]]:
    """Choose changes of a scene and generate questions of three runs about them, seeded.

    The questions are of `Hypo3DRun` UNCHANGED, TOLD and IRRELEVANT; the category is a
    `Hypo3DKind`, the provenance has `run`, `change` (its type), `item` (equal in all runs),
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
        for question in builder.questions(made, others):
            noted = {**question.provenance, 'number': str(number)}
            found.setdefault(question.id, replace(question, provenance=noted))
    return list(found.values()), [made.change for made in hypotheses]


class _Builder:
    def __init__(self, scene: Scene, truth: GroundTruth, scene_key: str, seed: int) -> None:
        self._scene, self._truth, self._key, self._seed = scene, truth, scene_key, seed
        self._vocabulary = tuple(scene.label_set.by_name)
        self._seen = frozenset(truth.seen_instances)
        # Hidden attributes must not be needed, not even to distinguish objects.
        visible = [g.drop_attributes(UNSEEABLE) for g in (truth.visible_graph,) if g]
        self._before = [truth.graph, truth.fair_graph, *visible]
        self._readers_before = self._make_readers(self._before, self._seen)
        view = whole_view(scene, truth.graph)
        self._names = view.names
        self._anchors = anchors_of(view, self._seen)
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
            graph = described_change.apply_to_graph(
                reader.graph, made.described, reader.named, new_id=max(new, default=None)
            )
            if graph is None:
                return None
            graphs.append(graph)
        return self._make_readers(graphs, self._seen | new)

    def questions(self, made: Hypothesis, others: Sequence[Hypothesis]) -> Iterator[Question]:
        """Yield the questions about one change in all runs."""
        if not (made.touched & self._truth.graph.by_id.keys()) <= self._seen:
            return
        after = self._after(made)
        if after is None:
            return
        for kind in Hypo3DKind:
            known = [
                (asked, now, _find_agreed_answer(asked, self._readers_before))
                for asked in self._draw_questions(made, kind)
                if (now := _find_agreed_answer(asked, after)) is not None
            ]
            # Questions with a changed answer come first; sorting keeps the order of the rest.
            known.sort(key=lambda item: not _is_affected(item[0], item[1], item[2]))
            sentence = made.described.sentence
            for asked, now, was in known[:PER_KIND]:
                yield self._make_question(asked, Hypo3DRun.TOLD, made, now, was, sentence)
                if was is not None:
                    yield self._make_question(asked, Hypo3DRun.UNCHANGED, made, was, was, '')
                    yield from self._ask_irrelevant(asked, made, was, others)

    def _ask_irrelevant(
        self,
        asked: _Asked,
        made: Hypothesis,
        was: AnswerValue,
        others: Sequence[Hypothesis],
    ) -> Iterator[Question]:
        """Yield a question with the description of a change that has nothing to do with it."""
        for other in others:
            if {other.described.thing, other.described.other} & set(asked.phrases):
                continue
            after = self._after(other)
            if after is not None and _find_agreed_answer(asked, after) == was:
                sentence = other.described.sentence
                yield self._make_question(asked, Hypo3DRun.IRRELEVANT, made, was, was, sentence)
                return

    def _draw_questions(self, made: Hypothesis, kind: Hypo3DKind) -> list[_Asked]:
        """Return questions of a kind, about changed objects first, in a seeded order."""
        rng = np.random.default_rng([self._seed, 5, *made.described.sentence.encode()])
        change, graph = made.described, self._truth.graph
        after = whole_view(made.scene, made.graph).names
        # Only objects with the same unambiguous name before and after.
        same = {name: key for key, name in self._names.items() if after.get(key) == name}
        thing = change.thing if change.thing in same else ''
        key = min(made.touched)
        center = graph.by_id.get(key, made.graph.by_id.get(key))
        near = sorted(
            (name for name, key in same.items() if key in self._seen and name != thing),
            key=lambda name: (_measure_distance_m(graph.by_id[same[name]], center), name),
        )[:_NEAREST]
        if kind is Hypo3DKind.DIRECTION:
            ways = [way for other in near for way in ((thing, other), (other, thing))]
            return [self._ask_direction(*way) for way in ways if thing and self._anchors]
        labels = sorted(
            {label_of(n) for key in made.touched for n in _find_nodes(self, made, key)}
        )
        queries = list(_list_queries(change, thing, labels, near))
        chosen = [item for item in queries if (item.kind in _SCALE) == (kind is Hypo3DKind.SCALE)]
        return [self._word_question(item, kind) for item in _take_turns(shuffled(rng, chosen))]

    def _ask_direction(self, thing: str, origin: str) -> _Asked:
        text = described_change.direction_question(thing, origin, self._anchors)

        def answer(reader: GraphReader) -> AnswerValue | None:
            return described_change.direction_in(reader, thing, origin, self._anchors) or None

        return _Asked(Hypo3DKind.DIRECTION, text, AnswerType.TEXT, answer, (thing, origin))

    def _word_question(self, query: Query, kind: Hypo3DKind) -> _Asked:
        text = worded(query, 0)
        assert parsed(text) == query, text
        tolerance = _TOLERANCE_M if query.kind is QueryKind.DISTANCE else 0.0
        kind_of = query.kind.answer_type

        def answer(reader: GraphReader) -> AnswerValue | None:
            value = reader.answer(query)
            return None if value == 'no' and _is_nearly(query, reader) else value

        return _Asked(kind, text, kind_of, answer, query.phrases, tolerance)

    def _make_question(
        self,
        asked: _Asked,
        run: Hypo3DRun,
        made: Hypothesis,
        answer: AnswerValue,
        was: AnswerValue | None,
        change: str,
    ) -> Question:
        affected = run is Hypo3DRun.TOLD and _is_affected(asked, answer, was)
        return make_question(
            SUITE, self._key, asked.text, asked.answer_type, answer,
            key=f'{change}\n{asked.text}', category=asked.kind.value, tolerance=asked.tolerance,
            nodes=sorted(made.touched & self._truth.graph.by_id.keys()), context_change=change,
            provenance={
                'generator': 'hypo3d/1',
                'seed': str(self._seed),
                'run': run.value,
                'change': made.described.type.value,
                'item': question_id(SUITE, self._key, asked.text),
                'affected': 'yes' if affected else 'no',
                'changed_scene': made.scene.name,
            },
        )  # fmt: skip


def _find_nodes(builder: _Builder, made: Hypothesis, key: int) -> list[SceneNode]:
    known = (made.graph.by_id.get(key), builder._truth.graph.by_id.get(key))
    return [node for node in known if node is not None and node.label]


def _list_queries(
    change: described_change.DescribedChange,
    thing: str,
    labels: Sequence[str],
    others: Sequence[str],
) -> Iterator[Query]:
    """Yield possible questions about a change and the objects around it; `thing` may be ''."""
    for label in labels:
        yield Query(QueryKind.COUNT, (label,))
        yield Query(QueryKind.EXISTS, (label,))
        yield Query(QueryKind.ABSENT, (label,))
    for first, second in pairwise(labels):
        yield Query(QueryKind.MORE_OF, (first, second))
        yield Query(QueryKind.BOTH, (first, second))
    if not thing:
        return
    yield Query(QueryKind.SUPPORT_OF, (thing,))
    for first, second in pairwise(others):
        yield Query(QueryKind.CLOSER, (first, second, thing))
    for other in others:
        yield Query(QueryKind.DISTANCE, (thing, other))
        yield Query(QueryKind.RELATED, (thing, other), RelationType.NEXT_TO.value)
        yield Query(QueryKind.RELATED, (thing, other), RelationType.NEAR.value)
    if change.type is described_change.ChangeType.ATTRIBUTE:
        yield Query(QueryKind.COLOR_OF, (thing,))
        yield Query(QueryKind.HAS_COLOR, (thing,), change.color)
        yield Query(QueryKind.HAS_COLOR, (thing,), 'white' if change.color != 'white' else 'black')


def _is_nearly(query: Query, reader: GraphReader) -> bool:
    """Return whether objects are as close as a relation wants, and are only not called so."""
    reach_m = _REACH_M.get(query.word) if query.kind is QueryKind.RELATED else None
    boxes = [node.box for phrase in query.phrases if (node := reader.named(phrase)) and node.box]
    return reach_m is not None and len(boxes) == 2 and boxes[0].measure_gap(boxes[1]) <= reach_m


def _is_affected(asked: _Asked, now: AnswerValue, was: AnswerValue | None) -> bool:
    """Return whether a change changes an answer; one that there was none to before does not."""
    return was is not None and not same_answer(now, was, asked.tolerance)


def _measure_distance_m(first: SceneNode, second: SceneNode | None) -> float:
    if first.box is None or second is None or second.box is None:
        return float('inf')
    return float(np.linalg.norm(first.box.center - second.box.center))


def _take_turns(queries: Sequence[Query]) -> list[Query]:
    """Return queries so that every kind comes before any comes twice."""
    seen: dict[Kind, int] = {}
    ranked = []
    for position, query in enumerate(queries):
        turn = seen.get(query.kind, 0)
        seen[query.kind] = turn + 1
        ranked.append((turn, position, query))
    return [query for _, _, query in sorted(ranked, key=lambda item: item[:2])]


def _find_agreed_answer(asked: _Asked, readers: Sequence[GraphReader]) -> AnswerValue | None:
    """Return the answer of the first graph if the others give it too, else None."""
    answers = [asked.answer(reader) for reader in readers]
    first = answers[0]
    if first is None or any(
        item is None or not same_answer(item, first, asked.tolerance / 2) for item in answers
    ):
        return None
    return first


def same_answer(first: AnswerValue, second: AnswerValue, tolerance: float) -> bool:
    """Return whether two answers are equal, numbers within a tolerance."""
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return abs(first - second) <= tolerance
    return first == second
