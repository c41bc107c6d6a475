"""Chooses changes of a scene, and asks about it after them, with answers of the changed scene."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.changes import (
    Add,
    Change,
    ChangeType,
    Move,
    Recolor,
    Remove,
    Replace,
    changed_scene,
)
from osmabench_ros.scenes.ground_truth import ground_truth_graph
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.semantics.relations import with_neighbours_within
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.hypo3d.answering import GraphReader, direction_question
from osmabench_ros.suites.hypo3d.frame import Side, chosen_anchors, frame_of
from osmabench_ros.suites.hypo3d.told import ToldChange, changed_graph, touched_nodes
from osmabench_ros.vqa.english import BASIC_COLORS, confusable
from osmabench_ros.vqa.evaluation import UNSEEABLE
from osmabench_ros.vqa.exact.generation import NEIGHBOUR_MARGIN_M
from osmabench_ros.vqa.exact.view import SceneView, color_of, label_of, shuffled
from osmabench_ros.vqa.questions import (
    AnswerType,
    AnswerValue,
    Evidence,
    Query,
    QueryKind,
    Question,
    question_id,
)
from osmabench_ros.vqa.wording import parsed, worded

SUITE = 'hypo3d'
DEFAULT_CHANGES = 3
PER_KIND = 6
"""Questions of a kind about a change, at most."""

_DISTANCES_M = (0.6, 0.8, 1.0, 1.2, 1.5)
_MOST_TRIALS = 30
_HELD = (RelationType.ON.value, RelationType.IN.value, RelationType.ATTACHED_TO.value)


class Run(str, Enum):
    """How a question meets a map: with which change made, and which one told.

    TOLD: the change told, about the scene after it. UNCHANGED: none told, about the scene that was
    mapped. IRRELEVANT: a change told that leaves the answer as it is. REMAPPED: as TOLD, but
    nothing is told, because the changed scene itself was mapped.
    """

    TOLD = 'told'
    UNCHANGED = 'unchanged'
    IRRELEVANT = 'irrelevant'
    REMAPPED = 'remapped'


class Kind(str, Enum):
    """Kinds of questions in Hypo3D."""

    SCALE = 'Scale'
    DIRECTION = 'Direction'
    SEMANTIC = 'Semantic'


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A change as it is made and told, and the scene and its graph after it."""

    change: Change
    told: ToldChange
    scene: Scene
    graph: SceneGraph
    touched: frozenset[int]


def chosen_hypotheses(
    scene: Scene,
    graph: SceneGraph,
    seen: Collection[int],
    seed: int,
    count: int = DEFAULT_CHANGES,
) -> list[Hypothesis]:
    """Choose changes of a scene that can be made and told without ambiguity.

    Parameters
    ----------
    scene, graph : Scene, SceneGraph
        The scene and its exact graph.
    seen : collection of int
        Instances that may be changed, or that a change may be told by.
    seed : int
        The same arguments give the same changes.
    count : int
        Changes wanted, of different types as far as there are five; fewer where none fits.
    """
    view = SceneView(graph, graph.by_id, structure=_structure(scene))
    rng = np.random.default_rng([seed, 3])
    chooser = _Chooser(scene, view, frozenset(seen), rng)
    # What moves can be asked about in all kinds; so there is always a movement.
    rest = [kind for kind in ChangeType if kind is not ChangeType.MOVEMENT]
    order = [ChangeType.MOVEMENT, *shuffled(rng, rest)]
    found: list[Hypothesis] = []
    for number in range(max(count, len(order))):
        if len(found) == count:
            break
        made = chooser.hypothesis(order[number % len(order)])
        if made is not None:
            found.append(made)
    return found


def _structure(scene: Scene) -> list[str]:
    return [item.name for item in scene.label_set.classes if item.structure]


def _without(graph: SceneGraph, attributes: Collection[str]) -> SceneGraph:
    nodes = tuple(
        replace(n, attributes={k: v for k, v in n.attributes.items() if k not in attributes})
        for n in graph.nodes
    )
    return replace(graph, nodes=nodes)


