"""Views around a place: bearings and seen objects, a row for each task, and answers by rule."""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
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
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.suites.hypo3d.frame import DEAD_BAND_RAD, NEAREST_M
from osmabench_ros.vqa.answering.answerer import OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.ways import FloorWays, ways_of_map
from osmabench_ros.vqa.english import definite, plural, singular, without_article
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import LETTERS, Answer, Inquiry


class Task(str, Enum):
    """Tasks of CoSpace, by their names in its paper."""

    DIRECTION = 'DIR-Rec'
    OBJECT = 'DIR-Obj'
    COUNT = 'CNT'
    ANGLE = 'ROT-Ang'
    DIFFERENCE = 'ROT-Dif'
    PLACE = 'PLA-QA'
    DECISION = 'PLA-Dec'


class Order(str, Enum):
    """Orders of the images of one item: clockwise, begun at the second, and shuffled."""

    CLOCKWISE = 'clockwise'
    TURNED = 'turn'
    SHUFFLED = '2'


NUMBERED = frozenset((Task.COUNT, Task.DIFFERENCE))
"""Tasks without options, whose answer is a number."""

PLANNING = (Task.PLACE, Task.DECISION)
"""Tasks of one file, whose replies have both answers in JSON."""

HFOV_RAD = math.radians(100.0)
"""Width of an image: more than a quarter turn, so that four of them overlap all around."""

COMPASS = (
    'north', 'northeast', 'east', 'southeast', 'south', 'southwest', 'west', 'northwest',
)  # fmt: skip
SIDES = (
    'front', 'front right', 'right', 'back right', 'back', 'back left', 'left', 'front left',
)  # fmt: skip
"""Names of the sectors, clockwise from north or from the front of a person."""

SECTORS = len(COMPASS)
_SECTOR_RAD = math.tau / SECTORS

_LEG_M = 0.8
"""Length of the parts of a way that give its directions at the start and at the end."""

_SHORTEST_M = 1.2
_START_RAD, _TURN_RAD = math.radians(33.0), math.radians(30.0)
"""Largest misfits of a decision that is clear."""

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

    def off_sector_rad(self, box: AxisAlignedBox, sector: int) -> float:
        """Return the angle between the centre of a box and the middle of a sector."""
        return float(self.off_rad(box.center[:2], sector * _SECTOR_RAD))

    def sector(self, box: AxisAlignedBox) -> int | None:
        """Return the sector, clockwise from ahead, of the centre of a box.

        None within DEAD_BAND_RAD of a border between sectors, or closer than NEAREST_M.
        """
        if math.dist(box.center[:2], self.eye_m[:2]) < NEAREST_M:
            return None
        offset = box.center[:2] - self.eye_m[:2]
        sector = round(float(self.bearing(offset)) / _SECTOR_RAD) % SECTORS
        clear = self.off_sector_rad(box, sector) <= _SECTOR_RAD / 2 - DEAD_BAND_RAD
        return sector if clear else None

    def is_outside(self, box: AxisAlignedBox, sector: int) -> bool:
        """Return whether all of a box is outside of a sector and of the dead band around it."""
        low = box.minimum[:2]
        high = box.maximum[:2]
        if (low <= self.eye_m[:2]).all() and (self.eye_m[:2] <= high).all():
            return False
        corners = np.array([low, (high[0], low[1]), high, (low[0], high[1])])
        edge = np.linspace(corners, np.roll(corners, 1, axis=0), 9)
        reach = _SECTOR_RAD / 2 + DEAD_BAND_RAD
        return bool((self.off_rad(edge, sector * _SECTOR_RAD) > reach).all())

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


def is_seen(box: AxisAlignedBox, nearest_m: NDArray[np.float64]) -> bool:
    """Return whether a box holds the nearest points of at least two directions."""
    return int(box.contains(nearest_m, _GROWN_M).sum()) >= _LEAST_CELLS


_TURNS = {
    'go ahead': (0, 0),
    'turn right and go ahead': (1, 0),
    'turn back and go ahead': (2, 0),
    'turn left and go ahead': (3, 0),
    'go ahead and turn left': (0, -1),
    'go ahead and turn right': (0, 1),
}
"""Quarter turns clockwise at the start, and on the way, of each decision."""

DECISIONS = tuple(_TURNS)
"""Decisions with which one reaches an object; of each way at most one is right."""


