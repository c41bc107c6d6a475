"""Chooses changes of a scene, and asks about it after them, with answers of the changed scene."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from itertools import cycle, islice, pairwise, product, zip_longest

import numpy as np

from osmabench_ros.errors import SceneError
from osmabench_ros.scenes import changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.scenes.scene import Scene, make_triple
from osmabench_ros.semantics.relations import LIMITS
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.hypo3d import frame
from osmabench_ros.suites.hypo3d.described_change import (
    ChangeType,
    DescribedChange,
    apply_to_graph,
    find_touched_nodes,
)
from osmabench_ros.vqa.english import BASIC_COLORS, confusable
from osmabench_ros.vqa.evaluation import UNSEEABLE
from osmabench_ros.vqa.exact import generation, view
from osmabench_ros.vqa.exact.relations import NEAR
from osmabench_ros.vqa.graph_index import centre_distance_m
from osmabench_ros.vqa.kinds import ATTACHED, IN, NEXT_TO, ON, Query, QueryKind
from osmabench_ros.vqa.questions import Question, question_id

SUITE = 'hypo3d'
DEFAULT_CHANGES = 3
# Questions of a kind about a change, at most.
PER_KIND = 6

_DISTANCES_M = (0.6, 0.8, 1.0, 1.2, 1.5)
_MOST_TRIALS = 30
# Objects around the changed one that questions are about.
_NEAREST = 16

_REACH_M = {NEXT_TO: LIMITS.next_to_m, NEAR: LIMITS.near_m}
_ASKED = generation.QuestionSet(
    SUITE, 'hypo3d/2', generation.ALL_CATEGORIES, (), tolerances={QueryKind.DISTANCE: 0.3}
)
_Drawn = tuple[DescribedChange, changes.Change]
_Answers = Mapping[Query, view.Draft]


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


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """A change as it is made and described, the scene after it, and a view of that scene."""

    change: changes.Change
    described: DescribedChange
    scene: Scene
    after: view.SceneView
    touched: frozenset[int]


class ChangeChooser:
    """Draws changes of one scene, seeded; no object is part of two of them.

    Only objects that the path saw are changed, or named by a description.
    """

    def __init__(self, scene: Scene, truth: GroundTruth, seed: int) -> None:
        self._scene = scene
        self._truth = truth
        self._rng = np.random.default_rng([seed, 3])
        # Hidden attributes must not be needed, not even to distinguish objects.
        visible = [g.drop_attributes(UNSEEABLE) for g in (truth.visible_graph,) if g]
        graphs = [truth.graph, truth.evaluated_graph, *visible]
        self.before = self._view_graphs(graphs, truth.seen_instances)
        self._readers = [self.before.reader, *self.before.others[: len(graphs) - 1]]
        self.facing = frame.choose_anchors(truth.graph, self.before.names)
        self._used = set(frame.read_anchors(self.facing).values())
        world = frame.frame_of(self._readers[0], self.facing)
        self._ways = [
            (side, number, world.axis(side) * number)
            for side, number in product(frame.Side, _DISTANCES_M)
            if world is not None
        ]
        held = [edge for edge in truth.graph.edges if edge.type in (ON, IN, ATTACHED)]
        laden = {edge.target for edge in held}
        self._movable = [node for node in self.before.named_boxed if node.id not in laden]
        floor = {node.id for node in truth.graph.of_kind(NodeKind.BACKGROUND)}
        self._on_floor = {edge.source for edge in held if edge.target in floor}

    def _view_graphs(self, graphs: Sequence[SceneGraph], seen: Iterable[int]) -> view.SceneView:
        """Return the view of a graph where others, and other margins, must not differ."""
        also = [*graphs[1:], *generation.with_neighbour_margins(graphs[0])]
        glimpsed = view.find_glimpsed_instances(self._truth)
        return view.SceneView(graphs[0], frozenset(seen), glimpsed, self._scene.label_set, also)

    def list_hypotheses(self, count: int) -> list[Hypothesis]:
        """Choose changes that can be made and described without ambiguity.

        Types differ as far as there are five; fewer than `count` come where none fits.
        """
        # What moves can be asked about in all kinds; so there is always a movement.
        rest = [kind for kind in ChangeType if kind is not ChangeType.MOVEMENT]
        order = [ChangeType.MOVEMENT, *view.shuffled(self._rng, rest)]
        made = map(self._choose, islice(cycle(order), max(count, len(order))))
        return list(islice(filter(None, made), count))

    def _choose(self, kind: ChangeType) -> Hypothesis | None:
        """Return the first change of a kind that the scene admits, None if none does."""
        new_id = 1 + max(self._truth.graph.by_id, default=0)
        drawn = (pair for node in self._list_free() for pair in self._draw(kind, node))
        for described, change in islice(drawn, _MOST_TRIALS):
            found = (apply_to_graph(x, described, new_id=new_id) for x in self._readers)
            by_rule = [graph for graph in found if graph is not None]
            if len(by_rule) < len(self._readers):
                continue
            try:
                scene = changes.apply_changes(self._scene, (change,))
            except SceneError:
                continue
            self._used |= {described.thing, described.other}
            touched = find_touched_nodes(self._truth.graph, by_rule[0])
            after = [build_ground_truth_graph(scene), *by_rule[1:]]
            seen = self._view_graphs(after, {*self._truth.seen_instances, new_id})
            return Hypothesis(change, described, scene, seen, touched)
        return None

    def _list_free(self) -> list[SceneNode]:
        """Return the movable objects that no change has to do with, in a new order."""
        free = [node for node in self._movable if self.before.name(node) not in self._used]
        return view.shuffled(self._rng, free)

    def _draw(self, kind: ChangeType, node: SceneNode) -> Iterator[_Drawn]:
        """Yield changes of an object in words and as they are made; some cannot be made."""
        key = node.source_id
        name = self.before.name(node)
        label = view.label_of(node)
        describe = partial(DescribedChange, kind, name, facing=self.facing)
        ways = view.shuffled(self._rng, self._ways)
        if kind is ChangeType.REMOVAL:
            yield describe(), changes.Remove(kind='remove', object=key)
        elif kind is ChangeType.MOVEMENT:
            for side, number, way in ways[:2]:
                move = changes.Move(kind='move', object=key, offset_m=make_triple(way))
                yield describe(side=side, number=number), move
        elif kind is ChangeType.REPLACEMENT:
            for new in self._list_free()[:4]:
                if label != view.label_of(new) == self.before.name(new):
                    replaced = changes.Replace(kind='replace', object=key, like=new.source_id)
                    yield describe(view.label_of(new)), replaced
        elif name != label:
            return  # the name may say a colour that the object loses, or its copy has too
        elif kind is ChangeType.ATTRIBUTE:
            color = view.color_of(node)
            colors = [x for x in sorted(BASIC_COLORS) if color and not confusable(color, x)]
            for new_color in view.shuffled(self._rng, colors)[:2]:
                painted = changes.Recolor(kind='recolor', object=key, color=new_color)
                yield describe(color=new_color), painted
        elif node.id in self._on_floor:
            others = view.shuffled(self._rng, self.before.named_boxed)
            for other, (side, number, way) in zip(others, ways[:8], strict=False):
                x, y, _ = other.known_box.center + way
                place = make_triple((x, y, node.known_box.minimum[2]))
                added = changes.Add(kind='add', name=f'{key}_added', like=key, position_m=place)
                yield describe(self.before.name(other), side=side, number=number), added


def hypothetical_questions(
    scene: Scene,
    truth: GroundTruth,
    *,
    scene_key: str,
    seed: int,
    count: int = DEFAULT_CHANGES,
) -> tuple[list[Question], list[changes.Change]]:
    """Choose changes of a scene and generate questions of three runs about them, seeded.

    The questions are of `Hypo3DRun` UNCHANGED, TOLD and IRRELEVANT; the category is Scale,
    Direction or Semantic, the provenance has `run`, `change` (its type), `item` (equal in all
    runs), `affected`, 'yes' where the change changes the answer, `number` (of the change among
    those that are returned), and `changed_scene`, the name of the scene after the change. Answers
    of TOLD come from the graph of the changed meshes. Questions are only about objects that the
    path saw, and the visible parts give the same answer after the change is made to them by rule.
    The changes are for `changed_scene`, in order.
    """
    chooser = ChangeChooser(scene, truth, seed)
    made = chooser.list_hypotheses(count)
    drawn = {item: _draw_queries(chooser, item, seed) for item in made}
    queries = [query for asked in drawn.values() for found in asked.values() for query in found]
    before = _find_answers(chooser.before, queries)
    after = {item: _find_answers(item.after, queries) for item in made}
    questions: dict[str, Question] = {}
    for number, item in enumerate(made):
        nodes = tuple(sorted(item.touched & truth.graph.by_id.keys()))
        for category, query in _choose_queries(drawn[item], before, after[item]):
            for run, draft, sentence in _list_runs(query, item, before, after):
                about = replace(draft, nodes=nodes)
                question = generation.question_of(about, scene_key, seed, _ASKED)
                assert question is not None, query
                provenance = {
                    **question.provenance,
                    'run': run.value,
                    'change': item.described.type.value,
                    'item': question.id,
                    'affected': 'yes' if _is_affected(draft, before.get(query)) else 'no',
                    'changed_scene': item.scene.name,
                    'number': str(number),
                }
                key = question_id(SUITE, scene_key, f'{sentence}\n{question.text}')
                asked = replace(question, id=key, category=category, context_change=sentence)
                questions.setdefault(key, replace(asked, provenance=provenance))
    return list(questions.values()), [item.change for item in made]


def _find_answers(scene_view: view.SceneView, queries: Sequence[Query]) -> _Answers:
    """Return the answers to those queries that have one, in whichever way a scene is seen."""
    drafts = [view.Draft(query, query.kind.category) for query in queries]
    asked = replace(_ASKED, sources=(lambda *_: iter(drafts),))
    found = generation.candidates(scene_view, 0, len(queries), asked)
    return {draft.query: draft for draft in found}


def _is_affected(now: view.Draft, was: view.Draft | None) -> bool:
    """Return whether a change changes an answer; one that there was none to before does not."""
    known = None if was is None else was.answer
    return known is not None and not generation.same_answer(now.answer, known, now.tolerance)


def _choose_queries(
    drawn: Mapping[str, Sequence[Query]], before: _Answers, after: _Answers
) -> Iterator[tuple[str, Query]]:
    """Yield the queries to ask about a change, with their category."""
    for category, queries in drawn.items():
        known = [query for query in queries if query in after]
        # Questions with a changed answer come first; sorting keeps the order of the rest.
        known.sort(key=lambda query: not _is_affected(after[query], before.get(query)))
        yield from ((category, query) for query in known[:PER_KIND])


def _list_runs(
    query: Query, own: Hypothesis, before: _Answers, after: Mapping[Hypothesis, _Answers]
) -> Iterator[tuple[Hypo3DRun, view.Draft, str]]:
    """Yield the runs of a query about a change, with its answer and the change in words."""
    yield Hypo3DRun.TOLD, after[own][query], own.described.sentence
    was = before.get(query)
    if was is None:
        return
    yield Hypo3DRun.UNCHANGED, was, ''
    for other, answers in after.items():
        is_named = {other.described.thing, other.described.other} & set(query.phrases)
        now = None if is_named or other is own else answers.get(query)
        if now is not None and now.answer == was.answer:
            yield Hypo3DRun.IRRELEVANT, was, other.described.sentence
            return


def _draw_queries(chooser: ChangeChooser, made: Hypothesis, seed: int) -> dict[str, list[Query]]:
    """Return queries by category, about changed objects and those around, kinds in turns.

    Objects are called by names that mean them before and after the change.
    """
    rng = np.random.default_rng([seed, 5, *made.described.sentence.encode()])
    before = chooser.before
    after = made.after
    ids = {before.name(node): node.id for node in before.named_boxed}
    ids = {name: key for name, key in ids.items() if after.names.get(key) == name}
    graphs = (before.graph, after.graph)
    changed = [g.by_id[key] for key in sorted(made.touched) for g in graphs if key in g.by_id]
    labels = sorted({view.label_of(node) for node in changed if node.label})
    # Without a name that it keeps, only classes are asked about.
    name = made.described.thing
    things = [(name,)] if name in ids else []
    others = [other for other in ids if other != name]
    others.sort(key=lambda other: centre_distance_m(before.graph.by_id[ids[other]], changed[0]))
    near = others[:_NEAREST]
    pairs = [(*thing, other) for thing in things for other in view.shuffled(rng, near)]
    color = made.described.color
    painted = things if color else []
    old = view.color_of(changed[0])
    drawn = {
        'Scale': [
            [Query(QueryKind.COUNT, (x,)) for x in labels],
            [Query(QueryKind.MORE_OF, x) for x in pairwise(labels)],
            [Query(QueryKind.DISTANCE, x) for x in pairs],
            [Query(QueryKind.CLOSER, (a, b, thing)) for (thing, a), (_, b) in pairwise(pairs)],
        ],
        'Direction': [
            [Query(frame.DIRECTION, y, chooser.facing) for x in pairs for y in (x, x[::-1])]
        ],
        'Semantic': [
            [Query(QueryKind.EXISTS, (x,)) for x in labels],
            [Query(QueryKind.ABSENT, (x,)) for x in labels],
            [Query(QueryKind.BOTH, x) for x in pairwise(labels)],
            [Query(QueryKind.SUPPORT_OF, x) for x in things],
            [
                Query(QueryKind.RELATED, x, relation)
                for x, relation in product(pairs, _REACH_M)
                if _is_clear((before, after), relation, [ids[other] for other in x])
            ],
            [Query(QueryKind.COLOR_OF, x) for x in painted],
            *([Query(QueryKind.HAS_COLOR, x, said) for x in painted] for said in (color, old)),
        ],
    }
    return {
        category: [query for turn in zip_longest(*rows) for query in turn if query is not None]
        for category, rows in drawn.items()
    }


def _is_clear(views: Iterable[view.SceneView], relation: str, ids: Sequence[int]) -> bool:
    """Return whether two objects are related, or too far apart for anybody to call them so."""
    return all(
        known.index.related(relation, *ids) or one.measure_gap(other) > _REACH_M[relation]
        for known in views
        for one, other in ([known.graph.by_id[key].known_box for key in ids],)
    )
