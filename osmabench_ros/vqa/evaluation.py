"""Asks a map questions, has the answers judged and scores them along with the baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from osmabench_ros.base.files import write_json
from osmabench_ros.base.progress import Progress, counted, share, silent
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.semantics.scene_graph import THINGS, SceneGraph
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.vqa.answering import baselines
from osmabench_ros.vqa.answering.answerer import Answerer
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.grading import TYPES_WITH_PARTS, numbers_of, read_box
from osmabench_ros.vqa.judging import Judge
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.question_files import ANSWERS, QUESTIONS, VERDICTS, saved, write_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict, inquiry
from osmabench_ros.vqa.scores import UNSERVED, find_unserved_categories, records
from osmabench_ros.vqa.wording import evidence_of, parsed


@dataclass(frozen=True, eq=False)
class QuestionedMap:
    """A map in the form that is questioned, with the maps and rules for comparison."""

    semantic_map: SemanticMap
    # Maps that are asked for comparison, by the name of their metric.
    references: Mapping[str, SemanticMap] = field(default_factory=dict)
    rules: Answerer = field(default_factory=RuleAnswerer)
    equality: Judge = field(default_factory=DeterministicJudge)
    embedder: Embedder | None = None

    @classmethod
    def in_scene(
        cls, semantic_map: SemanticMap, truth: GroundTruth, embedder: Embedder | None
    ) -> QuestionedMap:
        """Return the map of a scene; answering and judging share the embedder."""
        rules = RuleAnswerer(embedder)
        equality = DeterministicJudge(embedder)
        return cls(semantic_map, reference_maps(truth), rules, equality, embedder)


# Prefix of the accuracies of answers that know nothing of places; a map has to exceed the best.
FLOOR = 'floor_'

# Attributes that the ground truth knows from the data set, and no camera can see.
UNSEEABLE = ('material',)


def reference_maps(truth: GroundTruth) -> dict[str, SemanticMap]:
    """Return the maps that the ground truth makes, by the names of their metrics.

    `baseline_random_labels` has the right shapes and relations, and wrong names.
    `ceiling_ground_truth` is the graph that the questions come from, so that it tests only the
    answerer. The fair ceilings are of the visible parts, with all that a mapper could know:
    `ceiling_visible` with all attributes, `ceiling_camera` without the attributes UNSEEABLE. The
    maps with the prefix FLOOR know which objects there are, and not where each is.
    """
    seen, labels = truth.seen_instances, truth.label_set
    known: dict[str, tuple[SceneGraph, tuple[str, ...]]] = {
        'ceiling_ground_truth': (truth.evaluated_graph, ())
    }
    if (parts := truth.visible_graph) is not None:
        known |= {'ceiling_visible': (parts, ()), 'ceiling_camera': (parts, UNSEEABLE)}
    dense = DenseMap(truth.surface.points)  # ways are looked for on points
    found = {
        name: replace(baselines.ground_truth_map(graph, seen, labels, without=hidden), dense=dense)
        for name, (graph, hidden) in known.items()
    }
    perfect, best = (list(found.values())[place] for place in (0, -1))
    return {
        f'{FLOOR}inventory': baselines.keep_inventory(perfect),
        f'{FLOOR}permuted_names': baselines.permute_names(perfect),
        'baseline_random_labels': baselines.with_random_labels(best, labels),
        **found,
    }


# The metric of answers, the map that they are from, their questions, they, and verdicts.
Compared = tuple[str, SemanticMap, Sequence[Question], Sequence[Answer], list[Verdict]]


def compare_answers(
    asked: QuestionedMap,
    questions: Sequence[Question],
    given: Mapping[str, Sequence[Answer]],
    others: Mapping[str, tuple[Answerer, Sequence[Question]]] = MappingProxyType({}),
    progress: Progress = silent,
) -> Iterator[Compared]:
    """Yield all answers that the answers of a map are compared with, judged.

    These are answers that are `given` without a map, answers by rule from the maps for
    comparison, and answers of `others`, who are asked the questions next to them about the map.
    """
    for metric, answers in given.items():
        verdicts = judge_all(questions, answers, asked.equality)
        yield metric, asked.semantic_map, questions, answers, verdicts
    asking = {metric: (x, asked.rules, questions) for metric, x in asked.references.items()}
    asking |= {metric: (asked.semantic_map, *other) for metric, other in others.items()}
    for number, (metric, (known, answerer, put)) in enumerate(asking.items()):
        size = 1 / len(asking)
        part = share(progress, number * size, (number + 1) * size, f'{metric}: ')
        answers = answer_all(known, put, answerer, part)
        yield metric, known, put, answers, judge_all(put, answers, asked.equality)


def answer_and_keep(
    folder: Path | None,
    semantic_map: SemanticMap,
    questions: Sequence[Question],
    answerer: Answerer,
    progress: Progress = silent,
    about: Mapping[str, Any] = MappingProxyType({}),
) -> list[Answer]:
    """Answer questions about a map; keep both, and in answering.json who answered and `about`.

    Raises IncompleteError if the server failed; the answers so far are kept. Without a folder
    nothing is written.
    """
    work = partial(answer_all, semantic_map, questions, answerer, progress)
    if folder is None:
        return work()
    write_records(folder / QUESTIONS, questions)
    answers = saved(folder / ANSWERS, work)
    who = {'answerer': answerer.name}
    write_json(folder / 'answering.json', {**about, **summary_of(answerer), **who})
    return answers


def judge_and_keep(
    folder: Path | None,
    questions: Sequence[Question],
    answers: Sequence[Answer],
    judge: Judge,
    progress: Progress = silent,
) -> list[Verdict]:
    """Judge answers; keep the verdicts, and in judging.json who judged, as `answer_and_keep`."""
    work = partial(judge_all, questions, answers, judge, progress)
    if folder is None:
        return work()
    verdicts = saved(folder / VERDICTS, work)
    write_json(folder / 'judging.json', {'judge': judge.name, **summary_of(judge)})
    return verdicts


def scored(
    asked: QuestionedMap,
    questions: Sequence[Question],
    verdicts: Sequence[Verdict],
    *,
    suite: str,
    mode: str = '',
    excluded: Collection[str] = (),
    further: Mapping[str, Answerer] = MappingProxyType({}),
    progress: Progress = silent,
) -> list[MetricRecord]:
    """Return the accuracies of verdicts, of the baselines and of the ceilings.

    `accuracy`, `accuracy_answered`, `unanswered` overall (class name '') and by category;
    `baseline_always_yes`, `baseline_always_no`, `baseline_most_frequent`,
    `baseline_question_only` and the `reference_maps` likewise without the last two. Overall also
    `accuracy_colors`, `accuracy_materials` and `accuracy_rest`, over exact questions that rest on
    a colour, on a material, or on neither, and `score`, the mean share that is right of answers
    with parts, where there are any. Further answerers are asked for one more metric each.
    Where there are floors, `accuracy_above_floor` is (accuracy - best) / (1 - best).
    Categories that the map holds nothing for are wrong; those in `excluded` are not scored.
    """
    left_out = find_unserved_categories(asked.semantic_map, questions)
    rows = partial(records, suite, mode, questions=questions, excluded=excluded)
    others = {metric: (other, questions) for metric, other in further.items()}
    given = baseline_answers(questions)
    found = rows('accuracy', verdicts=verdicts, not_applicable=left_out)
    scored_questions = [item for item in questions if item.category not in excluded]
    # A map without any object is asked nothing.
    if any(item.category not in left_out for item in scored_questions):
        scores = {verdict.question_id: verdict.score or 0.0 for verdict in verdicts}
        parted = [x.id for x in scored_questions if x.answer_type in TYPES_WITH_PARTS]
        shares = [scores.get(key, 0.0) for key in parted]
        found += [MetricRecord.of_mean(suite, mode, 'score', shares)] if parted else []
        own = partial(rows, verdicts=verdicts, by_category=False, answered_too=False)
        for name, part in _group_by_evidence(scored_questions).items():
            found += own(f'accuracy_{name}', questions=part)
    for metric, *_, judged in compare_answers(asked, questions, given, others, progress):
        found += rows(metric, verdicts=judged, answered_too=False)
    return [*found, *_rescale_above_floor(found)]


def _rescale_above_floor(found: Sequence[MetricRecord]) -> Iterator[MetricRecord]:
    """Yield the accuracy on a scale from the best floor, 0, to all right, 1."""
    overall = {item.metric: item for item in found if not item.class_name}
    floors = [item.value for name, item in overall.items() if name.startswith(FLOOR)]
    best = max((value for value in floors if value is not None), default=1.0)
    if best < 1:
        own = overall['accuracy']
        value, low, high = (
            None if number is None else (number - best) / (1 - best)
            for number in (own.value, own.low, own.high)
        )
        yield replace(own, metric='accuracy_above_floor', value=value, low=low, high=high)


def _group_by_evidence(questions: Sequence[Question]) -> dict[str, list[Question]]:
    """Return the exact questions that rest on colours, materials, or neither."""
    parts: dict[str, list[Question]] = {'colors': [], 'materials': [], 'rest': []}
    for question in questions:
        query = parsed(question.text)
        if query is not None:
            parts[evidence_of(query)].append(question)
    return parts


def summary_of(who: Answerer | Judge) -> dict[str, Any]:
    """Return how an answerer or a judge did its work; empty for one that does not say."""
    summary: dict[str, Any] = getattr(who, 'summary', {})
    return summary


def records_of_summary(
    suite: str, semantic_map: SemanticMap, summary: Mapping[str, Any], count: int
) -> list[MetricRecord]:
    """Return the counts of an answerer's summary: nodes left out, answers without an end."""
    parts: dict[str, tuple[int, int]] = {}
    if 'dropped_nodes' in summary and not summary.get('compat'):
        nodes = sum(node.kind in THINGS for node in semantic_map.graph.nodes)
        parts['unread_nodes'] = (summary['dropped_nodes'], nodes)
    if 'incomplete' in summary:
        parts['incomplete_answers'] = (sum(summary['incomplete'].values()), count)
    return [
        MetricRecord(suite, '', name, '', part / max(1, n), n=n, higher_is_better=False)
        for name, (part, n) in parts.items()
    ]


