"""Scene folders of Space3D-Bench, and the scores of answers to them: as published, and by rule."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, NonNegativeFloat

from osmabench_ros.base.documents import parse_json
from osmabench_ros.base.files import claim_folder, write_text
from osmabench_ros.base.images import decoded_image
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError, LanguageModelError, QuestionError
from osmabench_ros.language.client import ModelClient
from osmabench_ros.language.model import EmptyReplyError, ImagePart, ModelRequest, RefusalError
from osmabench_ros.language.prompts import load_prompt
from osmabench_ros.metrics.record import Mode
from osmabench_ros.metrics.statistics import wilson_interval
from osmabench_ros.suites.space3d.suite import STRAIGHT_TOLERANCE_M
from osmabench_ros.vqa.grading import Grade
from osmabench_ros.vqa.judging import reading
from osmabench_ros.vqa.judging.deterministic import DeterministicJudge
from osmabench_ros.vqa.kinds import COORDINATE_TOLERANCE_M, WALK_TOLERANCE_M
from osmabench_ros.vqa.published import Published, read_document
from osmabench_ros.vqa.schemas import parse, schema

if TYPE_CHECKING:
    import pandas as pd

QUESTIONS, GROUND_TRUTH, ANSWERS = 'questions.json', 'ground_truth.json', 'answers.json'
DETECTIONS, IMAGES = 'misc/detections.json', 'img'

Triple = tuple[float, float, float]
Sizes = tuple[NonNegativeFloat, NonNegativeFloat, NonNegativeFloat]
ObjectId = Annotated[str, Field(pattern=r'^\d{1,9}$')]


class DetectedObject(Strict):
    """An object of `detections.json`; metres, z up, as all of the file.

    The box is along the axes of the world: `rotation` is kept, and not applied.
    """

    class_name: str = Field(min_length=1)
    center: Triple
    sizes: Sizes
    rotation: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None


class DetectedRoom(Strict):
    """A room of `detections.json`, with the objects that are listed in it."""

    center: Triple
    sizes: Sizes
    objects: dict[ObjectId, DetectedObject] = Field(default_factory=dict)


class ShownAnswer(Strict):
    """A right answer that an image shows."""

    image_path: str = Field(min_length=1)
    example_answer: str


class ReferenceAnswer(Strict):
    """What `ground_truth.json` says of a question: the right answer, and when to accept one."""

    answer: str | ShownAnswer
    prompt: str

    @property
    def context(self) -> str:
        """The right answer, or the example of one, as a text."""
        return self.answer if isinstance(self.answer, str) else self.answer.example_answer


@dataclass(frozen=True)
class SceneFolder:
    """One scene of Space3D-Bench; each file is read when it is first asked for.

    QuestionError names the file, and the key or line, that is missing or malformed.
    """

    path: Path

    @property
    def scene(self) -> str:
        """Name of the scene, as of the folder."""
        return self.path.resolve().name

    @cached_property
    def questions(self) -> Mapping[str, str]:
        """Questions by number."""
        return read_document(dict[str, str], self.path / QUESTIONS)

    @cached_property
    def references(self) -> Mapping[str, ReferenceAnswer]:
        """Right answers by number; every question has one."""
        path = self.path / GROUND_TRUTH
        found = read_document(dict[str, ReferenceAnswer], path)
        missing = [number for number in self.questions if number not in found]
        if missing:
            raise QuestionError(f'{path}: question {missing[0]} of {QUESTIONS} is missing')
        return found

    def answers(self, path: Path | None = None) -> Mapping[str, str]:
        """Return a system's answers by number, those next to the questions unless named."""
        chosen = path or self.path / ANSWERS
        found = read_document(dict[str, str], chosen)
        unasked = [number for number in found if number not in self.questions]
        if unasked:
            raise QuestionError(
                f'{chosen}: answer {unasked[0]} has no question in {self.path / QUESTIONS}; '
                'name the answers of this scene'
            )
        return found

    def image(self, number: str) -> bytes:
        """Return the PNG that shows the right answer of a question."""
        shown = self.references[number].answer
        if isinstance(shown, str):
            raise QuestionError(f'{self.path / GROUND_TRUTH}: question {number} has no image')
        # Published paths begin at the repository, "data/<scene>/img/"; the images lie here.
        name = PurePosixPath(shown.image_path).name
        path = self.path / IMAGES / name
        data = read_bytes(path, QuestionError)
        decoded_image(data, path, QuestionError, ('PNG',), load=False)
        return data

    @cached_property
    def detections(self) -> Mapping[int, DetectedObject]:
        """Objects by their id in the file; they are in rooms, or all under "objects"."""
        path = self.path / DETECTIONS
        data = read_document(dict[str, Any], path)
        loose = data.pop('objects', {})
        rooms = validated(dict[str, DetectedRoom], data, str(path), QuestionError)
        of_no_room = validated(
            dict[ObjectId, DetectedObject], loose, f'{path}: objects', QuestionError
        )
        found: dict[int, DetectedObject] = {}
        for group in (*(room.objects for room in rooms.values()), of_no_room):
            for key, item in group.items():
                if int(key) in found:
                    raise QuestionError(f'{path}: object {key} is there twice')
                found[int(key)] = item
        return found


