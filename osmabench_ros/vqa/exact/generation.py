"""The exact questions of one scene."""

import hashlib
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from osmabench_ros.errors import QuestionError
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.relations import with_neighbours_within
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.semantics.storeys import find_storeys
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.vqa.answering.ways import RADIUS_M, FloorPlans, FloorWays
from osmabench_ros.vqa.exact import measurement, relations, robot_tasks
from osmabench_ros.vqa.exact.selection import select
from osmabench_ros.vqa.exact.view import Draft, SceneView, shuffled
from osmabench_ros.vqa.kinds import Kind, QueryKind
from osmabench_ros.vqa.questions import AnswerValue, AnyCategory, Category, Question, make_question
from osmabench_ros.vqa.wording import parsed, worded

SUITE = 'exact_questions'
GENERATOR = 'exact/6'
ALL_CATEGORIES = tuple(category.value for category in Category)
# Questions a scene, as many as OSMa-Bench asks on average.
DEFAULT_COUNT = 184

# At most, unless a number is asked for: more would ask the same facts of a small scene again.
QUESTIONS_AN_OBJECT = 5

# Objects next to or near another one may be this much nearer or farther without another answer.
NEIGHBOUR_MARGIN_M = 0.05

_LEAST_CANDIDATES = 100


@dataclass(frozen=True)
class QuestionSet:
    """Questions of a suite: their sources, and which kinds in which category.

    `generator` is name and version, for the provenance of the questions. Each of the `categories`
    gets an equal part, or one by its weight in `shares` (1 if it has none). `category_of` has the
    category of each kind that is not asked in its own one; `tolerances` differ from the tolerances
    of the kinds, in the unit of the answer. Kinds of a category are asked
    in the ratio of their `weights` (1 if it has none); without any, in turn. `kinds` are asked by
    their rows, without a source. With `seeable_names` no object is called by its material, which
    no camera sees.
    """

    suite: str
    generator: str
    categories: tuple[str, ...]
    sources: tuple[measurement.Source, ...]
    category_of: Mapping[Kind, AnyCategory] = field(default_factory=dict)
    tolerances: Mapping[Kind, float] = field(default_factory=dict)
    shares: Mapping[str, float] = field(default_factory=dict)
    weights: Mapping[Kind, float] = field(default_factory=dict)
    kinds: tuple[Kind, ...] = ()
    seeable_names: bool = False

    def drafts(
        self, source: measurement.Source, view: SceneView, rng: np.random.Generator, limit: int
    ) -> Iterator[Draft]:
        """Yield the drafts of one source that are of the set."""
        for draft in source(view, rng, limit):
            category = self.category_of.get(draft.query.kind, draft.category)
            if category.value not in self.categories:
                continue
            if not (self.seeable_names and any(map(view.names_material, draft.query.phrases))):
                yield replace(draft, category=category)


# The questions of OSMa-Bench's categories; most rest on where which object is, and how large.
EXACT = QuestionSet(
    SUITE,
    GENERATOR,
    ALL_CATEGORIES,
    (
        relations.present,
        relations.absent,
        relations.logical,
        measurement.counts,
        measurement.lengths,
        measurement.centers,
        measurement.colors,
        measurement.materials,
        relations.spatial,
        relations.functional,
        measurement.sizes,
        measurement.nearer,
        measurement.numbers,
        robot_tasks.reachability,
        robot_tasks.affordance,
        robot_tasks.precondition,
        measurement.floors,
    ),
    tolerances={QueryKind.CENTER: 0.3},
    shares={
        Category.MEASUREMENT.value: 10,
        Category.RELATIONS_SPATIAL.value: 2,
        Category.RELATIONS_FUNCTIONAL.value: 2,
        Category.COMPARISON.value: 5,
        Category.TASK_REACHABILITY.value: 4,
    },
    weights={
        QueryKind.CENTER: 4,
        QueryKind.DISTANCE: 3,
        QueryKind.IS_MORE: 5,
        QueryKind.COLOR_OF: 3,
        QueryKind.HAS_COLOR: 3,
        QueryKind.PASSABLE: 3,
    },
    seeable_names=True,
)