def _anchors(view: SceneView, seen: Collection[int]) -> dict[Side, str]:
    names = {key: name for key, name in view.names.items() if key in seen}
    return chosen_anchors(view.graph, names)


class _Chooser:
    """Draws changes of one scene; no thing is touched by two of them."""

    def __init__(
        self, scene: Scene, view: SceneView, seen: frozenset[int], rng: np.random.Generator
    ) -> None:
        self._scene, self._view, self._rng = scene, view, rng
        self._named = [node for node in view.named_boxed if node.id in seen]
        edges = view.graph.edges
        self._holders = {edge.source: edge.target for edge in edges if edge.type in _HELD}
        self._laden = {edge.target for edge in edges if edge.type in _HELD}
        self._standing = {e.source for e in edges if e.type == RelationType.ON.value}
        self.anchors = _anchors(view, seen)
        self._used = set(self.anchors.values())
        self._reader = GraphReader(view.graph)
        self._draws: Mapping[ChangeType, Callable[[], Iterator[tuple[Change, ToldChange]]]] = {
            ChangeType.MOVEMENT: self._moves,
            ChangeType.REMOVAL: self._removals,
            ChangeType.ATTRIBUTE: self._paintings,
            ChangeType.ADDITION: self._additions,
            ChangeType.REPLACEMENT: self._replacements,
        }

    def hypothesis(self, kind: ChangeType) -> Hypothesis | None:
        """Return the first change of a kind that the scene admits, None if none does."""
        before = self._view.graph
        for number, (change, told) in enumerate(self._draws[kind]()):
            if number == _MOST_TRIALS:
                break
            by_rule = changed_graph(before, told, self._reader.named)
            if by_rule is None:
                continue
            try:
                scene = changed_scene(self._scene, (change,))
            except SceneError:
                continue
            self._used |= {told.thing, told.other}
            touched = touched_nodes(before, by_rule)
            return Hypothesis(change, told, scene, ground_truth_graph(scene), touched)
        return None

    def _free(self) -> list[SceneNode]:
        """Return named things that no change has touched, and that hold nothing."""
        nodes = [node for node in self._named if node.id not in self._laden]
        names = self._view.names
        return shuffled(self._rng, [node for node in nodes if names[node.id] not in self._used])

    def _moves(self) -> Iterator[tuple[Change, ToldChange]]:
        frame = frame_of(self._view.graph, self.anchors, self._reader.named)
        for node in self._free() if frame is not None else ():
            if node.id not in self._standing:
                continue
            side, distance = self._way()
            assert frame is not None
            x, y, z = (frame.axis(side) * distance).tolist()
            name = self._view.name(node)
            told = ToldChange(
                ChangeType.MOVEMENT, name, side=side, distance_m=distance, anchors=self.anchors
            )
            yield Move(kind='move', object=node.source_id, offset_m=(x, y, z)), told

    def _way(self) -> tuple[Side, float]:
        side = tuple(Side)[int(self._rng.integers(4))]
        return side, _DISTANCES_M[int(self._rng.integers(len(_DISTANCES_M)))]

    def _removals(self) -> Iterator[tuple[Change, ToldChange]]:
        for node in self._free():
            told = ToldChange(ChangeType.REMOVAL, self._view.name(node))
            yield Remove(kind='remove', object=node.source_id), told

    def _paintings(self) -> Iterator[tuple[Change, ToldChange]]:
        for node in self._free():
            name, old = self._view.name(node), color_of(node)
            new = [color for color in sorted(BASIC_COLORS) if old and not confusable(old, color)]
            # The name of a thing must not tell the colour that it does not have any more.
            if not new or name != label_of(node):
                continue
            color = shuffled(self._rng, new)[0]
            told = ToldChange(ChangeType.ATTRIBUTE, name, color=color)
            yield Recolor(kind='recolor', object=node.source_id, color=color), told

    def _additions(self) -> Iterator[tuple[Change, ToldChange]]:
        frame = frame_of(self._view.graph, self.anchors, self._reader.named)
        for like in self._free() if frame is not None else ():
            name = self._view.name(like)
            if self._holder_kind(like) is not NodeKind.BACKGROUND or name != label_of(like):
                continue
            for beside in shuffled(self._rng, self._named)[:8]:
                if beside is like or beside.box is None or like.box is None:
                    continue
                side, distance = self._way()
                assert frame is not None
                x, y, _ = (beside.box.center + frame.axis(side) * distance).tolist()
                where = (x, y, float(like.box.minimum[2]))
                told = ToldChange(
                    ChangeType.ADDITION,
                    name,
                    self._view.name(beside),
                    side,
                    distance,
                    anchors=self.anchors,
                )
                new = f'{like.source_id}_added'
                change = Add(kind='add', name=new, like=like.source_id, position_m=where)
                yield change, told

    def _replacements(self) -> Iterator[tuple[Change, ToldChange]]:
        for old in self._free():
            for new in self._free()[:4]:
                name = self._view.name(new)
                same = label_of(old) == label_of(new) or name != label_of(new)
                if same or not {old.id, new.id} <= self._standing:
                    continue
                told = ToldChange(ChangeType.REPLACEMENT, self._view.name(old), name)
                yield (
                    Replace(kind='replace', object=old.source_id, like=new.source_id),
                    told,
                )

    def _holder_kind(self, node: SceneNode) -> NodeKind | None:
        holder = self._holders.get(node.id)
        on = node.id in self._standing and holder is not None
        return self._view.graph.by_id[holder].kind if on and holder is not None else None


