"""Saved answers, ours and as OSMa-Bench and OSMa-Bench++ write them, and their accuracies."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from osmabench_ros.base.documents import number_lines, parse_json, read_unpacked
from osmabench_ros.errors import QuestionError
from osmabench_ros.metrics.record import Mode
from osmabench_ros.vqa.answering.baselines import answer_without_map
from osmabench_ros.vqa.judging import Judge
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.judging.reading import as_number, plain
from osmabench_ros.vqa.published import Published, Scores
from osmabench_ros.vqa.question_files import ANSWERS, QUESTIONS, VERDICTS, read_records
from osmabench_ros.vqa.questions import Answer, AnswerType, Question, Verdict
from osmabench_ros.vqa.scores import SPATIAL, UNSERVED, compute_paired_change, interval_over_scenes

if TYPE_CHECKING:
    import pandas as pd

_PLACE = ('source', 'scene', 'condition')
_REQUIRED = ('question', 'answer', 'category', 'scene_graph_answer')

# Where OSMa-Bench (the first) and OSMa-Bench++ write a verdict; the first one found counts.
VERDICT_KEYS = (
    'similar', 'is_correct', 'correct', 'match', 'prompt_gt_similar', 'promptgt_similar',
    'prompt_gt_correct', 'promptgt_correct',
)  # fmt: skip

RIGHT = frozenset(('yes', 'true', '1', 'correct', 'similar'))
_WRONG = frozenset(('no', 'false', '0', 'incorrect', 'wrong', 'different', 'not similar'))
_UNJUDGED = frozenset(('', 'n/a', 'na', 'none', 'null', 'unknown'))

# Conditions that published files and folders are named after.
CONDITIONS = frozenset(
    ('baseline', 'camera', 'camera_lights', 'dynamic_lights', 'no_lights', 'nominal', 'velocity')
)

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


def read_saved_answers(paths: Sequence[Path]) -> list[SavedAnswer]:
    """Read saved answers, in order; QuestionError if a file is malformed or a folder holds none.

    Files are JSON lines, plain or gzipped; JSON arrays as OSMa-Bench and OSMa-Bench++ write them,
    of which the name gives scene and condition (``<scene>_<condition>_evaluated.json``,
    ``evaluated_<condition>/<scene>_answered.json``); ``answers.jsonl`` of a run of ours, with the
    questions and verdicts next to it. In folders all are read, at any depth. Two published
    files that answer the same question of a scene under the same condition in the same folder are
    an error too.
    """
    occurrences: Counter[tuple[str, ...]] = Counter()
    first_in: dict[tuple[str, ...], Path] = {}
    saved = []
    for path in (file for given in paths for file in _list_files(given)):
        if path.name == ANSWERS and path.with_name(QUESTIONS).exists():
            saved += _read_run(path)
            continue
        for where, row in _read_rows(path):
            lacking = [key for key in _REQUIRED if row.get(key) is None]
            if lacking:
                raise QuestionError(f'{where}: "{lacking[0]}" is missing')
            key = tuple(str(row[name]) for name in (*_PLACE, 'question'))
            source, scene, condition, text = key
            if source and first_in.setdefault(key, path) != path:
                raise QuestionError(
                    f'{where}: "{text}" of scene "{scene}", condition "{condition}" is answered '
                    f'in {first_in[key]} too; name one of the files'
                )
            name = f'{scene}/{text}/{occurrences[key]}'
            right = str(row['answer'])
            question = Question(
                name, 'saved', scene, str(row['category']), text, answer_type_of(right), right
            )
            answer = Answer(name, str(row['scene_graph_answer']), 'saved')
            verdict = _read_verdict(row, where)
            saved.append(SavedAnswer(question, answer, condition, *verdict, source))
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
        question = questions.get(answer.question_id)
        verdict = verdicts.get(answer.question_id)
        if question is None:
            raise QuestionError(f'{path}: {QUESTIONS} next to it has no "{answer.question_id}"')
        similar = verdict.correct if verdict and verdict.judged else None
        unjudged = verdict is not None and not verdict.judged
        if answer.note != UNSERVED:
            found.append(SavedAnswer(question, answer, condition, similar, unjudged, source))
    return found


def _read_rows(path: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield place and content of each row, with the source, scene and condition of its file."""
    text = read_unpacked(path, QuestionError)
    if '.json' in path.suffixes and text.lstrip().startswith('['):
        place = _read_name(path)
        items = enumerate(parse_json(text, str(path), QuestionError), start=1)
        rows = [(f'{path}, answer {number}', row) for number, row in items]
    else:
        place = dict.fromkeys(_PLACE, '')
        lines = number_lines(text, path)
        rows = [(where, parse_json(line, where, QuestionError)) for where, line in lines]
    for where, row in rows:
        if not isinstance(row, dict):
            raise QuestionError(f'{where}: not an object with a question and its answers')
        yield where, {**place, **row, 'source': place['source']}


def _read_name(path: Path) -> dict[str, str]:
    """Return source, scene and condition that a published file's path gives.

    OSMa-Bench names a file after scene and condition, OSMa-Bench++ after the scene, in a folder
    that is named after the condition.
    """
    scene = re.sub(r'_(?:evaluated|answered).*', '', path.name.split('.json')[0])
    folder = path.parent
    condition = folder.name.removeprefix('evaluated_')
    named = (name for name in CONDITIONS if scene.endswith(f'_{name}'))
    if in_name := max(named, key=len, default=''):
        found = str(folder), scene.removesuffix(f'_{in_name}'), in_name
    elif condition in CONDITIONS or condition != folder.name:
        found = str(folder.parent), scene, condition
    else:
        found = str(folder), scene, ''
    return dict(zip(_PLACE, found, strict=True))


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
        return AnswerType.INTEGER if number.is_integer() else AnswerType.NUMBER
    return AnswerType.TEXT


