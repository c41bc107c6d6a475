"""Views around a place: bearings and seen objects, a row for each task, and answers by rule."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from itertools import product
from typing import TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.language.embedding import Embedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.suites.hypo3d.frame import DEAD_BAND_RAD, SIDES
from osmabench_ros.vqa.answering.answerer import OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.ways import FloorWays, ways_of_map
from osmabench_ros.vqa.english import definite, plural, singular, without_article
from osmabench_ros.vqa.questions import LETTERS, Answer, Inquiry


class Order(str, Enum):
    """Orders of the images of one item: clockwise, begun at the second, and shuffled."""

    CLOCKWISE = 'clockwise'
    TURNED = 'turn'
    SHUFFLED = '2'


# Width of an image: more than a quarter turn, so that four of them overlap all around.
HFOV_RAD = math.radians(100.0)

# Names of the sectors as SIDES, clockwise from north.
COMPASS = ('north', 'northeast', 'east', 'southeast', 'south', 'southwest', 'west', 'northwest')
_SECTOR_RAD = math.tau / len(COMPASS)

# Turns clockwise at the start, and on the way, of each decision.
_TURNS_RAD = {
    'go ahead': (0.0, 0.0),
    'turn right and go ahead': (math.pi / 2, 0.0),
    'turn back and go ahead': (math.pi, 0.0),
    'turn left and go ahead': (math.pi / 2 * 3, 0.0),
    'go ahead and turn left': (0.0, -math.pi / 2),
    'go ahead and turn right': (0.0, math.pi / 2),
}
# The first and the last part of a way give its directions.
_LEG_M = 0.8
_SHORTEST_M = 1.2

# Turning angles between adjacent images of the rotation tasks.
STEPS_DEG = {'30 degrees': 30, '60 degrees': 60}

_CELL_RAD = math.radians(3.0)
_HALF = 60  # cells of half a circle
_LEAST_CELLS = 2
_GROWN_M = 0.03

Angle = TypeVar('Angle', float, NDArray[np.float64])


def wrap(angle_rad: Angle) -> Angle:
    """Return an angle in [-pi, pi)."""
    return (angle_rad + math.pi) % math.tau - math.pi


@dataclass(frozen=True)
class Place:
    """Where a camera turns in place: its centre in world metres, z up, and where it begins.

    `ahead_deg` is counter-clockwise from +x; it is north, or the front of a person there.
    """

    eye_m: tuple[float, float, float]
    ahead_deg: float

    def camera(self, clockwise_rad: float = 0.0) -> Pose:
        """Return the optical pose of a level camera, turned clockwise from ahead."""
        yaw = math.radians(self.ahead_deg) - clockwise_rad
        return Pose.from_yaw(yaw, self.eye_m) @ OPTICAL_IN_LINK

    def bearing(self, offset_m: ArrayLike) -> NDArray[np.float64]:
        """Return how far clockwise from ahead offsets (..., >= 2) point, in [-pi, pi)."""
        offset = np.asarray(offset_m, np.float64)
        turned = math.radians(self.ahead_deg) - np.arctan2(offset[..., 1], offset[..., 0])
        return wrap(np.asarray(turned))

    def off_rad(self, points_m: ArrayLike, clockwise_rad: float) -> NDArray[np.float64]:
        """Return the angles between points (..., 2) and a direction clockwise from ahead."""
        return np.abs(wrap(self.bearing(np.subtract(points_m, self.eye_m[:2])) - clockwise_rad))

    def nearest(self, points_m: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the nearest of points (M, 3) in each direction, a cell of 3 degrees, (N, 3)."""
        points = np.asarray(points_m, np.float64)
        offset = points - self.eye_m
        distance = np.maximum(np.linalg.norm(offset, axis=1), 1e-9)
        columns = np.floor(np.arctan2(offset[:, 1], offset[:, 0]) / _CELL_RAD + _HALF)
        rows = np.floor(np.arcsin(offset[:, 2] / distance) / _CELL_RAD + _HALF)
        # The nearest comes last, and stays.
        order = np.argsort(-distance)
        cells = np.full((2 * _HALF + 1, 2 * _HALF + 1), -1)
        cells[rows.astype(np.int64)[order], columns.astype(np.int64)[order]] = order
        return np.asarray(points[cells[cells >= 0]])