_SCALE = frozenset(
    {
        QueryKind.COUNT,
        QueryKind.MORE_OF,
        QueryKind.DISTANCE,
        QueryKind.CLOSER,
    }
)
_TOLERANCE_M = 0.3
_NEAREST = 16
"""Things around the changed one that questions are about."""


@dataclass(frozen=True)
class _Asked:
    """A question text with the way to answer it from a graph."""

    kind: Kind
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
    """Choose changes of a scene and generate questions of three runs about them.

    Parameters
    ----------
    scene : Scene
        The scene that is mapped.
    truth : GroundTruth
        Of the scene and the path through it; what that did not see is not asked about.
    scene_key : str
        Written into the questions.
    seed : int
        The same arguments give the same questions.
    count : int
        Changes.

    Returns
    -------
    questions : list of Question
        Those of `Run` UNCHANGED, TOLD and IRRELEVANT; the category is a `Kind`, the provenance has
        `run`, `change` (its type), `item` (equal in all runs), `affected`, 'yes' where the change
        changes the answer, and `changed_scene`, the name of the scene after the change. Answers
        of TOLD come from the graph of the changed meshes. Asked is only what the visible parts
        answer likewise, after the change is made to them by rule.
    changes : list of Change
        For `changed_scene`, in order.
    """
    hypotheses = chosen_hypotheses(scene, truth.graph, truth.seen_instances, seed, count)
    builder = _Builder(scene, truth, scene_key, seed)
    found: dict[str, Question] = {}
    for made in hypotheses:
        others = [item for item in hypotheses if item is not made]
        for question in builder.questions(made, others):
            found.setdefault(question.id, question)
    return list(found.values()), [made.change for made in hypotheses]