def generate_questions(
    view: SceneView,
    *,
    scene: str,
    seed: int,
    count: int = DEFAULT_COUNT,
    asked: QuestionSet = EXACT,
) -> list[Question]:
    """Generate exact questions about everything that a trajectory saw.

    Parameters
    ----------
    view : SceneView
        Ground truth, and the parts of it that the trajectory saw.
    scene : str
        Written into the questions and their ids.
    seed : int
        The same arguments and seed give the same questions in the same order.
    count : int
        Questions wanted; fewer come if the scene does not allow as many.
    asked : QuestionSet
        Sources of questions and their categories.

    Returns
    -------
    list of Question
        Different in text, unambiguous, yes and no balanced in every category.

    Raises
    ------
    QuestionError
        If `count` is below 1.
    """
    if count < 1:
        raise QuestionError(
            f'questions for scene "{scene}": count is {count}, at least 1 is asked'
        )
    quota = _quota(count, asked.categories, asked.shares)
    drafts = candidates(view, seed, max(_LEAST_CANDIDATES, 6 * max(quota.values())), asked)
    chosen = select(drafts, quota, view.by_label, asked.weights)
    return [*filter(None, (question_of(draft, scene, seed, asked) for draft in chosen))]


def questions_about(
    truth: GroundTruth,
    *,
    scene: str,
    seed: int,
    count: int | None = None,
    asked: QuestionSet = EXACT,
) -> list[Question]:
    """Generate exact questions from a ground truth; otherwise as `generate_questions`.

    Without a count they are DEFAULT_COUNT, and fewer in a scene of few objects. The provenance of
    each has the least `visible_share` of the objects that it rests on.
    """
    if not any(node.kind is NodeKind.OBJECT for node in truth.graph.nodes):
        return []  # a cloud without labels; only absence could be asked about
    if count is None:
        seen = (truth.graph.by_id[number] for number in truth.seen_instances)
        things = sum(node.kind is NodeKind.OBJECT for node in seen)
        count = max(len(asked.categories), min(DEFAULT_COUNT, QUESTIONS_AN_OBJECT * things))
    also: list[SceneGraph] = []
    # Only then were the relations derived from the scene, by known thresholds.
    if (parts := truth.visible_graph) is not None:
        also = [truth.graph, parts, *with_neighbour_margins(truth.evaluated_graph)]
    storeys_m: tuple[tuple[float, ...], ...] = ()
    asks_for_ways = measurement.ways in asked.sources
    if asks_for_ways or measurement.floors in asked.sources:
        found = find_storeys(np.concatenate([truth.surface.points, truth.unseen.points]))
        storeys_m = (found, find_storeys(truth.surface.points)) if len(found) > 1 else ()
    ways = ways_on(truth.surface, truth.unseen) if asks_for_ways else ()
    view = SceneView.of_path(truth, also=also, ways=ways, storeys_m=storeys_m)
    questions = generate_questions(view, scene=scene, seed=seed, count=count, asked=asked)
    return [_with_share(question, truth.visible_shares) for question in questions]


def with_neighbour_margins(graph: SceneGraph) -> list[SceneGraph]:
    """Return a graph with neighbours that are a little nearer, and a little farther away."""
    return [with_neighbours_within(graph, sign * NEIGHBOUR_MARGIN_M) for sign in (-1, 1)]


# Radii of a robot for which a way has to be as long, but for half of the tolerance.
RADII_M = (RADIUS_M, RADIUS_M - 0.05, RADIUS_M + 0.05)


# Another place next to an object, this much further away, has to lead to the same answer.
END_MARGIN_M = 0.05


def ways_on(surface: LabelledCloud, unseen: LabelledCloud) -> tuple[FloorWays, ...]:
    """Return the ways on all surface for robots of RADII_M, then on its visible part, if any.

    The last ones start and end at other places next to the objects.
    """
    points = np.concatenate([surface.points, unseen.points])
    if surface.normals is not None and unseen.normals is not None:
        # Undersides of floors would pass for floors below them.
        points = points[np.concatenate([surface.normals, unseen.normals])[:, 2] > -0.5]
    plans = FloorPlans(points)
    found = [FloorWays(plans, radius_m) for radius_m in RADII_M]
    found += [FloorWays(FloorPlans(surface.points))] if len(surface.points) else []
    return (*found, FloorWays(plans, margin_m=END_MARGIN_M))