@dataclass(frozen=True)
class Way:
    """How a way goes: its length, where it begins, clockwise from ahead, and its turn."""

    length_m: float
    start_rad: float
    turn_rad: float

    @classmethod
    def along(cls, place: Place, line_m: NDArray[np.float64]) -> 'Way':
        """Measure a way (N, 2 or 3) from a place by its first and its last 0.8 m."""
        legs = np.linalg.norm(np.diff(line_m[:, :2], axis=0), axis=1)
        at = np.append(0.0, np.cumsum(legs))
        ends = (0.0, min(_LEG_M, at[-1]), max(0.0, at[-1] - _LEG_M), at[-1])
        points = np.column_stack([np.interp(ends, at, line_m[:, axis]) for axis in (0, 1)])
        first, last = place.bearing(points[[1, 3]] - points[[0, 2]]).tolist()
        return cls(float(at[-1]), first, wrap(last - first))

    def find_misfits(self, decision: str) -> tuple[float, float]:
        """Return the angles by which a decision misses the start and the turn."""
        start, turn = (math.pi / 2 * quarters for quarters in _TURNS[decision])
        return abs(wrap(self.start_rad - start)), abs(wrap(self.turn_rad - turn))

    @property
    def decision(self) -> str:
        """The decision that clearly leads along the way, '' for none.

        Ways shorter than 1.2 m are not clear, nor those that begin within 12 degrees of the
        border between two quarters.
        """
        for name in DECISIONS if self.length_m >= _SHORTEST_M else ():
            start, turn = self.find_misfits(name)
            if start <= _START_RAD and turn <= _TURN_RAD:
                return name
        return ''

    def choose_likeliest(self, options: Sequence[str]) -> str | None:
        """Return the option that begins and ends as the way does with the least turning."""
        known = [name for name in options if name in DECISIONS] if self.length_m > 1e-6 else []
        return min(known, key=lambda name: sum(self.find_misfits(name)), default=None)


STEPS_DEG = (30, 60)
"""Turning angles between adjacent images of the rotation tasks."""

ANGLES = tuple(f'{step} degrees' for step in STEPS_DEG)


@dataclass(frozen=True)
class Asked:
    """The parts of a question: its task, the place, its subject, and the objects in its images.

    `about` is a noun phrase, a direction of COMPASS, or '' of rotation tasks; `shown` has the
    names of objects in each image of these tasks.
    """

    task: Task
    place: Place
    about: str = ''
    shown: tuple[tuple[str, ...], ...] = ()


Said = str | int | None
"""The text of an option or a number; None where the map does not say."""


