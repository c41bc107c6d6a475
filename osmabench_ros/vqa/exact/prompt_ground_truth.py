"""Questions of OSMa-Bench++ with answers from a specification, without images (PromptGT)."""

from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np

from osmabench_ros.scenes.specification import ObjectGroup, SceneSpecification, SpecifiedRelation
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa.english import MATERIALS, is_plural_only
from osmabench_ros.vqa.exact.generation import QuestionSet, question_of
from osmabench_ros.vqa.exact.view import Draft, shuffled
from osmabench_ros.vqa.kinds import Query, QueryKind
from osmabench_ros.vqa.questions import AnswerValue, PromptCategory, Question

SUITE = 'promptgt'
PROMPTGT = QuestionSet(SUITE, 'promptgt/2', tuple(item.value for item in PromptCategory), ())

# Questions of a scene; OSMa-Bench++ asks 8 to 14, 1 to 4 of them about existence.
MOST = {PromptCategory.MEASUREMENT: 5, PromptCategory.RELATIONS: 5, PromptCategory.EXISTENCE: 4}

# What does not hold of two objects; one under a desk is within the extent of the desk.
_EXCLUDED = {'on': ('under', 'in'), 'in': ('on', 'under'), 'under': ('on',)}

_ASKED = frozenset((*_EXCLUDED, 'next to', 'near'))
_CARRIED = {'on': QueryKind.SUPPORT_OF, 'in': QueryKind.CONTAINER_OF}


def promptgt_questions(
    specification: SceneSpecification, *, scene: str, seed: int
) -> list[Question]:
    """Return questions with answers that follow from a specification only, chosen by seed.

    There are MOST in each category: counts, which are over all rooms; relations of unique objects,
    a relation that excludes the stated one being answered with no; existence. An
    object that differs from others of its class by colour or material is called by that.
    """
    rng = np.random.default_rng(seed)
    totals = _count_labels(group for room in specification.rooms for group in room.objects)
    sources = (_ask_for_counts, _ask_for_relations, _ask_for_existence)
    found: list[Question] = []
    for (category, most), source in zip(MOST.items(), sources, strict=True):
        answers: dict[Query, AnswerValue] = {}
        for query, answer in source(specification, totals):
            answers.setdefault(query, answer)
        own = [Draft(query, category, answer=answer) for query, answer in answers.items()]
        worded = (question_of(item, scene, seed, PROMPTGT) for item in shuffled(rng, own))
        found += [*filter(None, worded)][:most]
    return found


def _label(group: ObjectGroup) -> str:
    return normalised_name(group.label)


def _count_labels(groups: Iterable[ObjectGroup]) -> Counter[str]:
    return Counter(_label(group) for group in groups for _ in range(group.count))


def _ask_for_counts(
    specification: SceneSpecification, totals: Counter[str]
) -> Iterator[tuple[Query, AnswerValue]]:
    for label, count in totals.items():
        if not is_plural_only(label):
            yield Query(QueryKind.COUNT, (label,)), count
    for room in specification.rooms:
        own = _count_labels(room.objects)
        for label, count in own.items() if len(specification.rooms) > 1 else ():
            anchors = [other for other in own if totals[other] == 1 and other != label]
            for anchor in anchors[:1]:
                yield Query(QueryKind.COUNT_WITH, (label, anchor)), count
        around = [item for item in room.relations if item.relation is SpecifiedRelation.AROUND]
        for item in around:
            group, other = room.group(item.subject), _label(room.group(item.object[0]))
            if totals[other] == 1 and own[_label(group)] == group.count:
                yield Query(QueryKind.ROUND, (_label(group), other)), group.count


def _ask_for_relations(
    specification: SceneSpecification, totals: Counter[str]
) -> Iterator[tuple[Query, AnswerValue]]:
    for room in specification.rooms:
        for item in room.relations:
            word = item.relation.value
            labels = tuple(_label(room.group(name)) for name in (item.subject, *item.object))
            if word not in _ASKED or any(totals[label] != 1 for label in labels):
                continue
            yield Query(QueryKind.RELATED, labels, word), 'yes'
            for other in _EXCLUDED.get(word, ()):
                yield Query(QueryKind.RELATED, labels, other), 'no'
            if word in _CARRIED:
                yield Query(_CARRIED[word], labels[:1]), labels[1]
                carriers = {i.object[0] for i in room.relations if i.relation is item.relation}
                for label in (_label(room.group(name)) for name in sorted(carriers)):
                    if totals[label] == 1 and label not in labels:
                        yield Query(QueryKind.RELATED, (labels[0], label), word), 'no'


def _ask_for_existence(
    specification: SceneSpecification, totals: Counter[str]
) -> Iterator[tuple[Query, AnswerValue]]:
    """Ask for each group, with its attributes where the class has more objects."""
    for room in specification.rooms:
        for group in room.objects:
            name = _label(group)
            if totals[name] > group.count:
                adjectives = (group.color, MATERIALS.get(group.material, group.material))
                name = ' '.join(filter(None, (*adjectives, name)))
            yield Query(QueryKind.EXISTS, (name,)), 'yes'