def _with_share(question: Question, shares: Mapping[int, float]) -> Question:
    known = [shares[node] for node in question.evidence.nodes if node in shares]
    if not known:
        return question
    share = {'visible_share': f'{min(known):.3f}'}
    return replace(question, provenance={**question.provenance, **share})


def candidates(view: SceneView, seed: int, limit: int, asked: QuestionSet = EXACT) -> list[Draft]:
    """Return drafts with an answer that is right with and without barely seen objects.

    It must be right on the other graphs of the view too, within half of its tolerance: the other
    half is for the map.

    Each source looks at `limit` objects or pairs at most; `seed` decides the order.
    """
    drafts: dict[object, Draft] = {}
    for number, source in enumerate((*asked.sources, *map(measurement.ask_by_row, asked.kinds))):
        rng = np.random.default_rng([seed, number])
        for draft in shuffled(rng, asked.drafts(source, view, rng, limit)):
            query = draft.query
            found = view.reader.execute(query)
            if found.value is None or draft.answer not in (None, found.value):
                continue
            tolerance = asked.tolerances.get(query.kind, found.tolerance)
            if view.wide_reader.execute(query).value == found.value and all(
                same_answer(reader.execute(query).value, found.value, tolerance / 2)
                for reader in view.others
            ):
                nodes = draft.nodes or found.nodes
                draft = replace(draft, answer=found.value, tolerance=tolerance, nodes=nodes)
                drafts.setdefault(query, draft)
    return list(drafts.values())


def same_answer(first: AnswerValue | None, second: AnswerValue, tolerance: float) -> bool:
    """Return whether two answers are equal, numbers and places within a tolerance."""
    if isinstance(first, (int, float)) and isinstance(second, (int, float)):
        return abs(first - second) <= tolerance
    if isinstance(first, tuple) and isinstance(second, tuple):
        return math.dist(first, second) <= tolerance  # type: ignore[arg-type]
    return first == second


def uneven_mix(questions: Sequence[Question]) -> str:
    """Return which categories of exact questions have less than their share, '' if none has."""
    counts = Counter(
        item.category for item in questions if item.provenance.get('generator') == GENERATOR
    )
    asked = sum(counts.values())
    quota = _quota(asked, ALL_CATEGORIES, EXACT.shares)
    # An odd one of a pair of yes and no is left out.
    few = [name for name in ALL_CATEGORIES if counts[name] < quota[name] - 1]
    if not asked or not few:
        return ''
    allowed = ', '.join(f'{name} {counts[name] or "none"} of {quota[name]}' for name in few)
    return f'{asked} questions were asked; of some categories the scene allows fewer: {allowed}'


def _quota(count: int, categories: Sequence[str], shares: Mapping[str, float]) -> dict[str, int]:
    """Return equal parts, or two questions of each category and the rest in pairs by `shares`."""
    part, rest = divmod(count, len(categories))
    if not shares or part < 2:
        return {name: part + (place < rest) for place, name in enumerate(categories)}
    weights = np.cumsum([shares.get(name, 1.0) for name in categories])
    pairs = (count - 2 * len(categories)) // 2
    sizes = 2 + 2 * np.diff(np.round(pairs * weights / weights[-1]), prepend=0)
    quota = dict(zip(categories, sizes.astype(int).tolist(), strict=True))
    quota[max(quota, key=lambda name: quota[name])] += count % 2
    return quota


def question_of(draft: Draft, scene: str, seed: int, asked: QuestionSet) -> Question | None:
    """Word a draft by its meaning; the first wording that reads back as it, None if none does."""
    digest = hashlib.sha256(f'{seed} {draft.query}'.encode()).digest()
    first = int.from_bytes(digest[:4], 'big')
    for attempt in range(len(draft.query.kind.wordings)):
        text = worded(draft.query, first + attempt)
        if parsed(text) == draft.query and draft.answer is not None:
            kind = draft.query.kind
            made = {'generator': asked.generator, 'kind': kind.value, 'seed': str(seed)}
            return make_question(
                asked.suite, scene, text, kind.answer_type, draft.answer,
                category=draft.category.value, nodes=draft.nodes, tolerance=draft.tolerance,
                provenance=made,
            )  # fmt: skip
    return None