class _Builder:
    def __init__(self, scene: Scene, truth: GroundTruth, scene_key: str, seed: int) -> None:
        self._scene, self._truth, self._key, self._seed = scene, truth, scene_key, seed
        self._vocabulary = tuple(scene.label_set.by_name)
        self._seen = frozenset(truth.seen_instances)
        # What no camera sees must not be needed, not even to tell things apart.
        visible = [_without(graph, UNSEEABLE) for graph in (truth.visible_graph,) if graph]
        self._before = [truth.graph, truth.fair_graph, *visible]
        self._readers_before = self._readers(self._before, self._seen)
        view = SceneView(truth.graph, truth.graph.by_id, structure=_structure(scene))
        self._names = view.names
        self._anchors = _anchors(view, self._seen)
        self._known: dict[Hypothesis, list[GraphReader] | None] = {}
        self._structure = {normalised_name(name) for name in _structure(scene)}

    def _readers(self, graphs: Iterable[SceneGraph], ids: Iterable[int]) -> list[GraphReader]:
        """Return readers of graphs, with nearness a little farther and a little closer too."""
        found = [GraphReader(graph, self._vocabulary, ids=ids) for graph in graphs]
        exact = found[0].graph
        for sign in (-1, 1):
            other = with_neighbours_within(exact, sign * NEIGHBOUR_MARGIN_M)
            found.append(GraphReader(other, self._vocabulary, ids=ids))
        return found

    def _after(self, made: Hypothesis) -> list[GraphReader] | None:
        """Return readers of the changed scene, and of what the rule makes of the visible parts."""
        if made not in self._known:
            self._known[made] = self._found_after(made)
        return self._known[made]

    def _found_after(self, made: Hypothesis) -> list[GraphReader] | None:
        new = made.graph.by_id.keys() - self._truth.graph.by_id.keys()
        graphs = [made.graph]
        for reader in self._readers_before[1 : len(self._before)]:
            graph = changed_graph(
                reader.graph, made.told, reader.named, new_id=max(new, default=None)
            )
            if graph is None:
                return None
            graphs.append(graph)
        return self._readers(graphs, self._seen | new)

    def questions(self, made: Hypothesis, others: Sequence[Hypothesis]) -> Iterator[Question]:
        """Yield the questions about one change in all runs."""
        if not (made.touched & self._truth.graph.by_id.keys()) <= self._seen:
            return
        after = self._after(made)
        if after is None:
            return
        for kind in Kind:
            known = [
                (asked, now, _agreed(asked, self._readers_before))
                for asked in self._asked(made, kind)
                if (now := _agreed(asked, after)) is not None
            ]
            # What the change changes comes first; sorting keeps the order of the rest.
            known.sort(key=lambda item: not _affected(item[0], item[1], item[2]))
            for asked, now, was in known[:PER_KIND]:
                yield self._question(asked, Run.TOLD, made, now, was, made.told.sentence)
                if was is not None:
                    yield self._question(asked, Run.UNCHANGED, made, was, was, '')
                    yield from self._irrelevant(asked, made, was, others)

    def _irrelevant(
        self,
        asked: _Asked,
        made: Hypothesis,
        was: AnswerValue,
        others: Sequence[Hypothesis],
    ) -> Iterator[Question]:
        """Yield a question with a change told that has nothing to do with it."""
        for other in others:
            if {other.told.thing, other.told.other} & set(asked.phrases):
                continue
            after = self._after(other)
            if after is not None and _agreed(asked, after) == was:
                sentence = other.told.sentence
                yield self._question(asked, Run.IRRELEVANT, made, was, was, sentence)
                return

    def _asked(self, made: Hypothesis, kind: Kind) -> list[_Asked]:
        """Return questions of a kind, those about the changed things, in a seeded order."""
        rng = np.random.default_rng([self._seed, 5, *made.told.sentence.encode()])
        told, graph = made.told, self._truth.graph
        after = SceneView(made.graph, made.graph.by_id, structure=self._structure).names
        # Only what has the same unambiguous name before and after.
        same = {name: key for key, name in self._names.items() if after.get(key) == name}
        thing = told.thing if told.thing in same else ''
        key = min(made.touched)
        center = graph.by_id.get(key, made.graph.by_id.get(key))
        near = sorted(
            (name for name, key in same.items() if key in self._seen and name != thing),
            key=lambda name: (_distance_m(graph.by_id[same[name]], center), name),
        )[:_NEAREST]
        if kind is Kind.DIRECTION:
            ways = [way for other in near for way in ((thing, other), (other, thing))]
            return [self._direction(*way) for way in ways if thing and self._anchors]
        labels = sorted({label_of(n) for key in made.touched for n in _nodes(self, made, key)})
        queries = list(_queries(told, thing, labels, near))
        chosen = [item for item in queries if (item.kind in _SCALE) == (kind is Kind.SCALE)]
        return [self._worded(item, kind) for item in _taking_turns(shuffled(rng, chosen))]

    def _direction(self, thing: str, origin: str) -> _Asked:
        text = direction_question(thing, origin, self._anchors)

        def answer(reader: GraphReader) -> AnswerValue | None:
            return reader.direction(thing, origin, self._anchors) or None

        return _Asked(Kind.DIRECTION, text, AnswerType.TEXT, answer, (thing, origin))

    def _worded(self, query: Query, kind: Kind) -> _Asked:
        text = worded(query, 0)
        assert parsed(text) == query, text
        types = {
            QueryKind.COUNT: AnswerType.INTEGER,
            QueryKind.DISTANCE: AnswerType.NUMBER,
            QueryKind.CLOSER: AnswerType.TEXT,
            QueryKind.COLOR_OF: AnswerType.TEXT,
            QueryKind.SUPPORT_OF: AnswerType.TEXT,
        }
        tolerance = _TOLERANCE_M if query.kind is QueryKind.DISTANCE else 0.0
        kind_of = types.get(query.kind, AnswerType.YES_NO)
        return _Asked(
            kind, text, kind_of, lambda reader: reader.answer(query), query.phrases, tolerance
        )

    def _question(
        self,
        asked: _Asked,
        run: Run,
        made: Hypothesis,
        answer: AnswerValue,
        was: AnswerValue | None,
        told: str,
    ) -> Question:
        affected = run is Run.TOLD and _affected(asked, answer, was)
        return Question(
            id=question_id(SUITE, self._key, f'{told}\n{asked.text}'),
            suite=SUITE,
            scene=self._key,
            category=asked.kind.value,
            text=asked.text,
            answer_type=asked.answer_type,
            answer=answer,
            tolerance=asked.tolerance,
            evidence=Evidence(tuple(sorted(made.touched & self._truth.graph.by_id.keys()))),
            provenance={
                'generator': 'hypo3d/1',
                'seed': str(self._seed),
                'run': run.value,
                'change': made.told.type.value,
                'item': question_id(SUITE, self._key, asked.text),
                'affected': 'yes' if affected else 'no',
                'changed_scene': made.scene.name,
            },
            context_change=told,
        )


