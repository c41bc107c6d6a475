"""Views around a place: bearings, seen objects, words of questions, and their answers by rule."""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.suites.cospace.published import Order, Task
from osmabench_ros.suites.hypo3d.frame import DEAD_BAND_RAD, NEAREST_M
from osmabench_ros.vqa.answering.answerer import OneByOne
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.answering.ways import FloorWays, ways_of_map
from osmabench_ros.vqa.english import definite, plural, singular, without_article
from osmabench_ros.vqa.graph_index import Embedder
from osmabench_ros.vqa.questions import LETTERS, Answer, Inquiry

HFOV_RAD = math.radians(100.0)
"""Width of an image: more than a quarter turn, so that four of them overlap all around."""

SECTORS = 8
_SECTOR_RAD = math.tau / SECTORS

_LEG_M = 0.8
"""Of this much of a way at its start and at its end the direction is taken."""

_SHORTEST_M = 1.2
_STRAIGHT_RAD = math.radians(30.0)
_TURN_RAD = math.radians(60.0), math.radians(120.0)
_QUADRANT_BAND_RAD = math.radians(12.0)

_CELL_RAD = math.radians(3.0)
_HALF = 60
_LEAST_CELLS = 2
_GROWN_M = 0.03


def wrapped(angle_rad: float) -> float:
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

    def bearing(self, point_m: ArrayLike) -> float:
        """Return how far clockwise from ahead a point (>= 2,) is, in [-pi, pi)."""
        x, y = (np.asarray(point_m, np.float64)[:2] - self.eye_m[:2]).tolist()
        return wrapped(math.radians(self.ahead_deg) - math.atan2(y, x))

    def sector(self, box: AxisAlignedBox) -> int | None:
        """Return the sector, clockwise from ahead, of the centre of a box.

        None within DEAD_BAND_RAD of a border between sectors, or closer than NEAREST_M.
        """
        if math.dist(box.center[:2], self.eye_m[:2]) < NEAREST_M:
            return None
        turns = self.bearing(box.center) / _SECTOR_RAD
        off = abs(turns - round(turns)) * _SECTOR_RAD
        return None if off > _SECTOR_RAD / 2 - DEAD_BAND_RAD else round(turns) % SECTORS

    def off_sector_rad(self, box: AxisAlignedBox, sector: int) -> float:
        """Return the angle between the centre of a box and the middle of a sector."""
        return abs(wrapped(self.bearing(box.center) - sector * _SECTOR_RAD))

    def is_outside(self, box: AxisAlignedBox, sector: int) -> bool:
        """Return whether all of a box is outside of a sector and of the dead band around it."""
        low, high = box.minimum, box.maximum
        if (low[:2] <= self.eye_m[:2]).all() and (self.eye_m[:2] <= high[:2]).all():
            return False
        edge = [
            (x, y)
            for t in np.linspace(0.0, 1.0, 9).tolist()
            for x, y in (
                (low[0] + t * (high[0] - low[0]), low[1]),
                (low[0] + t * (high[0] - low[0]), high[1]),
                (low[0], low[1] + t * (high[1] - low[1])),
                (high[0], low[1] + t * (high[1] - low[1])),
            )
        ]
        middle, reach = sector * _SECTOR_RAD, _SECTOR_RAD / 2 + DEAD_BAND_RAD
        return all(abs(wrapped(self.bearing(point) - middle)) > reach for point in edge)

    def outside_view_rad(self, box: AxisAlignedBox, clockwise_rad: float) -> float:
        """Return by how much the centre of a box is next to an image, 0 within it."""
        off = abs(wrapped(self.bearing(box.center) - clockwise_rad))
        return max(0.0, off - HFOV_RAD / 2)

    def nearest(self, points_m: NDArray[np.floating]) -> NDArray[np.float64]:
        """Return the nearest of points (M, 3) in each direction, a cell of 3 degrees, (N, 3)."""
        offset = np.asarray(points_m, np.float64) - self.eye_m
        distance = np.maximum(np.linalg.norm(offset, axis=1), 1e-9)
        columns = np.floor(np.arctan2(offset[:, 1], offset[:, 0]) / _CELL_RAD + _HALF)
        rows = np.floor(np.arcsin(offset[:, 2] / distance) / _CELL_RAD + _HALF)
        # The nearest comes last, and stays.
        order = np.argsort(-distance)
        cells = np.full((2 * _HALF + 1, 2 * _HALF + 1), -1)
        cells[rows.astype(np.int64)[order], columns.astype(np.int64)[order]] = order
        return np.asarray(np.asarray(points_m, np.float64)[cells[cells >= 0]])