def baseline_answers(questions: Sequence[Question]) -> dict[str, list[Answer]]:
    """Return the answers of each baseline by the name of its metric."""
    found: dict[str, list[Answer]] = {}
    if any(item.options for item in questions):
        found['baseline_first_option'] = baselines.constant(questions, 'A')
    for name, answers in baselines.answer_without_map(questions).items():
        found[f'baseline_{name}'] = answers
    learned = baselines.answer_from_text(questions)
    if any(item.value is not None for item in learned):
        found[f'{FLOOR}learned_text'] = learned
    return found


def answer_all(
    semantic_map: SemanticMap,
    questions: Sequence[Question],
    answerer: Answerer,
    progress: Progress = silent,
) -> list[Answer]:
    """Return one answer for each question, joined by id; with value None where there is none.

    Where a box is asked for, an answer may name a node instead.
    """
    unserved = find_unserved_categories(semantic_map, questions)
    asked = [inquiry(item) for item in questions if item.category not in unserved]
    report = counted(progress, 'answered', len(asked), 'questions')
    report('', 0.0)
    answers = answerer.answer(semantic_map, asked, report) if asked else ()
    given = {answer.question_id: answer for answer in reversed(answers)}  # the first one counts
    report('', 1.0)
    lost = 'no answer came back'
    notes = {item.id: UNSERVED if item.category in unserved else lost for item in questions}
    found = [
        given.get(item.id) or Answer(item.id, None, answerer.name, note=notes[item.id])
        for item in questions
    ]
    boxed = {item.id for item in questions if item.answer_type is AnswerType.BOX}
    return [locate(x, semantic_map.graph) if x.question_id in boxed else x for x in found]


