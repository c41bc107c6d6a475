"""Scene folders of Space3D-Bench, read with every fault named."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from pydantic import Field

from osmabench_ros.base.documents import read_json
from osmabench_ros.base.images import undecoded_image
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import QuestionError

QUESTIONS, GROUND_TRUTH, ANSWERS = 'questions.json', 'ground_truth.json', 'answers.json'
DETECTIONS, IMAGES = 'misc/detections.json', 'img'

Triple = tuple[float, float, float]


class DetectedObject(Strict):
    """An object of `detections.json`; metres, z up, as all of the file.

    The box is along the axes of the world: `rotation` is kept, and not applied.
    """

    class_name: str = Field(min_length=1)
    center: Triple
    sizes: Triple
    rotation: tuple[float, ...] | tuple[tuple[float, ...], ...] | None = None


class DetectedRoom(Strict):
    """A room of `detections.json`, with the objects that are listed in it."""

    center: Triple
    sizes: Triple
    objects: dict[str, DetectedObject] = Field(default_factory=dict)


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
        return _read_texts(self.path / QUESTIONS, 'one question a number')

    @cached_property
    def references(self) -> Mapping[str, ReferenceAnswer]:
        """Right answers by number; every question has one."""
        path = self.path / GROUND_TRUTH
        data = read_json(path, QuestionError)
        found = validated(dict[str, ReferenceAnswer], data, str(path), QuestionError)
        missing = [number for number in self.questions if number not in found]
        if missing:
            raise QuestionError(f'{path}: question {missing[0]} of {QUESTIONS} is missing')
        return found

    def answers(self, path: Path | None = None) -> Mapping[str, str]:
        """Return a system's answers by number, those next to the questions unless named."""
        chosen = path or self.path / ANSWERS
        found = _read_texts(chosen, 'one answer a number')
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
        undecoded_image(data, path, QuestionError, ('PNG',))
        return data

    @cached_property
    def detections(self) -> Mapping[int, DetectedObject]:
        """Objects by their id in the file; they are in rooms, or all under "objects"."""
        path = self.path / DETECTIONS
        data = read_json(path, QuestionError)
        if not isinstance(data, dict):
            raise QuestionError(f'{path}: must be an object of rooms by name')
        loose = data.pop('objects', {})
        rooms = validated(dict[str, DetectedRoom], data, str(path), QuestionError)
        of_no_room = validated(dict[str, DetectedObject], loose, f'{path}: objects', QuestionError)
        for name, room in rooms.items():
            _check_sizes(room, f'{path}: room "{name}"')
        found: dict[int, DetectedObject] = {}
        for group in (*(room.objects for room in rooms.values()), of_no_room):
            for key, item in group.items():
                number = _parse_id(key, path)
                if number in found:
                    raise QuestionError(f'{path}: object {number} is there twice')
                _check_sizes(item, f'{path}: object {number}')
                found[number] = item
        return found


def _read_texts(path: Path, what: str) -> dict[str, str]:
    data = read_json(path, QuestionError)
    if not isinstance(data, dict) or not all(isinstance(text, str) for text in data.values()):
        raise QuestionError(f'{path}: must be an object with {what}, all of them texts')
    return data


def _parse_id(key: str, path: Path) -> int:
    if not re.fullmatch(r'\d{1,9}', key):
        raise QuestionError(f'{path}: object id "{key}" is not a number')
    return int(key)


def _check_sizes(item: DetectedObject | DetectedRoom, where: str) -> None:
    if min(item.sizes) < 0:
        raise QuestionError(f'{where}: sizes {item.sizes} must not be negative')
