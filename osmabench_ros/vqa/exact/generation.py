"""The exact questions of one scene."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from osmabench_ros.errors import QuestionError
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.relations import with_neighbours_within
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.vqa.answering.references import ReferenceResolver
from osmabench_ros.vqa.answering.rule import QueryExecutor
from osmabench_ros.vqa.exact import comparison, existence, measurement, relations, robot_tasks
from osmabench_ros.vqa.exact.selection import select
from osmabench_ros.vqa.exact.view import Draft, SceneView, glimpsed_instances, shuffled
from osmabench_ros.vqa.graph_index import GraphIndex, LabelMatcher
from osmabench_ros.vqa.questions import (
    AnswerType,
    AnswerValue,
    Category,
    Evidence,
    Question,
    question_id,
)
from osmabench_ros.vqa.wording import WORDINGS, parsed, worded

SUITE = 'exact_questions'
GENERATOR = 'exact/3'
ALL_CATEGORIES = tuple(category.value for category in Category)
DEFAULT_COUNT = 184
"""Questions a scene, as many as OSMa-Bench asks on average."""

NEIGHBOUR_MARGIN_M = 0.05
"""What is next to or near a thing may be this much nearer or farther without another answer."""

_LEAST_CANDIDATES = 100

_Source = Callable[[SceneView, np.random.Generator, int], Iterator[Draft]]
_SOURCES: tuple[_Source, ...] = (
    existence.present,
    existence.absent,
    existence.logical,
    measurement.counts,
    measurement.lengths,
    measurement.colors,
    measurement.materials,
    relations.spatial,
    relations.functional,
    comparison.sizes,
    comparison.distances,
    comparison.numbers,
    robot_tasks.reachability,
    robot_tasks.affordance,
    robot_tasks.precondition,
)


def generate_questions(
    graph: SceneGraph,
    seen_ids: Collection[int],
    *,
    scene: str,
    seed: int,
    glimpsed_ids: Collection[int] = (),
    also: Collection[SceneGraph] = (),
    label_set: LabelSet | None = None,
    count: int = DEFAULT_COUNT,
    categories: Sequence[str] = ALL_CATEGORIES,
) -> list[Question]:
    """Generate exact questions about what a trajectory saw.

    Parameters
    ----------
    graph : SceneGraph
        Ground truth; ids are instance ids.
    seen_ids : collection of int
        Instances that the trajectory saw. The rest does not exist for any question.
    scene : str
        Written into the questions and their ids.
    seed : int
        The same arguments and seed give the same questions in the same order.
    glimpsed_ids : collection of int
        Instances of which too little was seen to ask about them. Only questions with the same
        answer with and without them are asked.
    also : collection of SceneGraph
        Other graphs of the same ids, of the whole objects and of their visible parts. Only
        questions that they answer as `graph` does, within half of the tolerance, are asked.
    label_set : LabelSet, optional
        Classes marked as structure are never asked about, those absent serve negative questions.
    count : int
        Questions wanted; fewer come if the scene does not allow as many.
    categories : sequence of str
        `Category` values, each of which gets an equal share.

    Returns
    -------
    list of Question
        Different in text, unambiguous, yes and no balanced in every category.

    Raises
    ------
    QuestionError
        If `count` is below 1, a category is unknown or there is none.
    """
    unknown = [name for name in categories if name not in ALL_CATEGORIES]
    if count < 1 or unknown or not categories:
        raise QuestionError(
            f'exact questions for scene "{scene}": count is {count}, categories are '
            f'{list(categories)}; count must be at least 1, categories come from '
            f'{list(ALL_CATEGORIES)}'
        )
    view = _view(graph, seen_ids, glimpsed_ids, label_set, also)
    quota = _quota(count, categories)
    drafts = candidates(view, seed, max(_LEAST_CANDIDATES, 6 * max(quota.values())))
    chosen = select(drafts, quota, view.by_label)
    return [
        question for draft in chosen if (question := _question(draft, scene, seed)) is not None
    ]


def questions_about(
    truth: GroundTruth, *, scene: str, seed: int, count: int = DEFAULT_COUNT
) -> list[Question]:
    """Generate exact questions from a ground truth; otherwise as `generate_questions`.

    The provenance of each has the least `visible_share` of the objects that it rests on.
    """
    fair = truth.fair_graph
    also: list[SceneGraph] = []
    # Only then were the relations derived from the scene, by known thresholds.
    if truth.visible_graph is not None:
        also += [truth.graph, truth.visible_graph]
        also += [with_neighbours_within(fair, sign * NEIGHBOUR_MARGIN_M) for sign in (-1, 1)]
    questions = generate_questions(
        fair,
        truth.seen_instances,
        scene=scene,
        seed=seed,
        glimpsed_ids=glimpsed_instances(truth),
        also=also,
        label_set=truth.label_set,
        count=count,
    )
    return [_with_share(question, truth.visible_shares) for question in questions]


def _with_share(question: Question, shares: Mapping[int, float]) -> Question:
    known = [shares[node] for node in question.evidence.nodes if node in shares]
    if not known:
        return question
    share = {'visible_share': f'{min(known):.3f}'}
    return replace(question, provenance={**question.provenance, **share})


def _view(
    graph: SceneGraph,
    seen_ids: Collection[int],
    glimpsed_ids: Collection[int],
    label_set: LabelSet | None,
    also: Collection[SceneGraph],
) -> SceneView:
    if label_set is None:
        return SceneView(graph, seen_ids, glimpsed_ids, also=also)
    structure = [item.name for item in label_set.classes if item.structure]
    return SceneView(graph, seen_ids, glimpsed_ids, structure, list(label_set.by_name), also)


def candidates(view: SceneView, seed: int, limit: int) -> list[Draft]:
    """Return drafts whose answer is right on the graph with and without barely seen objects.

    It must be right on the other graphs of the view too, within half of its tolerance: the other
    half is for the map.

    Each source looks at `limit` things or pairs at most; `seed` decides the order.
    """
    executors = [_executor(view, index) for index in (view.index, view.wide)]
    others = [_executor(view, index) for index in view.others]
    drafts: dict[object, Draft] = {}
    for number, source in enumerate(_SOURCES):
        rng = np.random.default_rng([seed, number])
        for draft in shuffled(rng, source(view, rng, limit)):
            if all(
                executor.execute(draft.query).value == draft.answer for executor in executors
            ) and all(_agrees(executor.execute(draft.query).value, draft) for executor in others):
                drafts.setdefault(draft.query, draft)
    return list(drafts.values())


def _agrees(value: AnswerValue | None, draft: Draft) -> bool:
    if isinstance(value, (int, float)) and isinstance(draft.answer, (int, float)):
        return abs(value - draft.answer) <= draft.tolerance / 2
    return value == draft.answer


def _executor(view: SceneView, index: GraphIndex) -> QueryExecutor:
    matcher = LabelMatcher(index.by_label, view.vocabulary | set(index.by_label))
    return QueryExecutor(index, ReferenceResolver(index, matcher))


def _quota(count: int, categories: Sequence[str]) -> dict[str, int]:
    share, rest = divmod(count, len(categories))
    return {name: share + (position < rest) for position, name in enumerate(categories)}


def _question(draft: Draft, scene: str, seed: int) -> Question | None:
    """Word a draft by its meaning; the first wording that reads back as it, None if none does."""
    digest = hashlib.sha256(f'{seed} {draft.query}'.encode()).digest()
    first = int.from_bytes(digest[:4], 'big')
    for attempt in range(len(WORDINGS[draft.query.kind])):
        text = worded(draft.query, first + attempt)
        if parsed(text) == draft.query:
            return Question(
                id=question_id(SUITE, scene, text),
                suite=SUITE,
                scene=scene,
                category=draft.category.value,
                text=text,
                answer_type=AnswerType(draft.answer_type),
                answer=draft.answer,
                tolerance=draft.tolerance,
                evidence=Evidence(nodes=draft.nodes),
                provenance={
                    'generator': GENERATOR,
                    'kind': draft.query.kind.value,
                    'seed': str(seed),
                },
            )
    return None