def _nodes(builder: _Builder, made: Hypothesis, key: int) -> list[SceneNode]:
    known = (made.graph.by_id.get(key), builder._truth.graph.by_id.get(key))
    return [node for node in known if node is not None and node.label]


def _queries(
    told: ToldChange, thing: str, labels: Sequence[str], others: Sequence[str]
) -> Iterator[Query]:
    """Yield what can be asked about a change and the things around it; `thing` may be ''."""
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
    if told.type is ChangeType.ATTRIBUTE:
        yield Query(QueryKind.COLOR_OF, (thing,))
        yield Query(QueryKind.HAS_COLOR, (thing,), told.color)
        yield Query(QueryKind.HAS_COLOR, (thing,), 'white' if told.color != 'white' else 'black')


def _affected(asked: _Asked, now: AnswerValue, was: AnswerValue | None) -> bool:
    """Return whether a change changes an answer; one that there was none to before does not."""
    return was is not None and not same_answer(now, was, asked.tolerance)


def _distance_m(first: SceneNode, second: SceneNode | None) -> float:
    if first.box is None or second is None or second.box is None:
        return float('inf')
    return float(np.linalg.norm(first.box.center - second.box.center))


def _taking_turns(queries: Sequence[Query]) -> list[Query]:
    """Return queries so that every kind comes before any comes twice."""
    seen: dict[QueryKind, int] = {}
    ranked = []
    for position, query in enumerate(queries):
        turn = seen.get(query.kind, 0)
        seen[query.kind] = turn + 1
        ranked.append((turn, position, query))
    return [query for _, _, query in sorted(ranked, key=lambda item: item[:2])]


def _agreed(asked: _Asked, readers: Sequence[GraphReader]) -> AnswerValue | None:
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
