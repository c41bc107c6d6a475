"""Scores the answers of a system to one scene of Space3D-Bench, as published and by rule first."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

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
from osmabench_ros.suites.space3d.folder import DETECTIONS, ReferenceAnswer, SceneFolder
from osmabench_ros.suites.space3d.suite import SentenceGrader
from osmabench_ros.vqa.published import Published
from osmabench_ros.vqa.schemas import parse, schema

if TYPE_CHECKING:
    import pandas as pd

RESULTS = {Mode.COMPAT: 'result.json', Mode.STRICT: 'strict.json'}
RIGHT, WRONG = '1', '0'

Entry = dict[str, Any]
"""What is kept of one question: result, justification, question, answer, context."""


class _Judgement(BaseModel):
    result: Literal['0', '1']
    justification: str = Field('', max_length=2000)


@dataclass(frozen=True)
class Grading:
    """How answers to scenes are graded: the mode, the folder of the verdicts, and who judges.

    `text_judge` is asked about texts, `vision_judge` where an image shows the right answer.
    `answers` has the answers to one scene, if they are not in its folder.
    """

    mode: Mode
    out: Path
    text_judge: ModelClient | None = None
    vision_judge: ModelClient | None = None
    answers: Path | None = None
    progress: Progress = silent

    def choose_judge(self, reference: ReferenceAnswer) -> ModelClient | None:
        """Return who judges answers to a question, None without."""
        return self.text_judge if isinstance(reference.answer, str) else self.vision_judge

    def published(self) -> Published[tuple[str, Entry]]:
        """Return how scene folders are scored.

        `accuracy` is `right` among all questions, with its 95 % interval (Wilson 1927): those
        without an answer are wrong, and so are the `undecided` ones of strict, which no rule fits
        and no model judged. `accuracy_decided` leaves these out; None if all are. `errors` are
        replies of a judge that could not be read, which the published code does not accept.
        """
        return Published(
            self._grade_folders,
            _compare,
            groups=('scene',),
            unit='questions',
            modes=(self.mode,),
            sum_up=_sum_up,
            arrange=lambda rows: [{'scene': row['scene'], **row} for row in rows],
        )

    def _grade_folders(self, paths: Sequence[Path]) -> list[tuple[str, Entry]]:
        if self.answers is not None and len(paths) > 1:
            raise ConfigError('--answers is for one scene folder; score the others by themselves')
        folders = {folder.scene: folder for folder in map(SceneFolder, paths)}
        if len(folders) < len(paths):
            raise ConfigError('two of the scene folders have one name; score them into two --out')
        return [
            (scene, entry)
            for scene, folder in folders.items()
            for entry in self.grade(folder, folder.answers(self.answers), self.out / scene)
        ]

    def grade(self, folder: SceneFolder, answers: Mapping[str, str], out: Path) -> list[Entry]:
        """Grade answers, by number of the question, and keep each verdict in `out`.

        In compat a model judges every answer, those that an image shows with the image, and
        replies are read as the published `eval.py` does; a judge that is not named is a
        ConfigError. In strict rules grade first, models judge the rest, and a reply has to fit a
        schema. `result.json` (compat) has the published format, `strict.json` also has `by`, how
        each answer was decided. If a server fails it is a LanguageModelError; its verdicts are
        kept, and the same call resumes there.
        """
        claim_folder(out)
        file = out / RESULTS[self.mode]
        kept = _read_kept_verdicts(file)
        decider = _Compat if self.mode is Mode.COMPAT else _Strict
        chosen, count = decider(folder, self), len(folder.questions)
        for done, (number, question) in enumerate(folder.questions.items()):
            self.progress(f'graded {done} of {count} answers', done / count)
            said = answers.get(number)
            # A verdict on another answer says nothing about this one.
            if {'question': question, 'answer': said}.items() <= kept.get(number, {}).items():
                continue
            if said is None:
                kept[number] = {'result': WRONG, 'justification': 'No answer available.'}
            else:
                found = chosen.decide(number, question, said)
                context = folder.references[number].context
                kept[number] = {**found, 'question': question, 'answer': said, 'context': context}
            if self.mode is Mode.COMPAT:
                _write(file, kept)
        _write(file, kept)
        return [kept[number] for number in folder.questions]


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

    def __init__(self, folder: SceneFolder, grading: Grading) -> None:
        self._folder, self._grading, self._prompt = folder, grading, load_prompt('judge_space3d')

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

    def __init__(self, folder: SceneFolder, grading: Grading) -> None:
        super().__init__(folder, grading)
        for item in folder.references.values():
            if grading.choose_judge(item) is None:
                option = '--judge' if isinstance(item.answer, str) else '--vision-judge'
                raise ConfigError(
                    f'{folder.path}: compat has every answer judged by a model; give {option}, or '
                    'score in strict mode'
                )

    def decide(self, number: str, question: str, said: str) -> Entry:
        request = self._request(number, question, said)
        client = self._grading.choose_judge(self._folder.references[number])
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

    def __init__(self, folder: SceneFolder, grading: Grading) -> None:
        super().__init__(folder, grading)
        known = folder.detections if (folder.path / DETECTIONS).exists() else {}
        self._grader = SentenceGrader(known)

    def decide(self, number: str, question: str, said: str) -> Entry:
        reference = self._folder.references[number]
        rule = 'an image shows what is right'
        if isinstance(reference.answer, str):
            grade = self._grader.grade(question, reference.answer, said, reference.prompt)
            rule = grade.rule
            if grade.correct is not None:
                result = RIGHT if grade.correct else WRONG
                return {'result': result, 'justification': rule, 'by': 'rule'}
        client = self._grading.choose_judge(reference)
        if client is None:
            return {'justification': rule, 'by': 'none'}
        request = self._request(number, question, said, schema(_Judgement))
        try:
            found = client.ask(request, lambda text: parse(_Judgement, text))
        except RefusalError as refusal:
            return {'justification': str(refusal), 'by': 'none'}
        return {**found.model_dump(), 'by': client.name}


def _compare(entries: Sequence[tuple[str, Entry]], _mode: Mode) -> Iterator[dict[str, Any]]:
    for scene, entry in entries:
        yield {
            'scene': scene,
            'right': str(entry.get('result')) == RIGHT,
            'by': entry.get('by'),
            'answered': 'answer' in entry,
            'error': 'error' in entry,
        }


def _sum_up(_group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
    right, by_rule = int(part['right'].sum()), int((part['by'] == 'rule').sum())
    undecided, unanswered = int((part['by'] == 'none').sum()), int((~part['answered']).sum())
    decided = len(part) - undecided
    low, high = wilson_interval(right, len(part))
    return {
        'right': right,
        'accuracy': right / len(part),
        'low': low,
        'high': high,
        'accuracy_decided': right / decided if decided else None,
        'by_rule': by_rule,
        'by_judge': decided - unanswered - by_rule,
        'unanswered': unanswered,
        'undecided': undecided,
        'errors': int(part['error'].sum()),
    }