_SLACK_M = 1e-9
_NUMBER = r'[-+]?\d+(?:\.\d+)?'
_TRIPLE = re.compile(
    rf'[\[(]\s*({_NUMBER})\s*m?\s*,\s*({_NUMBER})\s*m?\s*,\s*({_NUMBER})\s*m?\s*[\])]'
    rf'|\bx\s*[:=]?\s*({_NUMBER})\W+y\s*[:=]?\s*({_NUMBER})\W+z\s*[:=]?\s*({_NUMBER})',
    re.IGNORECASE,
)
_IDS = re.compile(
    r'(?:\bids?\b\W{0,4}(?:(?:is|are|of|number)\W+)?|#)(\d+(?:\W{0,3}(?:and\W+|ids?\W+|#)?\d+\b)*)'
    r'(?!\.\d|\s*(?:m|cm|met(?:er|re)s?)\b)',
    re.IGNORECASE,
)
_LABEL = re.compile(r'^[A-Za-z][\w /()-]{0,60}:\s*(?=\S)')
_NAVIGABLE = re.compile(
    r'\b(?:navig\w*|walk\w*|paths?|routes?|driv\w*|travel\w*)\b', re.IGNORECASE
)
_DISTANCE = re.compile(r'\b(?:distances?|far|apart)\b', re.IGNORECASE)
_CLAUSE = re.compile(r'\b(?:is|are|was|were|has|have|can|could|would|will|there)\b', re.IGNORECASE)
# After a list of rooms: "kitchen, study do not contain a bed".
_LACKS = re.compile(r"\s+(?:do|does)(?: not|n't) (?:contain|have|include)\b.*", re.IGNORECASE)

# An object that a shorter answer does not name is not hidden in a clause of it.
_SHORT_WORDS = 6


@dataclass(frozen=True)
class Facts:
    """Facts of a sentence: coordinates, ids of objects, and the words left."""

    coordinates: tuple[Triple, ...]
    ids: frozenset[int]
    rest: str

    @property
    def values(self) -> list[float]:
        """Numbers other than coordinates and ids, lengths in metres; only lengths if any."""
        found = reading.quantities(self.rest)
        lengths = [item.value for item in found if item.is_length]
        return lengths or [item.value for item in found]


@lru_cache(maxsize=4096)
def facts_of(text: str) -> Facts:
    """Return the facts that a right answer or a system's answer states."""
    triples = []
    rest = text
    for match in _TRIPLE.finditer(text):
        numbers = [part for part in match.groups() if part is not None]
        if match[4] is not None or any('.' in number for number in numbers):
            x, y, z = map(float, numbers)
            triples.append((x, y, z))
            rest = rest.replace(match[0], ' ', 1)
    ids = {int(number) for match in _IDS.finditer(rest) for number in re.findall(r'\d+', match[1])}
    return Facts(tuple(triples), frozenset(ids), ' '.join(_IDS.sub(' ', rest).split()))