def is_seen(box: AxisAlignedBox, nearest_m: NDArray[np.float64]) -> bool:
    """Return whether a box holds the nearest points of at least two directions."""
    return int(box.contains(nearest_m, _GROWN_M).sum()) >= _LEAST_CELLS


AHEAD, AHEAD_LEFT, AHEAD_RIGHT = 'go ahead', 'go ahead and turn left', 'go ahead and turn right'
_TURNED = {1: 'turn right and go ahead', 2: 'turn back and go ahead', 3: 'turn left and go ahead'}
DECISIONS = (AHEAD, *_TURNED.values(), AHEAD_LEFT, AHEAD_RIGHT)
"""What one can do to reach a thing; of each way at most one is right."""


def decision(place: Place, line_m: NDArray[np.float64]) -> str:
    """Return which of DECISIONS clearly leads along a way (N, 2 or 3) from a place, '' for none.

    The directions of the first and the last 0.8 m count. Ways shorter than 1.2 m are not clear,
    nor those that begin within 12 degrees of the border between two quarters.
    """
    found = _measure_turn(place, line_m)
    if found is None or found[2] < _SHORTEST_M:
        return ''
    first, turn, _ = found
    quarter = round(first / (math.pi / 2)) % 4
    off = abs(wrapped(first - quarter * math.pi / 2))
    if off > math.pi / 4 - _QUADRANT_BAND_RAD:
        return ''
    if abs(turn) <= _STRAIGHT_RAD:
        return _TURNED.get(quarter, AHEAD)
    if quarter == 0 and _TURN_RAD[0] <= abs(turn) <= _TURN_RAD[1]:
        return AHEAD_RIGHT if turn > 0 else AHEAD_LEFT
    return ''


def likeliest_decision(
    place: Place, line_m: NDArray[np.float64], options: Sequence[str]
) -> str | None:
    """Return the option with directions that a way begins and ends in with the least turning."""
    found = _measure_turn(place, line_m)
    if found is None:
        return None
    first, turn, _ = found

    def measure_turning(option: str) -> float:
        if option in (AHEAD_LEFT, AHEAD_RIGHT):
            side = 1 if option == AHEAD_RIGHT else -1
            return abs(first) + abs(wrapped(turn - side * math.pi / 2))
        quarter = next((key for key, name in _TURNED.items() if name == option), 0)
        return abs(wrapped(first - quarter * math.pi / 2)) + abs(turn)

    return min((item for item in options if item in DECISIONS), key=measure_turning, default=None)


def _measure_turn(place: Place, line_m: NDArray[np.float64]) -> tuple[float, float, float] | None:
    """Return the bearing at which a way begins, by how much it turns, and its length in metres."""
    legs = np.linalg.norm(np.diff(line_m[:, :2], axis=0), axis=1)
    length = float(legs.sum())
    if length < 1e-6:
        return None
    start = _follow_line(line_m, legs, min(_LEG_M, length)) - line_m[0, :2]
    end = line_m[-1, :2] - _follow_line(line_m, legs, max(0.0, length - _LEG_M))
    here = np.asarray(place.eye_m[:2])
    first, last = place.bearing(here + start), place.bearing(here + end)
    return wrapped(first), wrapped(last - first), length


def _follow_line(
    line_m: NDArray[np.float64], legs: NDArray[np.float64], way_m: float
) -> NDArray[np.float64]:
    """Return the point (2,) after a length of a way."""
    at = np.concatenate([[0.0], np.cumsum(legs)])
    return np.array([np.interp(way_m, at, line_m[:, axis]) for axis in range(2)])


COMPASS = (
    'north', 'northeast', 'east', 'southeast', 'south', 'southwest', 'west', 'northwest',
)  # fmt: skip
SIDES = (
    'front', 'front right', 'right', 'back right', 'back', 'back left', 'left', 'front left',
)  # fmt: skip
"""Names of the sectors, clockwise from north or from the front of who stands there."""