class ViewReader:
    """Answers questions about views from one map; a choice is among the options."""

    def __init__(
        self,
        reader: GraphReader,
        points_m: NDArray[np.floating] | None,
        ways: FloorWays | None,
    ) -> None:
        self._reader = reader
        self._points_m = points_m
        self._ways = ways
        self._nearest: dict[Place, NDArray[np.float64]] = {}

    def answer(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return the map's answer to a question, None if it has none."""
        return TASKS[asked.task].answer(self, asked, options)

    def find_boxes(self, phrases: Iterable[str]) -> dict[str, AxisAlignedBox]:
        """Return the boxes that phrases fit best, of those that fit any."""
        nodes = {phrase: self._reader.named(phrase) for phrase in phrases}
        return {
            phrase: node.box
            for phrase, node in nodes.items()
            if node is not None and node.box is not None
        }

    def choose_direction(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return the name of the sector that is nearest to an object."""
        box = self.find_boxes([asked.about]).get(asked.about)
        if box is None:
            return None
        names = TASKS[asked.task].answers
        return min(options, key=lambda name: asked.place.off_sector_rad(box, names.index(name)))

    def choose_object(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return the object that is nearest to the middle of a sector."""
        sector = COMPASS.index(asked.about)
        boxes = self.find_boxes(options)
        off = {name: asked.place.off_sector_rad(box, sector) for name, box in boxes.items()}
        return min(off, key=lambda name: off[name], default=None)

    def count_seen(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return how many objects hold the nearest points of some directions."""
        del options
        if self._points_m is None:
            return None
        if asked.place not in self._nearest:
            self._nearest[asked.place] = asked.place.nearest(self._points_m)
        boxes = [node.box for node in self._reader.all_named(asked.about)]
        nearest = self._nearest[asked.place]
        return sum(is_seen(box, nearest) for box in boxes if box is not None)

    def choose_decision(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return the decision that the way to an object fits best."""
        box = self.find_boxes([asked.about]).get(asked.about)
        if box is None or self._ways is None:
            return None
        line = self._ways.line_m(asked.place.eye_m, box.center)
        return None if line is None else Way.along(asked.place, line).choose_likeliest(options)

    def choose_rotation(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return the odd image, or the step, that fits the images best."""
        del options
        if not self.find_boxes(name for names in asked.shown for name in names):
            return None
        found = self.find_violations(asked)
        step, odd = min(found, key=lambda key: (found[key], key))
        return odd or ANGLES[STEPS_DEG.index(step)]

    def find_violations(self, asked: Asked) -> dict[tuple[int, int], float]:
        """Return the misfit of each step in degrees and odd image, 0 for none, to the images.

        It is the sum of the angles by which named objects are outside the images that show them.
        """
        boxes = self.find_boxes(name for names in asked.shown for name in names)
        odd = range(1, len(asked.shown) + 1) if asked.task is Task.DIFFERENCE else (0,)
        found = {}
        for step, skipped in product(STEPS_DEG, odd):
            kept = [names for i, names in enumerate(asked.shown, start=1) if i != skipped]
            off_rad = [
                float(asked.place.off_rad(boxes[name].center[:2], math.radians(step * number)))
                for number, names in enumerate(kept)
                for name in names
                if name in boxes
            ]
            found[step, skipped] = sum(max(0.0, off - HFOV_RAD / 2) for off in off_rad)
        return found


@dataclass(frozen=True)
class TaskRow:
    """A task: its words, its answer from a map, and the answers that a choice is made from.

    `looks` are the directions of the four images, unless `images` has another sentence on them.
    The subject of a question is made from a noun phrase by `phrase`, and read back by `read`.
    """

    words: str
    answer: Callable[[ViewReader, Asked, Sequence[str]], Said]
    answers: tuple[str, ...] = ()
    phrase: Callable[[str], str] = definite
    read: Callable[[str], str] = without_article
    looks: tuple[str, ...] = COMPASS[::2]
    images: str = ''

    @property
    def pattern(self) -> str:
        """Regular expression of the words."""
        return re.escape(self.words).replace(r'\{0\}', '(.+?)')


_AROUND = ('ahead', 'to the right', 'back', 'to the left')
_EACH_TURNED = 'looks ahead, and each is turned clockwise from the one before by the same angle'
TASKS: Mapping[Task, TaskRow] = {
    Task.DIRECTION: TaskRow(
        'In which direction is {0}?', ViewReader.choose_direction, COMPASS
    ),
    Task.OBJECT: TaskRow('What can be seen in the {0}?', ViewReader.choose_object, phrase=str),
    Task.COUNT: TaskRow(
        'How many {0} can be seen in all directions together?',
        ViewReader.count_seen, phrase=plural, read=singular,
    ),
    Task.ANGLE: TaskRow(
        'What is the turning angle between adjacent images?',
        ViewReader.choose_rotation, ANGLES, looks=_AROUND,
        images=f'The first of four images {_EACH_TURNED}.',
    ),
    Task.DIFFERENCE: TaskRow(
        'Which image, by its number from 1 to 5, does not belong to the sequence?',
        ViewReader.choose_rotation, looks=_AROUND,
        images=f'The first image of a sequence of four {_EACH_TURNED}; a fifth one, which looks '
        'elsewhere, was put in somewhere.',
    ),
    Task.PLACE: TaskRow(
        'Where is {0} relative to you?', ViewReader.choose_direction, SIDES, looks=_AROUND
    ),
    Task.DECISION: TaskRow(
        'What should you do in order to reach {0}?',
        ViewReader.choose_decision, DECISIONS, looks=_AROUND,
    ),
}  # fmt: skip
_ORDERS = {
    Order.CLOCKWISE: 'The four images look {0}, {1}, {2} and {3}.',
    Order.TURNED: 'The four images look {1}, {2}, {3} and {0}.',
    Order.SHUFFLED: 'The first of four images looks {0}; the order of the others is not told.',
}
_PLACE = re.compile(
    r'You stand at \((\S+), (\S+), (\S+)\) m; (?:north|ahead) is (\S+) degrees counter-clockwise '
    r'from the x axis\.'
)
_SHOWN = re.compile(r'Image \d shows ([^.]*)\.')


def put_in_words(asked: Asked, order: Order) -> str:
    """Return the question without what images show, which `list_views` adds."""
    row = TASKS[asked.task]
    x, y, z = asked.place.eye_m
    return (
        f'You stand at ({x:.2f}, {y:.2f}, {z:.2f}) m; {row.looks[0]} is '
        f'{asked.place.ahead_deg:g} degrees counter-clockwise from the x axis. '
        f'{row.images or _ORDERS[order].format(*row.looks)} '
        f'{row.words.format(row.phrase(asked.about))}'
    )


def list_views(shown: Sequence[Sequence[str]]) -> str:
    """Return in words what images show, for an answerer that reads a map and sees none."""
    lines = [f'Each image is {round(HFOV_RAD * 57.29578)} degrees wide.']
    for number, names in enumerate(shown, start=1):
        listed = ', '.join(map(definite, names)) or 'nothing that has a name'
        lines.append(f'Image {number} shows {listed}.')
    return ' '.join(lines)


def read(text: str) -> Asked | None:
    """Return the parts of a question, None if it is worded otherwise."""
    place = _PLACE.match(text)
    for task, row in TASKS.items() if place is not None else ():
        match = re.search(row.pattern, text)
        if place is not None and match is not None:
            x, y, z, ahead = map(float, place.groups())
            shown = tuple(
                tuple(without_article(x) for x in names.split(', ') if x.startswith('the '))
                for names in _SHOWN.findall(text)
            )
            about = ''.join(map(row.read, match.groups()))
            return Asked(task, Place((x, y, z), ahead), about, shown)
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
        points = None if dense is None else dense.valid_points
        graph = GraphReader.of_map(semantic_map, self._embedder)
        kept = cache(ViewReader(graph, points, ways_of_map(semantic_map)).answer)

        def answer_inquiry(item: Inquiry) -> Answer:
            asked = read(item.text)
            if asked is None:
                return Answer(item.id, None, self.name, note='the rules do not know it')
            value = kept(asked, item.options)
            note = '' if value is not None else 'the map does not say'
            if isinstance(value, str):
                value = LETTERS[item.options.index(value)]
            return Answer(item.id, value, self.name, note=note)

        return answer_inquiry