@dataclass(frozen=True)
class SentenceGrader:
    """Grades answers against right answers in text.

    In this order: what declines; coordinates; distances, navigable ones with a larger tolerance;
    yes and no; a number of objects; ids; names of objects. The two objects of a distance
    have to be the ones of the right answer, by id or by the coordinates of their `detections`; an
    answer that leaves them open is left to a judge, as is one that gives several numbers of which
    only some are right.
    """

    detections: Mapping[int, DetectedObject] = field(default_factory=dict)

    def grade(self, question: str, right: str, said: str, criterion: str = '') -> Grade | None:
        """Return the grade of an answer to a question, None if no rule fits."""
        if not reading.is_refusal(right):
            sentences = re.split(r'(?<=[.;\n])\s+', said)
            if reading.is_refusal(sentences[0]):
                return Grade(False, 'declines')
            # A later one may say of another room that something is not known of it.
            said = ' '.join(sentence for sentence in sentences if not reading.is_refusal(sentence))
        wanted = facts_of(right)
        given = facts_of(said)
        wanted = replace(wanted, rest=_LABEL.sub('', wanted.rest.strip(' ,;.')))
        if wanted.coordinates:
            return self._grade_coordinates(wanted, given)
        context = f'{question} {right} {criterion}'
        numbers = reading.quantities(wanted.rest)
        is_one = len(numbers) == 1
        if is_one and (numbers[0].is_length or _DISTANCE.search(f'{question} {right}')):
            tolerance_m = WALK_TOLERANCE_M if _NAVIGABLE.search(context) else STRAIGHT_TOLERANCE_M
            return self._grade_distance(wanted, given, tolerance_m)
        if re.match(r'(?:yes|no)\b', reading.plain(right)):
            polarity = reading.as_yes_no(said)
            is_right = polarity == reading.as_yes_no(right)
            return None if polarity is None else Grade(is_right, 'yes or no')
        if reading.is_quantity(wanted.rest) and is_one:
            return _count(wanted, given, said)
        if wanted.ids and not re.search(r'[A-Za-z]{3,}', wanted.rest):
            return Grade(wanted.ids == given.ids, 'ids') if given.ids else None
        return self._grade_objects(wanted.rest, said, question)

    def _grade_coordinates(self, wanted: Facts, given: Facts) -> Grade | None:
        stated = [*given.coordinates, *self._find_centers(given.ids)]
        if not stated:
            return None
        return Grade(
            all(any(_is_near(a, b) for b in stated) for a in wanted.coordinates)
            and len(given.coordinates) <= len(wanted.coordinates),
            'coordinates',
        )

    def _grade_distance(self, wanted: Facts, given: Facts, tolerance_m: float) -> Grade | None:
        (right,) = wanted.values
        near = [abs(value - right) <= tolerance_m + _SLACK_M for value in given.values]
        if near and not any(near):
            return Grade(False, f'distance, {tolerance_m} m')
        if not near or not all(near):
            return None
        if wanted.ids and given.ids:
            return Grade(wanted.ids == given.ids, 'distance and ids')
        if wanted.ids and given.coordinates:
            centers = self._find_centers(wanted.ids)
            if len(centers) < len(wanted.ids):
                return None
            same = all(any(_is_near(a, b) for b in given.coordinates) for a in centers)
            return Grade(same, 'distance and coordinates')
        return None if wanted.ids else Grade(True, f'distance, {tolerance_m} m')

    def _find_centers(self, ids: frozenset[int]) -> list[Triple]:
        return [self.detections[i].center for i in sorted(ids) if i in self.detections]

    def _grade_objects(self, right: str, said: str, question: str) -> Grade | None:
        """Return whether all objects or rooms are named, for an answer that only names some."""
        right = _LACKS.sub('', right)
        said = _LACKS.sub('', said)
        if not right or _CLAUSE.search(right) or len(reading.words_of(right)) > 3 * _SHORT_WORDS:
            return None
        parts = [part.strip() for part in re.split(r',|\band\b', right) if part.strip()]
        if not all(reading.noun_phrases(part) for part in parts):
            return None
        same_text = DeterministicJudge().same_text
        named = [same_text(part, said, question, is_part=True)[0] for part in parts]
        if all(named):
            more = not _CLAUSE.search(said) and len(reading.noun_phrases(said)) > len(parts)
            return Grade(not more, 'named things')
        short = len(reading.words_of(said)) <= _SHORT_WORDS
        return Grade(False, 'named things') if short or any(named) else None


def _count(wanted: Facts, given: Facts, said: str) -> Grade | None:
    (right,) = wanted.values
    values = set(given.values)
    if not values and reading.is_denial(said):
        values = {0.0}
    if len(values) != 1:
        return Grade(False, 'gives no number') if not values else None
    return Grade(abs(values.pop() - right) <= _SLACK_M, 'number')


def _is_near(first: Triple, second: Triple) -> bool:
    limit_m = COORDINATE_TOLERANCE_M + _SLACK_M
    return all(abs(a - b) <= limit_m for a, b in zip(first, second, strict=True))


RESULTS = {Mode.COMPAT: 'result.json', Mode.STRICT: 'strict.json'}
RIGHT, WRONG = '1', '0'

