"""Baseline answers without a map."""

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from osmabench_ros.base.files import read_json
from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import (
    THINGS,
    NodeKind,
    SceneGraph,
    SceneNode,
    ScoredLabel,
)
from osmabench_ros.vqa.graph_index import keep_nodes
from osmabench_ros.vqa.kinds import Query, QueryKind
from osmabench_ros.vqa.questions import LETTERS, Answer, AnswerType, AnswerValue, Question
from osmabench_ros.vqa.wording import parsed

FOLDS = 10
_CANDIDATES = 20


def constant(questions: Sequence[Question], value: str) -> list[Answer]:
    """Answer every question with the same word, e.g. 'yes'."""
    return [Answer(question.id, value, f'always {value}') for question in questions]


def most_frequent(questions: Sequence[Question]) -> list[Answer]:
    """Answer with the most frequent right answer of the category: the best of all constants."""
    counts: dict[str, Counter[AnswerValue]] = defaultdict(Counter)
    for question in questions:
        counts[question.category][_constant_for(question)] += 1
    best = {
        category: min(found, key=lambda value: (-found[value], str(value)))
        for category, found in counts.items()
    }
    return [Answer(item.id, best[item.category], 'most frequent') for item in questions]


def _constant_for(question: Question) -> AnswerValue:
    """Return what would always have to be said for this answer: of a choice its letter."""
    if not question.options:
        return question.answer
    return LETTERS[question.options.index(str(question.answer))]


def question_only(questions: Sequence[Question]) -> list[Answer]:
    """Answer from the wording only, by naive Bayes over words, learnt on other questions."""
    folds = _folds(questions)
    features = {question.id: _features(question.text) for question in questions}
    models = {kind: WordModel() for kind in AnswerType}
    for question in questions:
        models[question.answer_type].learn(question.answer, features[question.id], 1)
    answers: dict[str, AnswerValue | None] = {}
    for fold in sorted(set(folds)):
        own = [q for q, other in zip(questions, folds, strict=True) if other == fold]
        for question in own:
            models[question.answer_type].learn(question.answer, features[question.id], -1)
        for question in own:
            model = models[question.answer_type]
            answers[question.id] = model.guess(features[question.id], question.options)
        for question in own:
            models[question.answer_type].learn(question.answer, features[question.id], 1)
    return [Answer(item.id, answers[item.id], 'question only') for item in questions]


def answer_without_map(questions: Sequence[Question]) -> dict[str, list[Answer]]:
    """Return the answers of the baselines that fit every question, by name."""
    return {
        'always_yes': constant(questions, 'yes'),
        'always_no': constant(questions, 'no'),
        'most_frequent': most_frequent(questions),
        'question_only': question_only(questions),
    }


def _folds(questions: Sequence[Question]) -> list[str]:
    if len({question.scene for question in questions}) > 1:
        return [question.scene for question in questions]
    digests = [hashlib.sha256(question.id.encode()).hexdigest() for question in questions]
    return [str(int(digest[:8], 16) % FOLDS) for digest in digests]


class WordModel:
    """Multinomial naive Bayes with add-one smoothing over the words and word pairs of a text."""

    def __init__(self) -> None:
        self._words: dict[AnswerValue, Counter[str]] = defaultdict(Counter)
        self._totals: Counter[AnswerValue] = Counter()
        self._answers: Counter[AnswerValue] = Counter()
        self._vocabulary: set[str] = set()
        self._likely: list[AnswerValue] | None = None

    def learn(self, answer: AnswerValue, features: Sequence[str], times: int) -> None:
        """Count an answered question; -1 forgets it again."""
        self._answers[answer] += times
        self._totals[answer] += times * len(features)
        words = self._words[answer]
        for word in features:
            words[word] += times
        self._vocabulary.update(features)
        self._likely = None

    def guess(
        self, features: Sequence[str], options: Sequence[AnswerValue] = ()
    ) -> AnswerValue | None:
        """Return the likeliest answer, of a choice an option, None if nothing is known."""
        if options:
            known = [option for option in options if self._answers[option] > 0]
            return max(known, key=lambda option: self._score(option, features), default=options[0])
        if self._likely is None:
            known = [value for value, count in self._answers.items() if count > 0]
            known.sort(key=lambda value: (-self._answers[value], str(value)))
            self._likely = known[:_CANDIDATES]
        if not self._likely:
            return None
        return min(self._likely, key=lambda value: (-self._score(value, features), str(value)))

    def _score(self, value: AnswerValue, features: Sequence[str]) -> float:
        words = self._words[value]
        total = self._totals[value] + len(self._vocabulary) + 1
        seen = sum(math.log(words[word] + 1) for word in features)
        return math.log(self._answers[value]) + seen - len(features) * math.log(total)


