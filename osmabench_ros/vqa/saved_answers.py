"""Saved answers: ours, JSON lines, and the files of OSMa-Bench and OSMa-Bench++ as they are."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.documents import parse_json, read_unpacked
from osmabench_ros.errors import QuestionError, errors_as
from osmabench_ros.vqa.judging.reading import as_number, plain
from osmabench_ros.vqa.question_files import ANSWERS, QUESTIONS, VERDICTS, read_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict
from osmabench_ros.vqa.scores import UNSERVED

_REQUIRED = ('question', 'answer', 'category', 'scene_graph_answer')

VERDICT_KEYS = (
    'similar', 'is_correct', 'correct', 'match', 'prompt_gt_similar', 'promptgt_similar',
    'prompt_gt_correct', 'promptgt_correct',
)  # fmt: skip
"""Where OSMa-Bench (the first) and OSMa-Bench++ write a verdict; the first one found counts."""

RIGHT = frozenset(('yes', 'true', '1', 'correct', 'similar'))
_WRONG = frozenset(('no', 'false', '0', 'incorrect', 'wrong', 'different', 'not similar'))
_UNJUDGED = frozenset(('', 'n/a', 'na', 'none', 'null', 'unknown'))

CONDITIONS = frozenset(
    ('baseline', 'camera', 'camera_lights', 'dynamic_lights', 'no_lights', 'nominal', 'velocity')
)
"""Conditions that published files and folders are named after."""

_PUBLISHED = ('*_evaluated.json', '*answered*.json')
_LINES = ('*.jsonl', '*.jsonl.gz')


@dataclass(frozen=True)
class SavedAnswer:
    """A question, its right answer, a method's answer, and maybe the verdict.

    `similar` is None without a verdict; `unjudged` says that the published judge gave none, as
    in "N/A". `source` is the folder of a published file, '' for JSON lines.
    """

    question: Question
    answer: Answer
    condition: str
    similar: bool | None
    unjudged: bool = False
    source: str = ''


@dataclass(frozen=True)
class _Place:
    """Properties of the answers in a file that its name gives."""

    source: str = ''
    scene: str = ''
    condition: str = ''


def read_saved_answers(paths: Sequence[Path]) -> list[SavedAnswer]:
    """Read saved answers, in order; QuestionError if a file is malformed or a folder holds none.

    Files are JSON lines, plain or gzipped; JSON arrays as OSMa-Bench and OSMa-Bench++ write them,
    of which the name gives scene and condition (``<scene>_<condition>_evaluated.json``,
    ``evaluated_<condition>/<scene>_answered.json``); ``answers.jsonl`` of a run of ours, with the
    questions and verdicts next to it. In folders all are read, at any depth. Two published
    files that answer the same question of a scene under the same condition in the same folder are
    an error too.
    """
    occurrences: Counter[tuple[str, str, str, str]] = Counter()
    first_in: dict[tuple[str, str, str, str], Path] = {}
    saved = []
    for path in (file for given in paths for file in _list_files(given)):
        if path.name == ANSWERS and path.with_name(QUESTIONS).exists():
            saved += _read_run(path)
            continue
        for where, row, place in _read_rows(path):
            lacking = [key for key in _REQUIRED if row.get(key) is None]
            if lacking:
                raise QuestionError(f'{where}: "{lacking[0]}" is missing')
            scene = str(row.get('scene', place.scene))
            condition = str(row.get('condition', place.condition))
            key = (place.source, scene, condition, str(row['question']))
            if place.source and first_in.setdefault(key, path) != path:
                raise QuestionError(
                    f'{where}: "{row["question"]}" of scene "{scene}", condition "{condition}" is '
                    f'answered in {first_in[key]} too; name one of the files'
                )
            saved.append(_read_saved(row, scene, condition, occurrences[key], where, place.source))
            occurrences[key] += 1
    if not saved:
        raise QuestionError(f'{", ".join(map(str, paths))}: there is no answer to score')
    return saved


def _list_files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    patterns = (*_PUBLISHED, *_LINES)
    found = sorted({file for pattern in patterns for file in path.rglob(pattern)})
    found = [file for file in found if file.name not in (QUESTIONS, VERDICTS)]
    if not found:
        raise QuestionError(f'{path} holds no {", no ".join(patterns)}')
    return found


def _read_run(path: Path) -> list[SavedAnswer]:
    """Return the answers of a run that its map could serve, as that run was scored."""
    run = path.resolve().parents[1]
    # dataset.scene.condition.mapper.simulator.seed
    parts = run.name.split('.')
    condition, source = (parts[2], f'{run.parent.name} {parts[3]}') if len(parts) > 5 else ('', '')
    questions = {item.id: item for item in read_records(path.with_name(QUESTIONS), Question)}
    file = path.with_name(VERDICTS)
    verdicts = {i.question_id: i for i in read_records(file, Verdict)} if file.exists() else {}
    found = []
    for answer in read_records(path, Answer):
        question, verdict = questions.get(answer.question_id), verdicts.get(answer.question_id)
        if question is None:
            raise QuestionError(f'{path}: {QUESTIONS} next to it has no "{answer.question_id}"')
        similar = verdict.correct if verdict and verdict.judged else None
        unjudged = verdict is not None and not verdict.judged
        if answer.note != UNSERVED:
            found.append(SavedAnswer(question, answer, condition, similar, unjudged, source))
    return found


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any], _Place]]:
    with errors_as(QuestionError, f'{path} cannot be read', UnicodeDecodeError):
        text = read_unpacked(path, QuestionError).decode('utf-8')
    if '.json' in path.suffixes and text.lstrip().startswith('['):
        place = _place(path)
        for number, row in enumerate(parse_json(text, str(path), QuestionError), start=1):
            where = f'{path}, answer {number}'
            yield where, _check_object(row, where), place
        return
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            where = f'{path}:{number}'
            yield where, _check_object(parse_json(line, where, QuestionError), where), _Place()


def _check_object(row: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(row, dict):
        raise QuestionError(f'{where}: not an object with a question and its answers')
    return row


def _place(path: Path) -> _Place:
    """Return the properties that a published file's path gives.

    OSMa-Bench names a file after scene and condition, OSMa-Bench++ after the scene, in a folder
    that is named after the condition.
    """
    scene = re.sub(r'_(?:evaluated|answered).*', '', path.name.split('.json')[0])
    named = (name for name in CONDITIONS if scene.endswith(f'_{name}'))
    if condition := max(named, key=len, default=''):
        return _Place(str(path.parent), scene.removesuffix(f'_{condition}'), condition)
    folder = path.parent.name
    condition = folder.removeprefix('evaluated_')
    if condition in CONDITIONS or condition != folder:
        return _Place(str(path.parent.parent), scene, condition)
    return _Place(str(path.parent), scene)


def _read_saved(
    row: Mapping[str, Any],
    scene: str,
    condition: str,
    occurrence: int,
    where: str,
    source: str,
) -> SavedAnswer:
    key = f'{scene}/{row["question"]}/{occurrence}'
    question = Question(
        key, 'saved', scene, str(row['category']), str(row['question']),
        answer_type_of(str(row['answer'])), str(row['answer']),
    )  # fmt: skip
    answer = Answer(key, str(row['scene_graph_answer']), 'saved')
    similar, unjudged = _read_verdict(row, where)
    return SavedAnswer(question, answer, condition, similar, unjudged, source)


def _read_verdict(row: Mapping[str, Any], where: str) -> tuple[bool | None, bool]:
    """Return the saved verdict, and whether there is one that says nothing, such as "N/A"."""
    key = next((key for key in VERDICT_KEYS if row.get(key) is not None), None)
    if key is None:
        return None, False
    said = ' '.join(str(row[key]).lower().split()).rstrip('.')
    if said in RIGHT or said in _WRONG:
        return said in RIGHT, False
    if said in _UNJUDGED:
        return None, True
    raise QuestionError(f'{where}: "{key}" is "{row[key]}"; it must say Yes or No')


def answer_type_of(answer: str) -> AnswerType:
    """Return the kind of a right answer that is given as text."""
    if plain(answer) in ('yes', 'no'):
        return AnswerType.YES_NO
    number = as_number(answer)
    is_number = number is not None and plain(answer).lstrip('+-').replace('.', '', 1).isdigit()
    if is_number and number is not None:
        return AnswerType.INTEGER if number == int(number) else AnswerType.NUMBER
    return AnswerType.TEXT
