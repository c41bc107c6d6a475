"""Questions of OSMa-Bench++ with answers from a specification, without images (PromptGT)."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from osmabench_ros.scenes.specification import (
    ObjectGroup,
    RoomSpecification,
    SceneSpecification,
    SpecifiedRelation,
)
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa.english import MATERIALS, is_plural_only
from osmabench_ros.vqa.exact.generation import QuestionSet, question_of
from osmabench_ros.vqa.exact.view import Draft, shuffled
from osmabench_ros.vqa.kinds import Query, QueryKind
from osmabench_ros.vqa.questions import PromptCategory, Question

SUITE = 'promptgt'
PROMPTGT = QuestionSet(SUITE, 'promptgt/2', tuple(item.value for item in PromptCategory), ())

MOST = {PromptCategory.MEASUREMENT: 5, PromptCategory.RELATIONS: 5, PromptCategory.EXISTENCE: 4}
"""Questions of a scene; OSMa-Bench++ asks 8 to 14, 1 to 4 of them about existence."""

_EXCLUDED = {'on': ('under', 'in'), 'in': ('on', 'under'), 'under': ('on',)}
"""What does not hold of two objects; one under a desk is within the extent of the desk."""

_ASKED = frozenset((*_EXCLUDED, 'next to', 'near'))


def promptgt_questions(
    specification: SceneSpecification, *, scene: str, seed: int
) -> list[Question]:
    """Return questions with answers that follow from a specification only, chosen by seed.

    There are MOST in each category: counts, which are over all rooms; relations of unique objects,
    a relation that excludes the stated one being answered with no; existence. An
    object that differs from others of its class by colour or material is called by that.
    """
    rng = np.random.default_rng(seed)
    drafts: dict[Query, Draft] = {}
    for draft in (*_counts(specification), *_relations(specification), *_there(specification)):
        drafts.setdefault(draft.query, draft)
    found = []
    for category, most in MOST.items():
        own = [item for item in drafts.values() if item.category is category]
        worded = (question_of(item, scene, seed, PROMPTGT) for item in shuffled(rng, own))
        found += [item for item in worded if item is not None][:most]
    return found


def _groups(specification: SceneSpecification) -> list[ObjectGroup]:
    return [group for room in specification.rooms for group in room.objects]


def _totals(specification: SceneSpecification) -> Counter[str]:
    totals: Counter[str] = Counter()
    for group in _groups(specification):
        totals[normalised_name(group.label)] += group.count
    return totals


def _phrase(group: ObjectGroup, totals: Counter[str]) -> str:
    """Return the name of a group, with its attributes where the class has more objects."""
    label = normalised_name(group.label)
    if totals[label] == group.count:
        return label
    adjectives = (group.color, MATERIALS.get(group.material, group.material))
    return ' '.join(filter(None, (*adjectives, label)))


def _counts(specification: SceneSpecification) -> Iterator[Draft]:
    totals = _totals(specification)
    for label, count in totals.items():
        if not is_plural_only(label):
            yield _draft_measurement(Query(QueryKind.COUNT, (label,)), count)
    for room in specification.rooms:
        single = [group for group in room.objects if _is_single(group, totals)]
        own = _totals(SceneSpecification(name='room', rooms=(room,)))
        for label, count in own.items() if len(specification.rooms) > 1 else ():
            anchors = [group for group in single if normalised_name(group.label) != label]
            for anchor in anchors[:1]:
                query = Query(QueryKind.COUNT_WITH, (label, _phrase(anchor, totals)))
                yield _draft_measurement(query, count)
        for item in room.relations:
            group = room.group(item.subject)
            if item.relation is SpecifiedRelation.AROUND:
                other = room.group(item.object[0])
                label = normalised_name(group.label)
                if _is_single(other, totals) and own[label] == group.count:
                    query = Query(QueryKind.ROUND, (label, _phrase(other, totals)))
                    yield _draft_measurement(query, group.count)


def _is_single(group: ObjectGroup, totals: Counter[str]) -> bool:
    """Return whether a group is one object that its name distinguishes from all others."""
    return group.count == 1 and totals[normalised_name(group.label)] == 1


def _draft_measurement(query: Query, count: int) -> Draft:
    return Draft(query, PromptCategory.MEASUREMENT, answer=count)


def _relations(specification: SceneSpecification) -> Iterator[Draft]:
    totals = _totals(specification)
    for room in specification.rooms:
        for item in room.relations:
            word = item.relation.value
            groups = [room.group(name) for name in (item.subject, *item.object)]
            if word not in _ASKED or not all(_is_single(group, totals) for group in groups):
                continue
            phrases = tuple(_phrase(group, totals) for group in groups)
            yield _draft_relation(phrases, word, 'yes')
            for other in _EXCLUDED.get(word, ()):
                yield _draft_relation(phrases, other, 'no')
            yield from _carrier(phrases, word, room, totals)


def _carrier(
    phrases: tuple[str, ...], word: str, room: RoomSpecification, totals: Counter[str]
) -> Iterator[Draft]:
    """Yield the support or container of an object, and that it is not on another object."""
    kind = {'on': QueryKind.SUPPORT_OF, 'in': QueryKind.CONTAINER_OF}.get(word)
    if kind is None:
        return
    yield Draft(Query(kind, phrases[:1]), PromptCategory.RELATIONS, answer=phrases[1])
    carriers = {item.object[0] for item in room.relations if item.relation.value == word}
    for name in sorted(carriers):
        other = room.group(name)
        if _is_single(other, totals) and _phrase(other, totals) not in phrases:
            yield _draft_relation((phrases[0], _phrase(other, totals)), word, 'no')


def _draft_relation(phrases: tuple[str, ...], word: str, answer: str) -> Draft:
    query = Query(QueryKind.RELATED, phrases, word)
    return Draft(query, PromptCategory.RELATIONS, answer=answer)


def _there(specification: SceneSpecification) -> Iterator[Draft]:
    totals = _totals(specification)
    for group in _groups(specification):
        query = Query(QueryKind.EXISTS, (_phrase(group, totals),))
        yield Draft(query, PromptCategory.EXISTENCE, answer='yes')
