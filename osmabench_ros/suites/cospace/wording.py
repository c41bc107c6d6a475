"""The words of questions about views around a place, read back for answers by rule."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from osmabench_ros.suites.cospace.place import HFOV_RAD, Place
from osmabench_ros.suites.cospace.published import Order, Task
from osmabench_ros.vqa.english import definite, plural, singular, without_article

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
    """What a question says: its task, where one stands, what it is about, and what images show.

    `about` is a noun phrase, a direction of COMPASS, or '' of rotation tasks; `shown` has the
    names of things in each image of those.
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
    """Return what a question says, None if it is worded otherwise."""
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
