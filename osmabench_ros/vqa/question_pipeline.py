"""Makes a question set from frames: describe, write, filter, check, balance."""

import math
from collections.abc import Mapping, Sequence
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
from osmabench_ros.language.client import ModelClient, raise_if_incomplete
from osmabench_ros.language.model import ImagePart, ModelRequest
from osmabench_ros.language.prompts import Prompt, load_prompt
from osmabench_ros.vqa.judging.reading import as_number, as_yes_no
from osmabench_ros.vqa.question_validation import (
    Candidate,
    Removal,
    balanced,
    normalize_objects,
    object_histogram,
    removed,
    sift_by_overuse,
    sift_by_rules,
)
from osmabench_ros.vqa.questions import (
    AnswerType,
    AnswerValue,
    Category,
    Evidence,
    Question,
    question_id,
)
from osmabench_ros.vqa.schemas import (
    Checks,
    Description,
    SeenObject,
    WrittenQuestions,
    parse,
    schema,
)


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
        return {
            'removals': [asdict(removal) for removal in self.removals],
            'histogram_before': dict(self.histogram_before),
            'histogram_after': dict(self.histogram_after),
            'failed_frames': {str(key): value for key, value in self.failed_frames.items()},
            'prompts': list(self.prompts),
        }


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
            ModelRequest(prompt, system, (frame.image,), schema(Description)) for frame in frames
        ]

    def writing_request(self, description: Description) -> ModelRequest:
        """Return the request for the questions about a frame."""
        prompt = self._write.render(
            statements=description.statements,
            objects=[item.model_dump() for item in description.objects],
            categories=self.categories,
        )
        return ModelRequest(prompt, self._write.system, schema=schema(WrittenQuestions))

    def check_request(
        self, group: Sequence[Candidate], description: Description, image: ImagePart
    ) -> ModelRequest:
        """Return the request to look again at some questions about one frame."""
        questions = [
            {'id': item.id, 'question': item.text, 'answer': item.answer} for item in group
        ]
        prompt = self._check.render(statements=description.statements, questions=questions)
        return ModelRequest(prompt, self._check.system, (image,), schema(Checks))

    def write(
        self, frames: Sequence[FrameImage], *, scene: str, progress: Progress = silent
    ) -> WrittenSet:
        """Return the question set of a scene; raises IncompleteError if the server failed."""
        failed: dict[int, str] = {}
        descriptions = self._describe_frames(frames, failed, share(progress, 0.0, 1 / 3))
        candidates = self._write_questions(descriptions, failed, share(progress, 1 / 3, 2 / 3))
        before = object_histogram(candidates)
        counts = {
            index: {
                name: item.count for item in d.objects for name in normalize_objects([item.name])
            }
            for index, d in descriptions.items()
        }
        kept, removals = sift_by_rules(candidates, counts)
        kept, overuse = sift_by_overuse(kept)
        images = {frame.index: frame.image for frame in frames}
        kept, doubted = self._check_questions(
            kept, descriptions, images, share(progress, 2 / 3, 1.0)
        )
        kept, unbalanced = balanced(kept)
        prompts = tuple(p.identity for p in (self._describe, self._write, self._check))
        return WrittenSet(
            tuple(self._question(candidate, scene, prompts) for candidate in kept),
            (*removals, *overuse, *doubted, *unbalanced),
            before,
            object_histogram(kept),
            failed,
            prompts,
        )

    def _describe_frames(
        self, frames: Sequence[FrameImage], failed: dict[int, str], progress: Progress
    ) -> dict[int, Description]:
        outcomes = self._client.ask_all(
            self.description_requests(frames),
            partial(parse, Description),
            progress=progress,
            what='descriptions',
        )
        raise_if_incomplete([outcome.failure for outcome in outcomes], 'descriptions')
        found = {}
        for frame, outcome in zip(frames, outcomes, strict=True):
            if outcome.value is not None:
                found[frame.index] = outcome.value
            else:
                failed[frame.index] = str(outcome.error)
        return found

    def _write_questions(
        self, descriptions: Mapping[int, Description], failed: dict[int, str], progress: Progress
    ) -> list[Candidate]:
        requests = [self.writing_request(description) for description in descriptions.values()]
        outcomes = self._client.ask_all(
            requests, partial(parse, WrittenQuestions), progress=progress, what='questions'
        )
        raise_if_incomplete([outcome.failure for outcome in outcomes], 'requests for questions')
        candidates: list[Candidate] = []
        for index, outcome in zip(descriptions, outcomes, strict=True):
            if outcome.value is None:
                failed[index] = str(outcome.error)
                continue
            candidates += [
                Candidate(
                    f'f{index:06d}-{number:03d}',
                    index,
                    written.category,
                    ' '.join(written.question.split()),
                    ' '.join(written.answer.split()),
                    normalize_objects(written.objects),
                )
                for number, written in enumerate(outcome.value.questions)
            ]
        return candidates

    def _check_questions(
        self,
        candidates: Sequence[Candidate],
        descriptions: Mapping[int, Description],
        images: Mapping[int, ImagePart],
        progress: Progress,
    ) -> tuple[list[Candidate], list[Removal]]:
        """Let the model check the questions; those without verdict are removed, with a reason."""
        groups: list[list[Candidate]] = []
        for index in descriptions:
            own = [candidate for candidate in candidates if candidate.frame == index]
            groups += [own[i : i + CHECK_BATCH] for i in range(0, len(own), CHECK_BATCH)]
        requests = [
            self.check_request(group, descriptions[group[0].frame], images[group[0].frame])
            for group in groups
        ]
        outcomes = self._client.ask_all(
            requests, partial(parse, Checks), progress=progress, what='checks'
        )
        raise_if_incomplete([outcome.failure for outcome in outcomes], 'checks')
        kept, removals = [], []
        for group, outcome in zip(groups, outcomes, strict=True):
            verdicts = {c.id: c for c in outcome.value.checks} if outcome.value is not None else {}
            for candidate in group:
                check = verdicts.get(candidate.id)
                if check is not None and check.verdict == 'keep':
                    kept.append(candidate)
                    continue
                reason = str(outcome.error or 'no verdict')
                if check is not None:
                    reason = f'{check.verdict}: {check.reason}'
                removals.append(removed(candidate, 'model check', reason))
        return kept, removals

    def _question(self, candidate: Candidate, scene: str, prompts: Sequence[str]) -> Question:
        return Question(
            question_id(SUITE, scene, candidate.text),
            SUITE,
            scene,
            candidate.category,
            candidate.text,
            candidate.answer_type,
            _value(candidate),
            evidence=Evidence(frames=(candidate.frame,)),
            provenance={'model': self._client.name, 'prompts': ' '.join(prompts)},
        )


def _value(candidate: Candidate) -> AnswerValue:
    if candidate.answer_type is AnswerType.YES_NO:
        return as_yes_no(candidate.answer) or candidate.answer
    number = as_number(candidate.answer)
    if candidate.answer_type is AnswerType.INTEGER and number is not None:
        return int(number)
    return candidate.answer


# A rich frame: what models write about one is rarely longer.
STATEMENTS, OBJECTS = 25, 20
SENTENCE = 'a brown wooden chair stands next to the large white table near the window'


def estimate_requests(writer: QuestionWriter, frames: Sequence[FrameImage]) -> list[ModelRequest]:
    """Return requests as many and as long as writing about frames may take, asking no model.

    The first are the very requests for descriptions. Those that follow depend on the replies, so
    examples of a rich frame take their place: with as many questions as each category may have,
    none of them sifted out before the model checks them.
    """
    description = Description(
        statements=[SENTENCE] * STATEMENTS,
        objects=[SeenObject(name='wooden chair', count=1)] * OBJECTS,
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
