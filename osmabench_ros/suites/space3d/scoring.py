"""Scores the answers of a system to one scene of Space3D-Bench, as published and by rule first."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from osmabench_ros.base.documents import parse_json, read_json
from osmabench_ros.base.files import claim_folder, write_text
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import ConfigError, LanguageModelError, QuestionError
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.model import EmptyReplyError, ImagePart, ModelRequest, RefusalError
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.metrics.record import Mode
from osmabench_ros.metrics.statistics import wilson_interval
from osmabench_ros.suites.space3d.folder import DETECTIONS, SceneFolder
from osmabench_ros.suites.space3d.suite import SentenceGrader
from osmabench_ros.vqa.schemas import parse, schema

RESULTS = {Mode.COMPAT: 'result.json', Mode.STRICT: 'strict.json'}
RIGHT, WRONG = '1', '0'

Entry = dict[str, Any]
"""What is kept of one question: result, justification, question, answer, context."""


class _Judgement(BaseModel):
    result: Literal['0', '1']
    justification: str = Field('', max_length=2000)


@dataclass(frozen=True)
class Judges:
    """The models that judge; None where there is none."""

    text: ModelClient | None = None
    vision: ModelClient | None = None

    def of(self, *, image: bool) -> ModelClient | None:
        """Return the judge of answers that an image shows, or of others."""
        return self.vision if image else self.text


@dataclass(frozen=True)
class SceneScore:
    """Accuracy of the answers to a scene, and the 95 % interval of it (Wilson 1927).

    `accuracy` is `right` among the questions that were decided: in compat all of them, in strict
    without `undecided`, which no rule fits and no model judged; None if none was. Questions
    without an answer are wrong. `errors` are replies of a judge that could not be read, which the
    published code does not accept.
    """

    scene: str
    mode: Mode
    questions: int
    right: int
    accuracy: float | None
    low: float
    high: float
    accuracy_of_all: float
    by_rule: int
    by_judge: int
    unanswered: int
    undecided: int
    errors: int


def score_folder(
    folder: SceneFolder,
    answers: Mapping[str, str],
    mode: Mode,
    judges: Judges,
    out: Path,
    progress: Progress = silent,
) -> SceneScore:
    """Score answers, by number of the question, and keep each verdict in `out`.

    In compat a model judges every answer, those that an image shows with the image, and replies
    are read as the published `eval.py` does; a judge that is not named is a ConfigError. In strict
    rules grade first, models judge the rest, and a reply has to fit a schema.
    `result.json` (compat) has the published format, `strict.json` also has `by`, how each
    answer was decided. If a server fails it is a LanguageModelError; its verdicts are kept, and
    the same call resumes there.
    """
    claim_folder(out)
    file = out / RESULTS[mode]
    kept = _read_kept_verdicts(file)
    decide = _Compat(folder, judges) if mode is Mode.COMPAT else _Strict(folder, judges)
    for done, (number, question) in enumerate(folder.questions.items()):
        progress(f'graded {done} of {len(folder.questions)} answers', done / len(folder.questions))
        if number in kept:
            continue
        said = answers.get(number)
        if said is None:
            kept[number] = {'result': WRONG, 'justification': 'No answer available.'}
        else:
            found = decide.entry(number, question, said)
            context = folder.references[number].context
            kept[number] = {**found, 'question': question, 'answer': said, 'context': context}
        if mode is Mode.COMPAT:
            _write(file, kept)
    _write(file, kept)
    asked = [kept[number] for number in folder.questions]
    return _score(folder.scene, mode, asked)


def _read_kept_verdicts(file: Path) -> dict[str, Entry]:
    """Return the verdicts of an interrupted compat run; strict ones depend on rules, not money."""
    if file.name != RESULTS[Mode.COMPAT] or not file.exists():
        return {}
    data = read_json(file, QuestionError)
    if not isinstance(data, dict) or not all(isinstance(item, dict) for item in data.values()):
        raise QuestionError(f'{file}: must be an object of verdicts; remove it to start over')
    return data


def _write(file: Path, kept: Mapping[str, Entry]) -> None:
    write_text(file, json.dumps(kept, indent=4))


class _Decider:
    """Decides whether answers to a scene are right, by models if need be."""

    def __init__(self, folder: SceneFolder, judges: Judges) -> None:
        self._folder, self._judges, self._prompt = folder, judges, load_prompt('judge_space3d')

    def _request(
        self, number: str, question: str, said: str, schema: Mapping[str, Any] | None = None
    ) -> ModelRequest:
        reference = self._folder.references[number]
        shown = not isinstance(reference.answer, str)
        text = self._prompt.render(
            question=question,
            right=reference.context,
            answer=said,
            criterion=reference.prompt,
            image=shown,
        )
        images = (ImagePart(self._folder.image(number)),) if shown else ()
        return ModelRequest(text, self._prompt.system, images, schema, max_output_tokens=4000)


class _Compat(_Decider):
    """Sends every answer to a model, and reads its reply as the published code does."""

    def __init__(self, folder: SceneFolder, judges: Judges) -> None:
        super().__init__(folder, judges)
        for item in folder.references.values():
            if judges.of(image=not isinstance(item.answer, str)) is None:
                option = '--judge' if isinstance(item.answer, str) else '--vision-judge'
                raise ConfigError(
                    f'{folder.path}: compat has every answer judged by a model; give {option}, or '
                    'score in strict mode'
                )

    def entry(self, number: str, question: str, said: str) -> Entry:
        request = self._request(number, question, said)
        client = self._judges.of(image=bool(request.images))
        assert client is not None
        try:
            return client.ask(request, read_as_published)
        except RefusalError as refusal:
            return {'error': str(refusal)}
        except EmptyReplyError:
            return {'error': ''}


def read_as_published(reply: str) -> Entry:
    """Return the verdict that the published code reads in a reply: its first line with JSON.

    From the first "{" of that line to its last "}"; text that is not JSON, such as an object over
    several lines or with single quotes, is an error, and no reply is asked for again.
    """
    match = re.search(r'\{.*\}', reply)
    if match is None:
        return {'error': reply}
    try:
        found = parse_json(match[0], 'the reply', LanguageModelError)
    except LanguageModelError:
        return {'error': reply}
    return dict(found) if isinstance(found, dict) else {'error': reply}


class _Strict(_Decider):
    """Rules first; a model where none fits, if there is one."""

    def __init__(self, folder: SceneFolder, judges: Judges) -> None:
        super().__init__(folder, judges)
        known = folder.detections if (folder.path / DETECTIONS).exists() else None
        self._grader = SentenceGrader(known)

    def entry(self, number: str, question: str, said: str) -> Entry:
        reference = self._folder.references[number]
        rule = 'an image shows what is right'
        if isinstance(reference.answer, str):
            grade = self._grader.grade(question, reference.answer, said, reference.prompt)
            rule = grade.rule
            if grade.correct is not None:
                result = RIGHT if grade.correct else WRONG
                return {'result': result, 'justification': rule, 'by': 'rule'}
        client = self._judges.of(image=not isinstance(reference.answer, str))
        if client is None:
            return {'justification': rule, 'by': 'none'}
        request = self._request(number, question, said, schema(_Judgement))
        try:
            found = client.ask(request, lambda text: parse(_Judgement, text))
        except RefusalError as refusal:
            return {'justification': str(refusal), 'by': 'none'}
        return {**found.model_dump(), 'by': client.name}


def _score(scene: str, mode: Mode, entries: list[Entry]) -> SceneScore:
    right = sum(str(item.get('result')) == RIGHT for item in entries)
    undecided = sum(item.get('by') == 'none' for item in entries)
    decided = len(entries) - undecided
    unanswered = sum('answer' not in item for item in entries)
    by_rule = sum(item.get('by') == 'rule' for item in entries)
    low, high = wilson_interval(right, decided) if decided else (0.0, 1.0)
    return SceneScore(
        scene,
        mode,
        len(entries),
        right,
        right / decided if decided else None,
        low,
        high,
        right / len(entries) if entries else 0.0,
        by_rule,
        decided - unanswered - by_rule,
        unanswered,
        undecided,
        sum('error' in item for item in entries),
    )
