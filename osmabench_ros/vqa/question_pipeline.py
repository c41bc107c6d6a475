"""Makes a question set from frames: describe, write, filter, check, balance, with reasons."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import Field

from osmabench_ros.base.files import write_text
from osmabench_ros.base.progress import Progress, share, silent
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.language.client import ModelClient, Outcome, raise_if_incomplete
from osmabench_ros.language.model import ImagePart, ModelRequest
from osmabench_ros.language.prompts import Prompt, load_prompt
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa import schemas
from osmabench_ros.vqa.exact.selection import overused
from osmabench_ros.vqa.judging.reading import as_number, as_yes_no, plain
from osmabench_ros.vqa.questions import (
    AnswerType,
    AnswerValue,
    Category,
    Evidence,
    Question,
    question_id,
)

MOST_OVERUSED_IN_FRAME = 5
"""Questions about overused objects that one frame may contribute, as in OSMa-Bench."""

_VIEW = re.compile(
    r'\b(?:left|right|front|behind|background|foreground|facing'
    r'|in the (?:image|photo|photograph|picture|frame|view|scene description)|visible'
    r'|the statements?|camera|viewer)\b',
    re.IGNORECASE,
)  # fmt: skip
_VAGUE = re.compile(
    r'\b(?:something|anything else|some object|might|maybe|probably|possibly|seems?|appears?'
    r'|and/or|several|various|many|few|assorted|unknown|cannot be|not specified)\b',
    re.IGNORECASE,
)
_YES_NO_CATEGORIES = frozenset(
    (
        Category.EXISTENCE_POSITIVE.value,
        Category.EXISTENCE_NEGATIVE.value,
        Category.BINARY_LOGICAL.value,
    )
)


@dataclass(frozen=True)
class Candidate:
    """A written question on its way through validation; `objects` are normalised names."""

    id: str
    frame: int
    category: str
    text: str
    answer: str
    objects: tuple[str, ...]

    @property
    def answer_type(self) -> AnswerType:
        """Kind of its answer."""
        if plain(self.answer) in ('yes', 'no'):
            return AnswerType.YES_NO
        return (
            AnswerType.INTEGER if self.category == Category.MEASUREMENT.value else AnswerType.TEXT
        )


@dataclass(frozen=True)
class Removal:
    """Why a question was removed; stages are 'rules', 'overuse', 'model check' and 'balance'."""

    question_id: str
    text: str
    stage: str
    reason: str


Sifted = tuple[list[Candidate], list[Removal]]


def remove(candidates: Sequence[Candidate], stage: str, reasons: Mapping[str, str]) -> Sifted:
    """Return the candidates without a reason to be removed, and the removals of the others."""
    by_id = {candidate.id: candidate for candidate in candidates}
    removals = [Removal(key, by_id[key].text, stage, why) for key, why in reasons.items()]
    return [candidate for candidate in candidates if candidate.id not in reasons], removals


def sift_by_rules(
    candidates: Sequence[Candidate], counts: Mapping[int, Mapping[str, int]]
) -> Sifted:
    """Remove malformed, view-dependent, vague, duplicate and contradictory questions.

    `counts` has, by frame, how many of each object its description has. Of two equal questions
    "Yes" beats "No", and the larger number wins, because one frame does not show everything.
    """
    faults = {item.id: _fault(item, counts.get(item.frame, {})) for item in candidates}
    kept, removals = remove(candidates, 'rules', {key: why for key, why in faults.items() if why})
    unique, more = remove(kept, 'rules', _find_duplicates(kept))
    return unique, [*removals, *more]


def _fault(candidate: Candidate, counts: Mapping[str, int]) -> str:
    known = {category.value for category in Category}
    checks: tuple[tuple[bool, str], ...] = (
        (candidate.category not in known, f'unknown category "{candidate.category}"'),
        (bool(_VIEW.search(candidate.text)), 'depends on the viewpoint or names the image'),
        (bool(_VAGUE.search(candidate.answer)), 'the answer is vague'),
        (len(candidate.answer.split()) > 6, 'the answer is longer than a noun phrase'),
        (
            candidate.category in _YES_NO_CATEGORIES and as_yes_no(candidate.answer) is None,
            'the answer of a yes-or-no category is neither',
        ),
        (
            candidate.category == Category.MEASUREMENT.value
            and as_number(candidate.answer) is None,
            'the answer of a measurement is no number',
        ),
    )
    return next((reason for fails, reason in checks if fails), '') or _miscount(candidate, counts)


def _miscount(candidate: Candidate, counts: Mapping[str, int]) -> str:
    """Compare a count with the description it was written from."""
    number = as_number(candidate.answer)
    if candidate.category != Category.MEASUREMENT.value or number is None:
        return ''
    if len(candidate.objects) != 1 or candidate.objects[0] not in counts:
        return ''
    described = counts[candidate.objects[0]]
    return '' if described == number else f'the description has {described}'


def _find_duplicates(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return why questions that are asked several times are removed, by their ids."""
    groups: dict[str, list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        groups[plain(candidate.text).rstrip('?')].append(candidate)
    reasons: dict[str, str] = {}
    for group in groups.values():
        winner = max(group, key=_weight)
        answers = {plain(candidate.answer) for candidate in group}
        if len(answers) > 1 and winner.answer_type is AnswerType.TEXT:
            reasons |= {item.id: 'frames contradict each other' for item in group}
        else:
            losers = (item.id for item in group if item is not winner)
            reasons |= dict.fromkeys(losers, f'duplicate of {winner.id}')
    return reasons


def _weight(candidate: Candidate) -> tuple[float, float]:
    number = as_number(candidate.answer)
    return (float(as_yes_no(candidate.answer) == 'yes'), -1.0 if number is None else number)


def sift_by_overuse(candidates: Sequence[Candidate]) -> Sifted:
    """Limit questions about objects that are asked about far more than the median object.

    OSMa-Bench's rule: an object is overused above three times the median; a frame keeps five
    questions about overused objects.
    """
    too_often = overused(candidates, lambda candidate: candidate.objects)
    in_frame: Counter[int] = Counter()
    reasons = {}
    for candidate in candidates:
        names = sorted(too_often.intersection(candidate.objects))
        in_frame[candidate.frame] += bool(names)
        if names and in_frame[candidate.frame] > MOST_OVERUSED_IN_FRAME:
            reasons[candidate.id] = f'"{names[0]}" is overused'
    return remove(candidates, 'overuse', reasons)


def object_histogram(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Return how many questions mention each object, most frequent first."""
    counts = Counter(name for candidate in candidates for name in set(candidate.objects))
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def balance(candidates: Sequence[Candidate]) -> Sifted:
    """Cut the longer side of yes and no in each category; objects asked about most go first.

    Existence-Positive and -Negative hold one side each and are balanced against each other.
    """
    usage = object_histogram(candidates)
    sides: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        said = as_yes_no(candidate.answer) if candidate.answer_type is AnswerType.YES_NO else None
        if said is not None:
            is_existence = candidate.category.startswith('Existence')
            sides['Existence' if is_existence else candidate.category, said].append(candidate)

    def rank(candidate: Candidate) -> tuple[int, str]:
        return -max((usage[name] for name in candidate.objects), default=0), candidate.id

    reasons: dict[str, str] = {}
    for (group, said), items in sorted(sides.items()):
        other = len(sides.get((group, 'no' if said == 'yes' else 'yes'), ()))
        room = other if other else -(-len(items) // 3)
        for candidate in sorted(items, key=rank)[: max(0, len(items) - room)]:
            reasons[candidate.id] = f'too many answers "{said}"'
    return remove(candidates, 'balance', reasons)


def normalize_objects(names: Iterable[Any]) -> tuple[str, ...]:
    """Return object names in one spelling, each once, in order."""
    return tuple(dict.fromkeys(normalised_name(str(name)) for name in names if str(name).strip()))


class CategoryRequest(Strict):
    """Instructions for one category, and how many questions per frame."""

    name: Category
    least: int = Field(ge=0)
    most: int = Field(ge=1)
    meaning: str


class _Requests(Strict):
    categories: tuple[CategoryRequest, ...]


def category_requests(prompt: Prompt) -> tuple[CategoryRequest, ...]:
    """Return the categories that a prompt file lists; raises ConfigError if one is malformed."""
    data = {'categories': prompt.settings.get('categories', ())}
    return validated(_Requests, data, f'prompt "{prompt.name}"').categories


_MOST_OBJECTS = 60
_COLORS = ['#9aa5b1', '#1f6feb']


def write_histogram(path: Path, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Draw bars of the questions a frequent object is in to an SVG; equal data, equal bytes."""
    import altair as alt
    import pandas as pd
    import vl_convert

    names = sorted(before, key=lambda name: (-before[name], name))[:_MOST_OBJECTS]
    rows = [
        {'object': name, 'questions': counts.get(name, 0), 'as': kind}
        for kind, counts in (('as written', before), ('as kept', after))
        for name in names
    ]
    chart = (
        alt.Chart(pd.DataFrame(rows))
        .mark_bar()
        .encode(
            alt.X('object:N').sort(names).title(None),
            alt.XOffset('as:N').sort('descending'),
            alt.Y('questions:Q').title('questions that mention the object'),
            alt.Color('as:N').scale(range=_COLORS).sort('descending').title(None),
        )
    )
    write_text(path, vl_convert.vegalite_to_svg(chart.to_dict()))


SUITE = 'written_questions'
CHECK_BATCH = 5
"""Questions a checking prompt, as in OSMa-Bench."""


@dataclass(frozen=True)
class FrameImage:
    """A frame to write questions about, with its 0-based number in the sequence."""

    index: int
    image: ImagePart


@dataclass(frozen=True)
class WrittenSet:
    """A question set with the failed frames and removed questions, each with its reason."""

    questions: tuple[Question, ...]
    removals: tuple[Removal, ...]
    histogram_before: Mapping[str, int]
    histogram_after: Mapping[str, int]
    failed_frames: Mapping[int, str]
    prompts: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Return everything but the questions in a JSON-serialisable form."""
        data = asdict(self)
        del data['questions']
        return data


class QuestionWriter:
    """Writes the questions of one scene with a vision language model."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._describe = load_prompt('describe_frame')
        self._write = load_prompt('write_questions')
        self._check = load_prompt('check_questions')
        self.categories = category_requests(self._write)

    def description_requests(self, frames: Sequence[FrameImage]) -> list[ModelRequest]:
        """Return the requests for descriptions, one per frame."""
        prompt = self._describe.render()
        system = self._describe.system
        return [
            ModelRequest(prompt, system, (frame.image,), schemas.schema(schemas.Description))
            for frame in frames
        ]

    def writing_request(self, description: schemas.Description) -> ModelRequest:
        """Return the request for the questions about a frame."""
        prompt = self._write.render(
            statements=description.statements,
            objects=[item.model_dump() for item in description.objects],
            categories=self.categories,
        )
        return ModelRequest(
            prompt, self._write.system, schema=schemas.schema(schemas.WrittenQuestions)
        )

    def check_request(
        self, group: Sequence[Candidate], description: schemas.Description, image: ImagePart
    ) -> ModelRequest:
        """Return the request to look again at some questions about one frame."""
        questions = [
            {'id': item.id, 'question': item.text, 'answer': item.answer} for item in group
        ]
        prompt = self._check.render(statements=description.statements, questions=questions)
        return ModelRequest(prompt, self._check.system, (image,), schemas.schema(schemas.Checks))

    def write(
        self, frames: Sequence[FrameImage], *, scene: str, progress: Progress = silent
    ) -> WrittenSet:
        """Return the question set of a scene; raises IncompleteError if the server failed."""
        failed: dict[int, str] = {}
        requests = self.description_requests(frames)
        descriptions = self._ask_frames(
            dict(zip((frame.index for frame in frames), requests, strict=True)),
            schemas.Description, failed, share(progress, 0.0, 1 / 3), 'descriptions',
        )  # fmt: skip
        written = self._ask_frames(
            {index: self.writing_request(item) for index, item in descriptions.items()},
            schemas.WrittenQuestions, failed, share(progress, 1 / 3, 2 / 3), 'questions',
        )  # fmt: skip
        candidates = [
            Candidate(
                f'f{index:06d}-{number:03d}',
                index,
                item.category,
                ' '.join(item.question.split()),
                ' '.join(item.answer.split()),
                normalize_objects(item.objects),
            )
            for index, reply in written.items()
            for number, item in enumerate(reply.questions)
        ]
        counts = {
            index: {
                name: item.count for item in d.objects for name in normalize_objects([item.name])
            }
            for index, d in descriptions.items()
        }
        kept, removals = sift_by_rules(candidates, counts)
        kept, overuse = sift_by_overuse(kept)
        images = {frame.index: frame.image for frame in frames}
        reasons = self._check_questions(kept, descriptions, images, share(progress, 2 / 3, 1.0))
        kept, doubted = remove(kept, 'model check', reasons)
        kept, unbalanced = balance(kept)
        prompts = tuple(p.identity for p in (self._describe, self._write, self._check))
        return WrittenSet(
            tuple(self._question(candidate, scene, prompts) for candidate in kept),
            (*removals, *overuse, *doubted, *unbalanced),
            object_histogram(candidates),
            object_histogram(kept),
            failed,
            prompts,
        )

    def _ask(
        self,
        requests: Sequence[ModelRequest],
        reply: type[schemas.Reply],
        progress: Progress,
        what: str,
    ) -> list[Outcome[schemas.Reply]]:
        read = partial(schemas.parse, reply)
        outcomes = self._client.ask_all(requests, read, progress=progress, what=what)
        lost = 'requests for questions' if what == 'questions' else what
        raise_if_incomplete([outcome.failure for outcome in outcomes], lost)
        return outcomes

    def _ask_frames(
        self,
        requests: Mapping[int, ModelRequest],
        reply: type[schemas.Reply],
        failed: dict[int, str],
        progress: Progress,
        what: str,
    ) -> dict[int, schemas.Reply]:
        """Return replies by frame; frames without one go to `failed`, with the reason."""
        outcomes = self._ask(list(requests.values()), reply, progress, what)
        by_frame = dict(zip(requests, outcomes, strict=True))
        failed |= {i: str(item.error) for i, item in by_frame.items() if item.value is None}
        return {i: item.value for i, item in by_frame.items() if item.value is not None}

    def _check_questions(
        self,
        candidates: Sequence[Candidate],
        descriptions: Mapping[int, schemas.Description],
        images: Mapping[int, ImagePart],
        progress: Progress,
    ) -> dict[str, str]:
        """Return why questions are removed that the model does not keep, by their ids."""
        groups: list[list[Candidate]] = []
        for index in descriptions:
            own = [candidate for candidate in candidates if candidate.frame == index]
            groups += [own[i : i + CHECK_BATCH] for i in range(0, len(own), CHECK_BATCH)]
        requests = [
            self.check_request(group, descriptions[group[0].frame], images[group[0].frame])
            for group in groups
        ]
        outcomes = self._ask(requests, schemas.Checks, progress, 'checks')
        reasons = {}
        for group, outcome in zip(groups, outcomes, strict=True):
            checks = {c.id: c for c in outcome.value.checks} if outcome.value is not None else {}
            for candidate in group:
                check = checks.get(candidate.id)
                if check is None:
                    reasons[candidate.id] = str(outcome.error or 'no verdict')
                elif check.verdict != 'keep':
                    reasons[candidate.id] = f'{check.verdict}: {check.reason}'
        return reasons

    def _question(self, candidate: Candidate, scene: str, prompts: Sequence[str]) -> Question:
        answer: AnswerValue = candidate.answer
        number = as_number(candidate.answer)
        if candidate.answer_type is AnswerType.YES_NO:
            answer = as_yes_no(candidate.answer) or candidate.answer
        elif candidate.answer_type is AnswerType.INTEGER and number is not None:
            answer = int(number)
        return Question(
            question_id(SUITE, scene, candidate.text),
            SUITE,
            scene,
            candidate.category,
            candidate.text,
            candidate.answer_type,
            answer,
            evidence=Evidence(frames=(candidate.frame,)),
            provenance={'model': self._client.name, 'prompts': ' '.join(prompts)},
        )


# A rich frame: what models write about one is rarely longer.
STATEMENTS, OBJECTS = 25, 20
SENTENCE = 'a brown wooden chair stands next to the large white table near the window'


def estimate_requests(writer: QuestionWriter, frames: Sequence[FrameImage]) -> list[ModelRequest]:
    """Return requests as many and as long as writing about frames may take, asking no model.

    The first are the very requests for descriptions. Those that follow depend on the replies, so
    examples of a rich frame take their place: with as many questions as each category may have,
    none of them sifted out before the model checks them.
    """
    description = schemas.Description(
        statements=[SENTENCE] * STATEMENTS,
        objects=[schemas.SeenObject(name='wooden chair', count=1)] * OBJECTS,
    )
    questions = sum(item.most for item in writer.categories)
    requests = writer.description_requests(frames)
    for frame in frames:
        candidates = [
            Candidate(f'f{frame.index:06d}-{number:03d}', frame.index, '', SENTENCE, SENTENCE, ())
            for number in range(questions)
        ]
        requests.append(writer.writing_request(description))
        requests += [
            writer.check_request(candidates[start : start + CHECK_BATCH], description, frame.image)
            for start in range(0, questions, CHECK_BATCH)
        ]
    return requests


_NOVEL_M, _NOVEL_RAD = 1.0, math.pi / 6


def novel_frames(poses: Sequence[Pose], *, most: int | None = None) -> list[int]:
    """Return frames, `most` at most, with an optical pose far or turned from all before."""
    taken: list[int] = []
    for index, pose in enumerate(poses):
        if all(_differs(pose, poses[i]) for i in taken):
            taken.append(index)
    if most is not None and len(taken) > most:
        chosen = np.linspace(0, len(taken) - 1, most).round().astype(int)
        taken = [taken[i] for i in dict.fromkeys(chosen.tolist())]
    return taken


def _differs(first: Pose, second: Pose) -> bool:
    if np.linalg.norm(first.translation - second.translation) >= _NOVEL_M:
        return True
    cosine = float(first.rotation[:, 2] @ second.rotation[:, 2])
    return math.acos(min(1.0, max(-1.0, cosine))) >= _NOVEL_RAD