STEPS_DEG = (30, 60)
"""Turning angles between adjacent images of the rotation tasks."""

ANGLES = tuple(f'{step} degrees' for step in STEPS_DEG)

_FACING_NORTH = frozenset((Task.DIRECTION, Task.OBJECT, Task.COUNT))
_ORDERS = {
    Order.CLOCKWISE: 'The four images look {0}, {1}, {2} and {3}.',
    Order.TURNED: 'The four images look {1}, {2}, {3} and {0}.',
    Order.SHUFFLED: 'The first of four images looks {0}; the order of the others is not told.',
}
_LOOKS = {True: COMPASS[::2], False: ('ahead', 'to the right', 'back', 'to the left')}
_SEQUENCES = {
    Task.ANGLE: 'The first of four images looks ahead, and each is turned clockwise from the one '
    'before by the same angle.',
    Task.DIFFERENCE: 'The first image of a sequence of four looks ahead, and each is turned '
    'clockwise from the one before by the same angle; a fifth one, which looks elsewhere, was put '
    'in somewhere.',
}
_ASKED = {
    Task.DIRECTION: 'In which direction is {0}?',
    Task.OBJECT: 'What can be seen in the {0}?',
    Task.COUNT: 'How many {0} can be seen in all directions together?',
    Task.ANGLE: 'What is the turning angle between adjacent images?',
    Task.DIFFERENCE: 'Which image, by its number from 1 to 5, does not belong to the sequence?',
    Task.PLACE: 'Where is {0} relative to you?',
    Task.DECISION: 'What should you do in order to reach {0}?',
}
_PHRASED: Mapping[Task, Callable[[str], str]] = {
    Task.DIRECTION: definite, Task.PLACE: definite, Task.DECISION: definite, Task.COUNT: plural,
}  # fmt: skip
_PLACE = re.compile(
    r'You stand at \((\S+), (\S+), (\S+)\) m; (?:north|ahead) is (\S+) degrees counter-clockwise '
    r'from the x axis\.'
)
_SHOWN = re.compile(r'Image \d shows ([^.]*)\.')


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


def worded(asked: Asked, order: Order) -> str:
    """Return the question without what images show, which `views_in_words` adds."""
    north = asked.task in _FACING_NORTH
    x, y, z = asked.place.eye_m
    shown = _SEQUENCES.get(asked.task) or _ORDERS[order].format(*_LOOKS[north])
    phrased = _PHRASED.get(asked.task)
    about = asked.about if phrased is None else phrased(asked.about)
    return (
        f'You stand at ({x:.2f}, {y:.2f}, {z:.2f}) m; {"north" if north else "ahead"} is '
        f'{asked.place.ahead_deg:g} degrees counter-clockwise from the x axis. {shown} '
        f'{_ASKED[asked.task].format(about)}'
    )


def views_in_words(shown: Sequence[Sequence[str]]) -> str:
    """Return in words what images show, for an answerer that reads a map and sees none."""
    lines = [f'Each image is {round(HFOV_RAD * 57.29578)} degrees wide.']
    for number, names in enumerate(shown, start=1):
        listed = ', '.join(map(definite, names)) or 'nothing that has a name'
        lines.append(f'Image {number} shows {listed}.')
    return ' '.join(lines)