# The record of one question: result, justification, question, answer, context.
Entry = dict[str, Any]


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
        decide = self._decide_strictly
        if self.mode is Mode.COMPAT:
            self._check_judges(folder)
            decide = self._decide_as_published
        for done, (number, question) in enumerate(folder.questions.items()):
            count = len(folder.questions)
            self.progress(f'graded {done} of {count} answers', done / count)
            said = answers.get(number)
            # A verdict on another answer says nothing about this one.
            if {'question': question, 'answer': said}.items() <= kept.get(number, {}).items():
                continue
            if said is None:
                kept[number] = {'result': WRONG, 'justification': 'No answer available.'}
            else:
                context = folder.references[number].context
                found = decide(folder, number, said)
                kept[number] = {**found, 'question': question, 'answer': said, 'context': context}
            if self.mode is Mode.COMPAT:
                write_text(file, json.dumps(kept, indent=4))
        write_text(file, json.dumps(kept, indent=4))
        return [kept[number] for number in folder.questions]

    def _choose_judge(self, reference: ReferenceAnswer) -> ModelClient | None:
        return self.text_judge if isinstance(reference.answer, str) else self.vision_judge

    def _check_judges(self, folder: SceneFolder) -> None:
        for item in folder.references.values():
            if self._choose_judge(item) is None:
                option = '--judge' if isinstance(item.answer, str) else '--vision-judge'
                raise ConfigError(
                    f'{folder.path}: compat has every answer judged by a model; give {option}, or '
                    'score in strict mode'
                )

    def _decide_as_published(self, folder: SceneFolder, number: str, said: str) -> Entry:
        """Send an answer to a model, and read its reply as the published code does."""
        client = self._choose_judge(folder.references[number])
        assert client is not None
        try:
            return client.ask(_make_request(folder, number, said), read_as_published)
        except RefusalError as refusal:
            return {'error': str(refusal)}
        except EmptyReplyError:
            return {'error': ''}

    def _decide_strictly(self, folder: SceneFolder, number: str, said: str) -> Entry:
        """Ask rules first; a model where none fits, if there is one."""
        reference = folder.references[number]
        rule = 'an image shows what is right'
        if isinstance(reference.answer, str):
            known = folder.detections if (folder.path / DETECTIONS).exists() else {}
            grade = SentenceGrader(known).grade(
                folder.questions[number], reference.answer, said, reference.prompt
            )
            if grade is not None:
                result = RIGHT if grade.correct else WRONG
                return {'result': result, 'justification': grade.reason, 'by': 'rule'}
            rule = 'no rule fits'
        client = self._choose_judge(reference)
        if client is None:
            return {'justification': rule, 'by': 'none'}
        request = _make_request(folder, number, said, schema(_Judgement))
        try:
            found = client.ask(request, lambda text: parse(_Judgement, text))
        except RefusalError as refusal:
            return {'justification': str(refusal), 'by': 'none'}
        return {**found.model_dump(), 'by': client.name}


def _make_request(
    folder: SceneFolder, number: str, said: str, schema: Mapping[str, Any] | None = None
) -> ModelRequest:
    reference = folder.references[number]
    prompt = load_prompt('judge_space3d')
    shown = not isinstance(reference.answer, str)
    text = prompt.render(
        question=folder.questions[number],
        right=reference.context,
        answer=said,
        criterion=reference.prompt,
        image=shown,
    )
    images = (ImagePart(folder.image(number)),) if shown else ()
    return ModelRequest(text, prompt.system, images, schema, max_output_tokens=4000)


def _read_kept_verdicts(file: Path) -> dict[str, Entry]:
    """Return the verdicts of an interrupted compat run; strict ones depend on rules, not money."""
    if file.name != RESULTS[Mode.COMPAT] or not file.exists():
        return {}
    return read_document(dict[str, Entry], file, remedy='remove it to start over')


def read_as_published(reply: str) -> Entry:
    """Return the verdict that the published code reads in a reply: its first line with JSON.

    From the first "{" of that line to its last "}"; text that is not JSON, such as an object over
    several lines or with single quotes, is an error, and no reply is asked for again.
    """
    match = re.search(r'\{.*\}', reply)
    try:
        found = parse_json(match[0] if match else '', 'the reply', LanguageModelError)
    except LanguageModelError:
        found = None
    return dict(found) if isinstance(found, dict) else {'error': reply}


def _compare(entries: Sequence[tuple[str, Entry]], _mode: Mode) -> Iterator[dict[str, Any]]:
    for scene, entry in entries:
        by = entry.get('by')
        answered = 'answer' in entry
        yield {
            'scene': scene,
            'right': str(entry.get('result')) == RIGHT,
            'by_rule': by == 'rule',
            'by_judge': answered and by not in ('rule', 'none'),
            'unanswered': not answered,
            'undecided': by == 'none',
            'errors': 'error' in entry,
        }


def _sum_up(_group: Mapping[str, str], part: pd.DataFrame) -> dict[str, Any]:
    counts = {name: int(count) for name, count in part.sum().items()}
    right = counts.pop('right')
    decided = len(part) - counts['undecided']
    low, high = wilson_interval(right, len(part))
    return {
        'right': right,
        'accuracy': right / len(part),
        'low': low,
        'high': high,
        'accuracy_decided': right / decided if decided else None,
        **counts,
    }