# Returns the nearest points around a place.
Look = Callable[[Place], NDArray[np.float64]]


def look_at(points_m: NDArray[np.floating]) -> Look:
    """Return what finds the nearest of points (M, 3), once for each place."""
    return cache(lambda place: place.nearest(points_m))


def is_seen(box: AxisAlignedBox, nearest_m: NDArray[np.float64]) -> bool:
    """Return whether a box holds the nearest points of at least two directions."""
    return int(box.contains(nearest_m, _GROWN_M).sum()) >= _LEAST_CELLS


@dataclass(frozen=True)
class Asked:
    """The parts of a question: its task, the place, its subject, images, and options.

    `about` is a noun phrase, a direction of COMPASS, or '' of rotation tasks; `shown` has the
    names of objects in each image of these tasks. `options` are empty where a number is asked for.
    """

    task: TaskRow
    place: Place
    about: str = ''
    shown: tuple[tuple[str, ...], ...] = ()
    options: tuple[str, ...] = ()


# The text of an option, or a number.
Said = str | int

# The angle, in radians, by which each answer misses a map; nothing where it does not say.
Rated = dict[Said, float]


class ViewReader:
    """Answers questions about views from one map, by its nearest points and its ways, if any."""

    def __init__(self, reader: GraphReader, look: Look | None, ways: FloorWays | None) -> None:
        self._reader = reader
        self._look = look
        self._ways = ways

    def answer(self, asked: Asked) -> Said | None:
        """Return the answer that fits the map best, None if the map does not say."""
        rated = asked.task.rate(self, asked)
        return min(rated, key=lambda said: rated[said], default=None)

    def answer_clearly(self, asked: Asked) -> Said | None:
        """Return the answer that fits the map, None if that or another one is in doubt."""
        rated = asked.task.rate(self, asked)
        near = [said for said, miss_rad in rated.items() if miss_rad < asked.task.wrong_rad]
        return near[0] if len(near) == 1 and rated[near[0]] <= asked.task.right_rad else None

    def _find_boxes(self, phrases: Iterable[str]) -> dict[str, AxisAlignedBox]:
        """Return the boxes that phrases fit best, of those that fit any."""
        nodes = {phrase: self._reader.named(phrase) for phrase in phrases}
        return {phrase: node.box for phrase, node in nodes.items() if node and node.box}

    def rate_directions(self, asked: Asked) -> Rated:
        """Rate sectors by the angles between their middles and the centre of an object."""
        names = asked.task.answers
        return {
            name: float(asked.place.off_rad(box.center[:2], names.index(name) * _SECTOR_RAD))
            for box in self._find_boxes([asked.about]).values()
            for name in asked.options
        }

    def rate_objects(self, asked: Asked) -> Rated:
        """Rate objects by their centres in a sector, and those outside by their nearest parts."""
        middle_rad = COMPASS.index(asked.about) * _SECTOR_RAD
        found: Rated = {}
        for name, box in self._find_boxes(asked.options).items():
            off = float(asked.place.off_rad(box.center[:2], middle_rad))
            center_rad = float(asked.place.bearing(box.center[:2] - asked.place.eye_m[:2]))
            corners = list(product(*zip(box.minimum[:2], box.maximum[:2], strict=True)))
            half = float(asked.place.off_rad(corners, center_rad).max())
            found[name] = off if off < _SECTOR_RAD / 2 else max(_SECTOR_RAD / 2, off - half)
        return found

    def rate_counts(self, asked: Asked) -> Rated:
        """Return how many objects hold the nearest points of some directions, without doubt."""
        if self._look is None:
            return {}
        boxes = [node.box for node in self._reader.all_named(asked.about)]
        nearest = self._look(asked.place)
        return {sum(is_seen(box, nearest) for box in boxes if box is not None): 0.0}

    def rate_ways(self, asked: Asked) -> Rated:
        """Rate decisions by the directions of the way to an object, at its start and its end."""
        box = self._find_boxes([asked.about]).get(asked.about)
        if box is None or self._ways is None:
            return {}
        line = self._ways.line_m(asked.place.eye_m, box.center)
        if line is None or len(line) < 2:
            return {}
        at = np.append(0.0, np.linalg.norm(np.diff(line[:, :2], axis=0), axis=1).cumsum())
        ends = (0.0, min(_LEG_M, at[-1]), max(0.0, at[-1] - _LEG_M), at[-1])
        points = np.column_stack([np.interp(ends, at, line[:, axis]) for axis in (0, 1)])
        first, last = asked.place.bearing(points[[1, 3]] - points[[0, 2]]).tolist()
        # It is never clear in which direction a short way goes.
        doubt_rad = math.pi if at[-1] < _SHORTEST_M else 0.0
        return {
            name: max(abs(wrap(first - start)), abs(wrap(last - first - turn))) + doubt_rad
            for name in asked.options
            for start, turn in [_TURNS_RAD[name]]
        }

    def rate_rotations(self, asked: Asked) -> Rated:
        """Rate steps, or odd images without options, by named objects outside their images."""
        boxes = [self._find_boxes(names) for names in asked.shown]

        def miss(step_deg: int, odd: int) -> float:
            kept = [found for i, found in enumerate(boxes, start=1) if i != odd]
            off_rad = [
                float(asked.place.off_rad(box.center[:2], math.radians(step_deg * number)))
                for number, found in enumerate(kept)
                for box in found.values()
            ]
            return sum(max(0.0, off - HFOV_RAD / 2) for off in off_rad)

        if not any(boxes):
            return {}
        if asked.options:
            return {x: miss(step, 0) for x, step in STEPS_DEG.items() if x in asked.options}
        images = range(1, len(asked.shown) + 1)
        return {odd: min(miss(step, odd) for step in STEPS_DEG.values()) for odd in images}