def read(text: str) -> Asked | None:
    """Return the parts of a question, None if it is worded otherwise."""
    place = _PLACE.match(text)
    if place is None:
        return None
    x, y, z, ahead = map(float, place.groups())
    stood = Place((x, y, z), ahead)
    for task, asked in _ASKED.items():
        match = re.search(re.escape(asked).replace(r'\{0\}', '(.+?)'), text)
        if match is None:
            continue
        about = match[1] if match.groups() else ''
        about = singular(about) if task is Task.COUNT else without_article(about)
        listed = (names.split(', ') for names in _SHOWN.findall(text))
        shown = tuple(
            tuple(without_article(name) for name in names if name.startswith('the '))
            for names in listed
        )
        return Asked(task, stood, about, shown)
    return None


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
        self._reader, self._points_m, self._ways = reader, points_m, ways
        self._nearest: dict[Place, NDArray[np.float64]] = {}

    def answer(self, asked: Asked, options: Sequence[str]) -> Said:
        """Return the map's answer to a question, None if it has none."""
        return _RULES[asked.task](self, asked, options)

    def box_of(self, phrase: str) -> AxisAlignedBox | None:
        """Return the box that a phrase fits best."""
        node = self._reader.named(phrase)
        return None if node is None else node.box

    def _answer_direction(self, asked: Asked, options: Sequence[str]) -> Said:
        box = self.box_of(asked.about)
        names = COMPASS if asked.task is Task.DIRECTION else SIDES
        if box is None:
            return None
        return min(options, key=lambda name: asked.place.off_sector_rad(box, names.index(name)))

    def _answer_object(self, asked: Asked, options: Sequence[str]) -> Said:
        sector = COMPASS.index(asked.about)
        found = {name: box for name in options if (box := self.box_of(name)) is not None}
        off = {name: asked.place.off_sector_rad(box, sector) for name, box in found.items()}
        return min(off, key=lambda name: off[name], default=None)

    def _count(self, asked: Asked, options: Sequence[str]) -> Said:
        del options
        if self._points_m is None:
            return None
        nodes = self._reader.all_named(asked.about)
        place = asked.place
        if place not in self._nearest:
            self._nearest[place] = place.nearest(self._points_m)
        boxes = [node.box for node in nodes if node.box is not None]
        return sum(is_seen(box, self._nearest[place]) for box in boxes)

    def _choose_decision(self, asked: Asked, options: Sequence[str]) -> Said:
        box = self.box_of(asked.about)
        if box is None or self._ways is None:
            return None
        line = self._ways.line_m(asked.place.eye_m, box.center)
        return None if line is None else likeliest_decision(asked.place, line, options)

    def violations(self, asked: Asked) -> dict[tuple[int, int], float]:
        """Return the misfit of each step in degrees and odd image, 0 for none, to the images.

        It is the sum of the angles by which named objects are outside the images that show them.
        """
        boxes = {name: self.box_of(name) for names in asked.shown for name in names}
        odd = range(1, len(asked.shown) + 1) if asked.task is Task.DIFFERENCE else (0,)
        return {
            (step, skipped): sum(
                asked.place.outside_view_rad(box, np.radians(step * number))
                for number, names in enumerate(_skip_image(asked.shown, skipped))
                for name in names
                if (box := boxes[name]) is not None
            )
            for step, skipped in product(STEPS_DEG, odd)
        }

    def _answer_rotation(self, asked: Asked, options: Sequence[str]) -> Said:
        del options
        if not any(self.box_of(name) is not None for names in asked.shown for name in names):
            return None
        found = self.violations(asked)
        step, odd = min(found, key=lambda key: (found[key], key))
        return odd or ANGLES[STEPS_DEG.index(step)]


def _skip_image(shown: Sequence[Sequence[str]], number: int) -> list[Sequence[str]]:
    """Return what images show without one of them, by its number from 1; 0 leaves all."""
    return [names for i, names in enumerate(shown, start=1) if i != number]


_RULES: Mapping[Task, Callable[[ViewReader, Asked, Sequence[str]], Said]] = {
    Task.DIRECTION: ViewReader._answer_direction,
    Task.OBJECT: ViewReader._answer_object,
    Task.COUNT: ViewReader._count,
    Task.ANGLE: ViewReader._answer_rotation,
    Task.DIFFERENCE: ViewReader._answer_rotation,
    Task.PLACE: ViewReader._answer_direction,
    Task.DECISION: ViewReader._choose_decision,
}


class RuleOfViews(OneByOne):
    """Reads the place and the question, and looks around in the recorded map from there.

    A choice is answer_inquiry with its letter.
    """

    def __init__(self, embedder: Embedder | None = None) -> None:
        self._embedder = embedder

    def answering(self, semantic_map: SemanticMap) -> Callable[[Inquiry], Answer]:
        """Return the answerer of a map; to it, questions that only differ in images are one."""
        dense = semantic_map.dense
        points = None if dense is None else dense.valid_points
        graph = GraphReader.of_map(semantic_map, self._embedder)
        reader = ViewReader(graph, points, ways_of_map(semantic_map))
        kept = cache(reader.answer)

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