ALL_SCENES, GIVEN = 'all', 'given'


def saved_answers(reference: str = '', *, baselines: bool = True) -> Published[SavedAnswer]:
    """Return how saved answers are scored: accuracies by source, scene and condition.

    The scene 'all' pools the scenes of a condition; `answers` is 'given' or the name of a
    baseline; `unjudged` answers have a verdict that says neither yes nor no and count as wrong, as
    in the published code; `low` and `high` bound the 95 % interval, over scenes where there are
    several, else of a proportion; `accuracy_macro` weighs small categories like large ones;
    `accuracy_strict` takes no verdict of a file: rules judge, and each question counts once.
    Pooled rows have the change from the condition `reference`, on the same questions.
    """
    changes = ('change', 'change_low', 'change_high') if reference else ()

    def compare(saved: Sequence[SavedAnswer], _mode: Mode) -> Iterator[dict[str, Any]]:
        is_right = _remember_verdicts(DeterministicJudge())
        sets: dict[tuple[str, str], list[SavedAnswer]] = defaultdict(list)
        scenes: dict[str, set[str]] = defaultdict(set)
        for item in saved:
            sets[item.source, item.condition].append(item)
            scenes[item.source].add(item.question.scene)
        made: dict[tuple[str, ...], dict[str, list[Answer]]] = {}
        rows = []
        for (source, _), items in sets.items():
            given = {GIVEN: [item.answer for item in items]}
            if baselines:
                # Conditions mostly share one question set: its baselines are made once.
                key = (source, *(item.question.id for item in items))
                if key not in made:
                    made[key] = answer_without_map([item.question for item in items])
                given |= made[key]
            for name, answers in given.items():
                pairs = zip(items, answers, strict=True)
                rows += [_make_row(*pair, name.replace('_', ' '), is_right) for pair in pairs]
        before = {_identify(row): row['right'] for row in rows if row['condition'] == reference}
        for row in rows:
            pooled = (ALL_SCENES,) if len(scenes[row['source']]) > 1 else ()
            earlier = before.get(_identify(row)) if reference else None
            yield {**row, 'scene': (row['of_scene'], *pooled), 'before': earlier}

    def sum_up(group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
        low, high = interval_over_scenes(part.groupby('of_scene')['right'].agg(list).to_dict())
        plain = part['right'][~part['category'].isin(SPATIAL)]
        categories = part.groupby('category')['right'].mean()
        paired = part[part['before'].notna()]
        change = None
        if len(paired) and group['scene'] == ALL_SCENES and group['condition'] != reference:
            keys = list(zip(paired['of_scene'], paired['id'], strict=True))
            before, after = (dict(zip(keys, paired[x], strict=True)) for x in ('before', 'right'))
            change = compute_paired_change(before, after)
        bounds = [None] * 3 if change is None else [change.value, change.low, change.high]
        return {
            'unjudged': int(part['unjudged'].sum()),
            'accuracy': float(part['right'].mean()),
            'low': low,
            'high': high,
            'accuracy_macro': float(categories.mean()),
            'accuracy_without_spatial': float(plain.mean()) if len(plain) else None,
            'accuracy_strict': float(part.groupby('question')['by_rule'].mean().mean()),
            **dict(zip(changes, bounds, strict=False)),
            'categories': categories.to_dict(),
        }

    return Published(
        read_saved_answers,
        compare,
        groups=('source', 'scene', 'condition', 'answers'),
        unit='questions',
        modes=(Mode.NONE,),
        orders={'scene': (..., ALL_SCENES), 'condition': (...,)},
        sum_up=sum_up,
        arrange=_split_categories,
    )


def _remember_verdicts(judge: Judge) -> Callable[[Question, Answer], bool]:
    """Return a judge's verdicts: scenes and conditions often give the same answer again."""
    known: dict[tuple[Any, ...], bool] = {}

    def is_right(asked: Question, answer: Answer) -> bool:
        key = asked.answer_type, asked.answer, asked.text, asked.tolerance, answer.value
        if key not in known:
            known[key] = judge.judge([(asked, answer)])[0].correct
        return known[key]

    return is_right


def _make_row(
    item: SavedAnswer, answer: Answer, name: str, is_right: Callable[[Question, Answer], bool]
) -> dict[str, Any]:
    """Return an answer, by the method or by a baseline, as a row."""
    asked = item.question
    ruled = is_right(asked, answer)
    has_verdict = name == GIVEN and (item.similar is not None or item.unjudged)
    return {
        'source': item.source,
        'condition': item.condition,
        'answers': name,
        'of_scene': asked.scene,
        'id': asked.id,
        'category': asked.category,
        'right': item.similar is True if has_verdict else ruled,
        'by_rule': ruled,
        'question': (asked.scene, asked.text, str(asked.answer)),
        'unjudged': item.unjudged and name == GIVEN,
    }


def _identify(row: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the same for an answer under every condition."""
    return row['source'], row['answers'], row['of_scene'], row['id']


def _split_categories(scores: Scores) -> Scores:
    """Return scores with a column for each category, and for the source if there are several."""
    names = sorted({name for row in scores for name in row['categories']})
    several = len({row['source'] for row in scores}) > 1
    hidden = {'categories', *(() if several else ('source',))}
    return [
        {key: value for key, value in row.items() if key not in hidden}
        | {name: row['categories'].get(name) for name in names}
        for row in scores
    ]