Rate = Callable[[ViewReader, Asked], Rated]


@dataclass(frozen=True, eq=False)
class TaskRow:
    """A task: its words, how a map rates answers, and the answers that a choice is made from.

    The `name` is the one in the paper. A task without options has `numbers`, so many that a guess
    is one of them. An answer is clear if it misses the map by at most `right_rad`, and all others
    by `wrong_rad`. `looks` are the directions of the four images, unless `images` has another
    sentence on them. The subject of a question is made from a noun phrase by `phrase`, and read
    back by `read`. Its published questions are in `file`; of a file with two tasks, `part` says
    which of both answers in a line and in the JSON of a reply are of this one.
    """

    name: str
    file: str
    words: str
    rate: Rate
    answers: tuple[str, ...] = ()
    right_rad: float = _SECTOR_RAD / 2 - DEAD_BAND_RAD
    wrong_rad: float = _SECTOR_RAD / 2 + DEAD_BAND_RAD
    phrase: Callable[[str], str] = definite
    read: Callable[[str], str] = without_article
    looks: tuple[str, ...] = COMPASS[::2]
    images: str = ''
    numbers: int = 0
    part: int = 0


_AROUND = ('ahead', 'to the right', 'back', 'to the left')
_EACH_TURNED = 'looks ahead, and each is turned clockwise from the one before by the same angle'
_ODD_RAD = math.radians(15.0)


class Task:
    """Tasks of CoSpace, in the order of its paper."""

    DIRECTION = TaskRow(
        'DIR-Rec', 'direction', 'In which direction is {}?', ViewReader.rate_directions, COMPASS
    )
    OBJECT = TaskRow(
        'DIR-Obj', 'object', 'What can be seen in the {}?', ViewReader.rate_objects, phrase=str
    )
    COUNT = TaskRow(
        'CNT', 'counting', 'How many {} can be seen in all directions together?',
        ViewReader.rate_counts, phrase=plural, read=singular,
        numbers=10,  # 1 to 10 gives the 10 % that the paper has for a guess
    )  # fmt: skip
    ANGLE = TaskRow(
        'ROT-Ang', 'angle', 'What is the turning angle between adjacent images?',
        ViewReader.rate_rotations, tuple(STEPS_DEG), 0.0, _ODD_RAD, looks=_AROUND,
        images=f'The first of four images {_EACH_TURNED}.',
    )  # fmt: skip
    DIFFERENCE = TaskRow(
        'ROT-Dif', 'dif-ang',
        'Which image, by its number from 1 to 5, does not belong to the sequence?',
        ViewReader.rate_rotations, (), 0.0, _ODD_RAD, looks=_AROUND, numbers=5,
        images=f'The first image of a sequence of four {_EACH_TURNED}; a fifth one, which looks '
        'elsewhere, was put in somewhere.',
    )  # fmt: skip
    PLACE = TaskRow(
        'PLA-QA', 'planning', 'Where is {} relative to you?',
        ViewReader.rate_directions, SIDES, looks=_AROUND, part=1,
    )  # fmt: skip
    DECISION = TaskRow(
        'PLA-Dec', 'planning', 'What should you do in order to reach {}?',
        ViewReader.rate_ways, tuple(_TURNS_RAD), math.pi / 6, math.pi / 3, looks=_AROUND, part=2,
    )  # fmt: skip


