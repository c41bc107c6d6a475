"""Makes a question set from frames: describe, write, filter, check, balance, with reasons."""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from pydantic import Field

from osmabench_ros.base.files import write_text
from osmabench_ros.base.images import select_evenly
from osmabench_ros.base.progress import Progress, share, silent
from osmabench_ros.base.strict import Strict
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.language.client import ModelClient, Outcome, raise_if_incomplete
from osmabench_ros.language.model import ImagePart, ModelRequest
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.semantics.labels import normalised_name
from osmabench_ros.vqa import schemas
from osmabench_ros.vqa.exact.selection import overused
from osmabench_ros.vqa.judging.reading import as_number, as_yes_no, plain
from osmabench_ros.vqa.questions import AnswerType, AnswerValue, Category, Question, make_question
from osmabench_ros.vqa.schemas import make_request

# Questions about overused objects that one frame may contribute, as in OSMa-Bench.
MOST_OVERUSED_IN_FRAME = 5

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
_YES_NO = (Category.EXISTENCE_POSITIVE, Category.EXISTENCE_NEGATIVE, Category.BINARY_LOGICAL)


@dataclass(frozen=True)
class FrameImage:
    """A frame to write questions about, with its 0-based number in the sequence."""

    index: int
    image: ImagePart


@dataclass(frozen=True)
class DescribedFrame(FrameImage):
    """A frame with statements about it."""

    description: schemas.Description


@dataclass(frozen=True)
class Candidate:
    """A written question on its way through validation; `objects` are normalised names."""

    id: str
    frame: DescribedFrame
    category: str
    text: str
    answer: str
    objects: tuple[str, ...]

    @property
    def answer_type(self) -> AnswerType:
        """Kind of its answer."""
        if plain(self.answer) in ('yes', 'no'):
            return AnswerType.YES_NO
        return AnswerType.INTEGER if self.category == Category.MEASUREMENT else AnswerType.TEXT

    @property
    def fault(self) -> str:
        """Why it is malformed, dependent on the view, vague or miscounted; '' if it is not."""
        number = as_number(self.answer)
        counts = {normalised_name(x.name): x.count for x in self.frame.description.objects}
        described = counts.get(self.objects[0]) if len(self.objects) == 1 else None
        is_count = self.category == Category.MEASUREMENT
        faults = {
            f'unknown category "{self.category}"': self.category not in list(Category),
            'depends on the viewpoint or names the image': _VIEW.search(self.text),
            'the answer is vague': _VAGUE.search(self.answer),
            'the answer is longer than a noun phrase': len(self.answer.split()) > 6,
            'the answer of a yes-or-no category is neither': (
                self.category in _YES_NO and as_yes_no(self.answer) is None
            ),
            'the answer of a measurement is no number': is_count and number is None,
            f'the description has {described}': is_count and described not in (None, number),
        }
        return next((fault for fault, is_found in faults.items() if is_found), '')


@dataclass(frozen=True)
class Removal:
    """Why a question was removed; stages are 'rules', 'overuse', 'model check' and 'balance'."""

    question_id: str
    text: str
    stage: str
    reason: str


# Returns why some questions are removed, by their ids.
Sieve = Callable[[Sequence[Candidate]], Mapping[str, str]]


def sift(
    candidates: Sequence[Candidate], sieves: Iterable[tuple[str, Sieve]]
) -> tuple[list[Candidate], list[Removal]]:
    """Return the candidates that pass each stage, and the removals of the others."""
    kept = list(candidates)
    removals: list[Removal] = []
    for stage, find_reasons in sieves:
        reasons = find_reasons(kept)
        texts = {item.id: item.text for item in kept}
        removals += [Removal(key, texts[key], stage, why) for key, why in reasons.items()]
        kept = [item for item in kept if item.id not in reasons]
    return kept, removals