def _features(text: str) -> list[str]:
    words = re.findall(r'[a-z0-9.]+', text.lower())
    return [*words, *(f'{a} {b}' for a, b in pairwise(words))]


# Right answers by kind and words, of apartments that no run uses; by benchmarks/learn_answers.py.
TABLE = Path(__file__).with_name('answers_of_other_scenes.json')

_CHOICES = frozenset({QueryKind.WHICH_MORE, QueryKind.CLOSER})
_SEPARATOR = ' | '


def answer_from_text(questions: Sequence[Question]) -> list[Answer]:
    """Answer exact questions as those about other scenes were answered; None to unknown kinds.

    By naive Bayes over the words in the gaps of a wording.
    """
    answers = []
    for question in questions:
        value, query = None, parsed(question.text)
        if query is not None:
            options = query.phrases[:2] if query.kind in _CHOICES else ()
            model = _learn_kinds()[query.kind.value]
            value = model.guess(_list_features(gaps_of(query)), options)
        answers.append(Answer(question.id, value, 'learned text'))
    return answers


@cache
def _learn_kinds() -> Mapping[str, WordModel]:
    models: dict[str, WordModel] = defaultdict(WordModel)
    for kind, answered in read_json(TABLE).items():
        for gaps, answers in answered.items():
            for answer in answers:
                models[kind].learn(answer, _list_features(gaps), 1)
    return models


def gaps_of(query: Query) -> str:
    """Return the words in the gaps of the wordings of a question, the key of its answers."""
    number = '' if query.number is None else f'{query.number:g}'
    return _SEPARATOR.join((*query.phrases, query.word, number))


def _list_features(gaps: str) -> list[str]:
    """Return each part, and its last word if it has several, with the place."""
    parts = list(enumerate(gaps.split(_SEPARATOR)))
    return [f'{n} {word}' for n, part in parts for word in {part, part.split(' ')[-1]}]


def ground_truth_map(
    graph: SceneGraph,
    seen_ids: Collection[int],
    label_set: LabelSet | None = None,
    *,
    without: Collection[str] = (),
) -> SemanticMap:
    """Return the seen part of the ground truth as a map, `without` some attributes."""
    seen = set(seen_ids)
    bare = graph.drop_attributes(without)
    kept = keep_nodes(bare, lambda node: node.kind not in THINGS or node.id in seen)
    header = MapHeader(Provenance('ground truth'), frame_id=graph.frame_id)
    return SemanticMap(header, kept, label_set=label_set)


def permute_names(semantic_map: SemanticMap) -> SemanticMap:
    """Return a map with labels and attributes permuted among its objects."""
    graph = semantic_map.graph
    objects = [node for node in graph.nodes if node.kind is NodeKind.OBJECT]
    order = np.random.default_rng(0).permutation(len(objects))
    given = {node.id: objects[other] for node, other in zip(objects, order, strict=True)}
    nodes = tuple(
        replace(node, labels=other.labels, attributes=other.attributes)
        for node in graph.nodes
        for other in (given.get(node.id, node),)
    )
    return replace(semantic_map, graph=replace(graph, nodes=nodes))


def keep_inventory(semantic_map: SemanticMap) -> SemanticMap:
    """Return a map of only the labels of its objects: which there are, and how many."""
    nodes = tuple(SceneNode(node.id, node.kind, node.labels) for node in semantic_map.graph.nodes)
    return replace(semantic_map, graph=SceneGraph(nodes), dense=None)


def with_random_labels(semantic_map: SemanticMap, label_set: LabelSet) -> SemanticMap:
    """Return a map with names of objects drawn from all objects' classes, one draw per node."""
    things = [item for item in label_set.classes if not item.structure]
    rng = np.random.default_rng(0)
    nodes = []
    for node in semantic_map.graph.nodes:
        if node.kind is NodeKind.OBJECT and things:
            drawn = things[int(rng.integers(len(things)))]
            node = replace(node, labels=(ScoredLabel(drawn.name, 1.0, drawn.id),))
        nodes.append(node)
    return replace(semantic_map, graph=replace(semantic_map.graph, nodes=tuple(nodes)))