def find_box(answer: Answer, graph: SceneGraph) -> AxisAlignedBox | None:
    """Return the box that an answer gives, else the one of the first of its nodes with a box."""
    if answer.value is not None and len(numbers_of(answer.value)) == 6:
        return read_box(answer.value)
    nodes = (graph.by_id.get(key) for key in answer.nodes)
    return next((node.box for node in nodes if node is not None and node.box is not None), None)


def locate(answer: Answer, graph: SceneGraph) -> Answer:
    """Return an answer with the corners of its box as value, if it has one."""
    box = find_box(answer, graph)
    if box is None:
        return answer
    return replace(answer, value=(*box.minimum.tolist(), *box.maximum.tolist()))


def judge_all(
    questions: Sequence[Question],
    answers: Sequence[Answer],
    judge: Judge,
    progress: Progress = silent,
) -> list[Verdict]:
    """Return one verdict per question; questions that the map cannot serve are not judged."""
    by_id = {answer.question_id: answer for answer in answers}
    unserved = {answer.question_id for answer in answers if answer.note == UNSERVED}
    pairs = [(item, by_id.get(item.id)) for item in questions if item.id not in unserved]
    report = counted(progress, 'judged', len(pairs), 'answers')
    report('', 0.0)
    found = judge.judge(pairs, report) if pairs else ()
    verdicts = {verdict.question_id: verdict for verdict in found}
    report('', 1.0)
    none = partial(Verdict, correct=False, judge=judge.name, answered=False)
    for item in questions:
        if item.id in unserved:
            verdicts[item.id] = none(item.id, reason=UNSERVED)
        elif item.id not in verdicts:
            verdicts[item.id] = none(item.id, reason='the judge gave no verdict', judged=False)
    return [verdicts[item.id] for item in questions]