def find_faults(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return the faults of questions by their ids."""
    return {item.id: fault for item in candidates if (fault := item.fault)}


def find_duplicates(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return why questions that are asked several times are removed, by their ids.

    Of two equal questions "Yes" beats "No", and the larger number wins, because one frame does
    not show everything. Other answers contradict each other.
    """
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


def find_overused(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return why questions about objects that are asked about far too often are removed, by id.

    OSMa-Bench's rule: an object is overused above three times the median; a frame keeps five
    questions about overused objects.
    """
    too_often = overused(candidates, lambda candidate: candidate.objects)
    in_frame: Counter[int] = Counter()
    reasons = {}
    for candidate in candidates:
        names = sorted(too_often.intersection(candidate.objects))
        in_frame[candidate.frame.index] += bool(names)
        if names and in_frame[candidate.frame.index] > MOST_OVERUSED_IN_FRAME:
            reasons[candidate.id] = f'"{names[0]}" is overused'
    return reasons


def object_histogram(candidates: Iterable[Candidate]) -> dict[str, int]:
    """Return how many questions mention each object."""
    return dict(Counter(name for candidate in candidates for name in set(candidate.objects)))


def find_unbalanced(candidates: Sequence[Candidate]) -> dict[str, str]:
    """Return why the longer side of yes and no in a category is cut, by the ids of its questions.

    Objects asked about most go first. Existence-Positive and -Negative hold one side each and are
    balanced against each other.
    """
    usage = object_histogram(candidates)
    sides: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        if candidate.answer_type is AnswerType.YES_NO:
            is_existence = candidate.category.startswith('Existence')
            category = 'Existence' if is_existence else candidate.category
            sides[category, plain(candidate.answer)].append(candidate)

    def rank(candidate: Candidate) -> tuple[int, str]:
        return -max((usage[name] for name in candidate.objects), default=0), candidate.id

    reasons: dict[str, str] = {}
    for (group, said), items in sorted(sides.items()):
        other = len(sides.get((group, 'no' if said == 'yes' else 'yes'), ()))
        room = other if other else -(-len(items) // 3)
        for candidate in sorted(items, key=rank)[: max(0, len(items) - room)]:
            reasons[candidate.id] = f'too many answers "{said}"'
    return reasons


class CategoryRequest(Strict):
    """Instructions for one category, and how many questions per frame."""

    name: Category
    least: int = Field(ge=0)
    most: int = Field(ge=1)
    meaning: str


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


Item = TypeVar('Item')
SUITE = 'written_questions'
# Questions a checking prompt, as in OSMa-Bench.
CHECK_BATCH = 5


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
        self.categories = self._write.read_setting(tuple[CategoryRequest, ...], 'categories')

    def description_request(self, frame: FrameImage) -> ModelRequest:
        """Return the request for a description of a frame."""
        return make_request(self._describe, schemas.Description, (frame.image,))

    def writing_request(self, frame: DescribedFrame) -> ModelRequest:
        """Return the request for the questions about a frame."""
        values = frame.description.model_dump()
        return make_request(
            self._write, schemas.WrittenQuestions, **values, categories=self.categories
        )

    def check_request(self, group: Sequence[Candidate]) -> ModelRequest:
        """Return the request to look again at questions about one frame."""
        frame = group[0].frame
        return make_request(
            self._check, schemas.Checks, (frame.image,), statements=frame.description.statements,
            questions=[{'id': x.id, 'question': x.text, 'answer': x.answer} for x in group],
        )  # fmt: skip

    def write(
        self, frames: Sequence[FrameImage], *, scene: str, progress: Progress = silent
    ) -> WrittenSet:
        """Return the question set of a scene; raises IncompleteError if the server failed."""
        described = self._ask(
            frames, self.description_request, schemas.Description,
            share(progress, 0.0, 1 / 3), 'descriptions',
        )  # fmt: skip
        known = [
            DescribedFrame(frame.index, frame.image, reply.value)
            for frame, reply in described
            if reply.value is not None
        ]
        failed = {frame.index: str(x.error) for frame, x in described if x.value is None}
        written = self._ask(
            known, self.writing_request, schemas.WrittenQuestions,
            share(progress, 1 / 3, 2 / 3), 'requests for questions',
        )  # fmt: skip
        failed |= {frame.index: str(x.error) for frame, x in written if x.value is None}
        candidates = [
            Candidate(
                f'f{frame.index:06d}-{number:03d}',
                frame,
                item.category,
                ' '.join(item.question.split()),
                ' '.join(item.answer.split()),
                tuple(dict.fromkeys(normalised_name(x) for x in item.objects if x.strip())),
            )
            for frame, reply in written
            for number, item in enumerate(reply.value.questions if reply.value else ())
        ]
        check = partial(self._find_doubted, progress=share(progress, 2 / 3, 1.0))
        kept, removals = sift(
            candidates,
            (
                ('rules', find_faults),
                ('rules', find_duplicates),
                ('overuse', find_overused),
                ('model check', check),
                ('balance', find_unbalanced),
            ),
        )
        prompts = tuple(p.identity for p in (self._describe, self._write, self._check))
        provenance = {'model': self._client.name, 'prompts': ' '.join(prompts)}
        return WrittenSet(
            tuple(_make_question(candidate, scene, provenance) for candidate in kept),
            tuple(removals),
            object_histogram(candidates),
            object_histogram(kept),
            failed,
            prompts,
        )

    def _ask(
        self,
        items: Sequence[Item],
        make_request_for: Callable[[Item], ModelRequest],
        reply: type[schemas.Reply],
        progress: Progress,
        what: str,
    ) -> list[tuple[Item, Outcome[schemas.Reply]]]:
        """Return each item with the outcome of its request."""
        requests = [make_request_for(item) for item in items]
        read = partial(schemas.parse, reply)
        outcomes = self._client.ask_all(requests, read, progress=progress, what=what)
        raise_if_incomplete([outcome.failure for outcome in outcomes], what)
        return list(zip(items, outcomes, strict=True))

    def _find_doubted(self, candidates: Sequence[Candidate], progress: Progress) -> dict[str, str]:
        """Return why questions are removed that the model does not keep, by their ids."""
        reasons = {}
        groups = batch_by_frame(candidates)
        for group, reply in self._ask(
            groups, self.check_request, schemas.Checks, progress, 'checks'
        ):
            checks = {c.id: c for c in reply.value.checks} if reply.value is not None else {}
            for candidate in group:
                check = checks.get(candidate.id)
                if check is None:
                    reasons[candidate.id] = str(reply.error or 'no verdict')
                elif check.verdict != 'keep':
                    reasons[candidate.id] = f'{check.verdict}: {check.reason}'
        return reasons


def batch_by_frame(candidates: Iterable[Candidate]) -> list[list[Candidate]]:
    """Return questions in batches to be checked, each about one frame."""
    frames = (list(group) for _, group in groupby(candidates, lambda item: item.frame.index))
    return [own[i : i + CHECK_BATCH] for own in frames for i in range(0, len(own), CHECK_BATCH)]


def _make_question(candidate: Candidate, scene: str, provenance: Mapping[str, str]) -> Question:
    answer: AnswerValue = candidate.answer
    # Answers of these types that are neither yes nor no, or no number, are faults.
    if candidate.answer_type is AnswerType.YES_NO:
        answer = plain(answer)
    elif candidate.answer_type is AnswerType.INTEGER:
        answer = int(as_number(answer) or 0)
    return make_question(
        SUITE, scene, candidate.text, candidate.answer_type, answer, category=candidate.category,
        frames=(candidate.frame.index,), provenance=provenance,
    )  # fmt: skip


# A rich frame: what models write about one is rarely longer.
STATEMENTS, OBJECTS = 25, 20
SENTENCE = 'a brown wooden chair stands next to the large white table near the window'


def estimate_requests(writer: QuestionWriter, frames: Sequence[FrameImage]) -> list[ModelRequest]:
    """Return requests as many and as long as writing about frames may take, asking no model.

    The first are the very requests for descriptions. Those that follow depend on the replies, so
    examples of a rich frame take their place: with as many questions as each category may have,
    none of them sifted out before the model checks them.
    """
    objects = [schemas.SeenObject(name='wooden chair', count=1)] * OBJECTS
    description = schemas.Description(statements=[SENTENCE] * STATEMENTS, objects=objects)
    questions = sum(item.most for item in writer.categories)
    requests = [writer.description_request(frame) for frame in frames]
    for frame in (DescribedFrame(item.index, item.image, description) for item in frames):
        candidates = [
            Candidate(f'f{frame.index:06d}-{number:03d}', frame, '', SENTENCE, SENTENCE, ())
            for number in range(questions)
        ]
        checks = map(writer.check_request, batch_by_frame(candidates))
        requests += [writer.writing_request(frame), *checks]
    return requests


_NOVEL_M, _NOVEL_COSINE = 1.0, math.cos(math.pi / 6)


def novel_frames(poses: Sequence[Pose], most: int) -> list[int]:
    """Return frames, `most` at most, with an optical pose far or turned from all before."""
    taken: list[int] = []
    for index, pose in enumerate(poses):
        if all(_differs(pose, poses[i]) for i in taken):
            taken.append(index)
    return select_evenly(taken, most)


def _differs(first: Pose, second: Pose) -> bool:
    is_far = np.linalg.norm(first.translation - second.translation) >= _NOVEL_M
    return bool(is_far or first.rotation[:, 2] @ second.rotation[:, 2] <= _NOVEL_COSINE)
