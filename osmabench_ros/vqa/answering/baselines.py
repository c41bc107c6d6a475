"""Answers without a map: what any method must beat."""

from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from itertools import pairwise

from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.vqa.graph_index import THINGS
from osmabench_ros.vqa.questions import Answer, AnswerType, AnswerValue, Question

FOLDS = 10
_CANDIDATES = 20


def constant(questions: Sequence[Question], value: str) -> list[Answer]:
    """Answer every question with the same word, e.g. 'yes'."""
    return [Answer(question.id, value, f'always {value}') for question in questions]


def most_frequent(questions: Sequence[Question]) -> list[Answer]:
    """Answer with the most frequent right answer of the question's category.

    It knows the right answers of these very questions: the best that a constant can do.
    """
    by_category: dict[str, list[AnswerValue]] = defaultdict(list)
    for question in questions:
        by_category[question.category].append(question.answer)
    best = {category: _most_common(answers) for category, answers in by_category.items()}
    return [Answer(item.id, best[item.category], 'most frequent') for item in questions]


def _most_common(answers: Sequence[AnswerValue]) -> AnswerValue:
    counts = Counter(answers)
    return min(counts, key=lambda value: (-counts[value], str(value)))


def question_only(questions: Sequence[Question]) -> list[Answer]:
    """Answer from the wording alone, by naive Bayes over words, learnt on other questions.

    Questions of one scene are answered by what the other scenes teach; with a single scene, by
    ten folds of it. What this gets right needs no map.
    """
    folds = _folds(questions)
    answers: dict[str, AnswerValue | None] = {}
    for fold in sorted(set(folds)):
        training = [q for q, other in zip(questions, folds, strict=True) if other != fold]
        models = {kind: _WordModel(training, kind) for kind in AnswerType}
        for question, own in zip(questions, folds, strict=True):
            if own == fold:
                answers[question.id] = models[question.answer_type].guess(question.text)
    return [Answer(item.id, answers[item.id], 'question only') for item in questions]


def _folds(questions: Sequence[Question]) -> list[str]:
    if len({question.scene for question in questions}) > 1:
        return [question.scene for question in questions]
    digests = [hashlib.sha256(question.id.encode()).hexdigest() for question in questions]
    return [str(int(digest[:8], 16) % FOLDS) for digest in digests]


class _WordModel:
    """Multinomial naive Bayes with add-one smoothing over the words and word pairs of a text."""

    def __init__(self, questions: Sequence[Question], kind: AnswerType) -> None:
        self._words: dict[AnswerValue, Counter[str]] = defaultdict(Counter)
        self._answers: Counter[AnswerValue] = Counter()
        for question in questions:
            if question.answer_type is kind:
                self._answers[question.answer] += 1
                self._words[question.answer].update(_features(question.text))
        self._likely = [answer for answer, _ in self._answers.most_common(_CANDIDATES)]
        self._vocabulary = len({word for words in self._words.values() for word in words}) + 1
        self._totals = {answer: words.total() for answer, words in self._words.items()}

    def guess(self, text: str) -> AnswerValue | None:
        """Return the likeliest answer, None if nothing was learnt."""
        if not self._answers:
            return None
        features = _features(text)
        return min(self._likely, key=lambda value: (-self._score(value, features), str(value)))

    def _score(self, value: AnswerValue, features: Sequence[str]) -> float:
        words, total = self._words[value], self._totals[value] + self._vocabulary
        score = math.log(self._answers[value])
        return score + sum(math.log((words[word] + 1) / total) for word in features)


def _features(text: str) -> list[str]:
    words = re.findall(r'[a-z0-9.]+', text.lower())
    return [*words, *(f'{a} {b}' for a, b in pairwise(words))]


def ground_truth_map(
    graph: SceneGraph, seen_ids: Collection[int], label_set: LabelSet | None = None
) -> SemanticMap:
    """Return the map of a method that makes no mistake: the seen part of the ground truth.

    Answers from it are the ceiling of the answerer: what it misses is no fault of a map.
    """
    seen = set(seen_ids)
    nodes = tuple(n for n in graph.nodes if n.kind not in THINGS or n.id in seen)
    kept = {node.id for node in nodes}
    edges = tuple(edge for edge in graph.edges if {edge.source, edge.target} <= kept)
    header = MapHeader(Provenance('ground truth'), frame_id=graph.frame_id)
    return SemanticMap(header, SceneGraph(nodes, edges, graph.frame_id), label_set=label_set)
