"""Saved answers as JSON lines: question, answer, category, scene_graph_answer, similar."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.compressed import read_unpacked
from osmabench_ros.base.limits.documents import parse_json
from osmabench_ros.errors import QuestionError, errors_as
from osmabench_ros.vqa.judging.reading import as_number, as_yes_no, plain
from osmabench_ros.vqa.questions import Answer, AnswerType, Question

_REQUIRED = ('question', 'answer', 'category', 'scene_graph_answer')


@dataclass(frozen=True)
class SavedAnswer:
    """One line: a question, what was right, what a method said, and maybe the verdict."""

    question: Question
    answer: Answer
    condition: str
    similar: bool | None


def read_saved_answers(files: Sequence[Path]) -> list[SavedAnswer]:
    """Read JSON lines, plain or gzipped, in order; raises QuestionError if one is malformed."""
    occurrences: Counter[tuple[str, str, str]] = Counter()
    saved = []
    for path in files:
        for number, row in _rows(path):
            where = f'{path}:{number}'
            lacking = [key for key in _REQUIRED if row.get(key) is None]
            if lacking:
                raise QuestionError(f'{where}: "{lacking[0]}" is missing')
            scene, condition = str(row.get('scene', '')), str(row.get('condition', ''))
            key = (scene, condition, str(row['question']))
            saved.append(_saved(row, scene, condition, occurrences[key], where))
            occurrences[key] += 1
    if not saved:
        raise QuestionError(f'{", ".join(map(str, files))}: there is no answer to score')
    return saved


def _rows(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    with errors_as(QuestionError, f'{path} cannot be read', UnicodeDecodeError):
        text = read_unpacked(path, QuestionError).decode('utf-8')
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        row = parse_json(line, f'{path}:{number}', QuestionError)
        if not isinstance(row, dict):
            raise QuestionError(f'{path}:{number}: the line is not an object')
        yield number, row


def _saved(
    row: Mapping[str, Any], scene: str, condition: str, occurrence: int, where: str
) -> SavedAnswer:
    key = f'{scene}/{row["question"]}/{occurrence}'
    question = Question(
        key, 'saved', scene, str(row['category']), str(row['question']),
        answer_type_of(str(row['answer'])), str(row['answer']),
    )  # fmt: skip
    answer = Answer(key, str(row['scene_graph_answer']), 'saved')
    return SavedAnswer(question, answer, condition, _verdict(row.get('similar'), where))


def _verdict(value: Any, where: str) -> bool | None:
    if value is None:
        return None
    verdict = as_yes_no(str(value))
    if verdict is None:
        raise QuestionError(f'{where}: "similar" is "{value}"; it must say Yes or No')
    return verdict == 'yes'


def answer_type_of(answer: str) -> AnswerType:
    """Return the kind of a right answer that is given as text."""
    if plain(answer) in ('yes', 'no'):
        return AnswerType.YES_NO
    number = as_number(answer)
    is_number = number is not None and plain(answer).lstrip('+-').replace('.', '', 1).isdigit()
    if is_number and number is not None:
        return AnswerType.INTEGER if number == int(number) else AnswerType.NUMBER
    return AnswerType.TEXT