TASKS = {row.name: row for row in vars(Task).values() if isinstance(row, TaskRow)}

_ORDERS = {
    Order.CLOCKWISE: 'The four images look {0}, {1}, {2} and {3}.',
    Order.TURNED: 'The four images look {1}, {2}, {3} and {0}.',
    Order.SHUFFLED: 'The first of four images looks {0}; the order of the others is not told.',
}
_PLACE = (
    'You stand at ({:.2f}, {:.2f}, {:.2f}) m; {} is {:g} degrees counter-clockwise from the x '
    'axis.'
)
_SHOWN = 'Image {} shows {}.'


@cache
def _compile_words(words: str) -> re.Pattern[str]:
    """Return the expression that reads words with places for others."""
    return re.compile(re.sub(r'\\{.*?\\}', '(.+?)', re.escape(words)))


def put_in_words(asked: Asked, order: Order) -> str:
    """Return the question without what images show, which `list_views` adds."""
    row = asked.task
    place = _PLACE.format(*asked.place.eye_m, row.looks[0], asked.place.ahead_deg)
    images = row.images or _ORDERS[order].format(*row.looks)
    return f'{place} {images} {row.words.format(row.phrase(asked.about))}'


def list_views(shown: Sequence[Sequence[str]]) -> str:
    """Return in words what images show, for an answerer that reads a map and sees none."""
    lines = [f'Each image is {round(math.degrees(HFOV_RAD))} degrees wide.']
    for number, names in enumerate(shown, start=1):
        listed = ', '.join(map(definite, names)) or 'nothing that has a name'
        lines.append(_SHOWN.format(number, listed))
    return ' '.join(lines)


def read(text: str, options: tuple[str, ...] = ()) -> Asked | None:
    """Return the parts of a question, None if it is worded otherwise."""
    place = _compile_words(_PLACE).match(text)
    for row in TASKS.values():
        match = _compile_words(row.words).search(text)
        if place is not None and match is not None:
            x, y, z, _, ahead = place.groups()
            shown = tuple(
                tuple(without_article(x) for x in names.split(', ') if x.startswith('the '))
                for _, names in _compile_words(_SHOWN).findall(text)
            )
            eye_m = float(x), float(y), float(z)
            about = ''.join(map(row.read, match.groups()))
            return Asked(row, Place(eye_m, float(ahead)), about, shown, options)
    return None


class RuleOfViews(OneByOne):
    """Reads the place and the question, and looks around in the recorded map from there.

    A choice is answered with its letter.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return the answerer of a map; questions that differ only in images are answered once."""
        dense = semantic_map.dense
        look = None if dense is None else look_at(dense.valid_points)
        graph = GraphReader.of_map(semantic_map, self._embedder)
        kept = cache(ViewReader(graph, look, ways_of_map(semantic_map)).answer)

        def answer_inquiry(item: Inquiry) -> Answer:
            asked = read(item.text, item.options)
            if asked is None:
                return Answer(item.id, None, self.name, note='the rules do not know it')
            value = kept(asked)
            note = '' if value is not None else 'the map does not say'
            if isinstance(value, str):
                value = LETTERS[item.options.index(value)]
            return Answer(item.id, value, self.name, note=note)

        return answer_inquiry
