"""The world frame of Hypo3D: front, back, left and right of a scene, by objects at its sides."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.vqa.answering.execution import GraphAnswer, GraphReader, SilentError
from osmabench_ros.vqa.english import definite, without_article
from osmabench_ros.vqa.kinds import Kind, Query
from osmabench_ros.vqa.questions import AnswerType, Category

# This close to the border between two of eight directions there is no direction.
DEAD_BAND_RAD = math.radians(8.0)

# Centres that are closer than this in plan have no direction from each other.
NEAREST_M = 0.3

# An anchor is at most 35 degrees from the axis of its side, as seen from the scene's middle.
_ANCHOR_COS = math.cos(math.radians(35.0))


class Side(str, Enum):
    """Where an anchor is, and the four main directions, counter-clockwise from above."""

    FRONT = 'front'
    LEFT = 'left'
    BACK = 'back'
    RIGHT = 'right'

    @property
    def turn_rad(self) -> float:
        """The heading of a side, where the front has 0."""
        return tuple(Side).index(self) * math.pi / 2


# Names of the sectors, clockwise from the front of a scene or of a person, each 45 degrees wide.
SIDES = ('front', 'front right', 'right', 'back right', 'back', 'back left', 'left', 'front left')


@dataclass(frozen=True)
class WorldFrame:
    """Directions in a scene: `front_rad` is the heading of its front, a multiple of 90 degrees."""

    front_rad: float

    def axis(self, side: Side) -> NDArray[np.float64]:
        """Return the unit vector (3,) towards a side of the scene, in the world."""
        heading = self.front_rad + side.turn_rad
        return np.array([round(math.cos(heading)), round(math.sin(heading)), 0.0])

    def direction(self, thing: AxisAlignedBox, origin: AxisAlignedBox) -> str:
        """Return where an object is as seen from another, by their centres in plan.

        It is 'front', 'back', 'left', 'right' or two of them, the first one of front or back, each
        45 degrees wide; '' within DEAD_BAND_RAD of a border, or closer than NEAREST_M.
        """
        offset = (thing.center - origin.center)[:2]
        turns = (math.atan2(offset[1], offset[0]) - self.front_rad) / (math.pi / 4)
        sector = round(turns)
        is_clear = abs(turns - sector) * math.pi / 4 <= math.pi / 8 - DEAD_BAND_RAD
        return SIDES[-sector % 8] if is_clear and np.linalg.norm(offset) >= NEAREST_M else ''


def _find_bounds(graph: SceneGraph) -> AxisAlignedBox:
    """Return the box around all objects of a graph except rooms."""
    boxes = [n.box for n in graph.nodes if n.box is not None and n.kind is not NodeKind.ROOM]
    return AxisAlignedBox.holding(boxes or [AxisAlignedBox(np.zeros(3), np.zeros(3))])


def choose_anchors(graph: SceneGraph, names: Mapping[int, str]) -> str:
    """Choose objects at the sides of a scene, from which directions follow, and name them.

    For each side where there is one it is the bulkiest of the nodes with `names` that is within
    35 degrees of it and in the outer half, seen from the scene's middle; the front is the world's
    +x.
    """
    bounds = _find_bounds(graph)
    boxes = {key: box for key in names if (box := graph.by_id[key].box) is not None}
    anchors = {}
    for side in Side:
        axis = WorldFrame(0.0).axis(side)[:2]
        reach = abs(float(axis @ bounds.size[:2])) / 4
        outer = []
        for key, box in boxes.items():
            offset = (box.center - bounds.center)[:2]
            if axis @ offset > max(reach, float(np.linalg.norm(offset)) * _ANCHOR_COS):
                outer.append((box.volume, -key))
        if outer:
            anchors[side] = names[-max(outer)[1]]
    return say_anchors(anchors)


def frame_of(reader: GraphReader, facing: str) -> WorldFrame | None:
    """Return the frame in which a graph has named anchors at their sides, None if it has none.

    Of the four frames, a quarter turn apart, it fits the bearings of the anchors best.
    """
    middle = _find_bounds(reader.graph).center
    turn = 0j
    for side, name in read_anchors(facing).items():
        node = reader.named(name)
        if node is not None and node.box is not None:
            x, y, _ = node.box.center - middle
            turn += np.exp(1j * (math.atan2(y, x) - side.turn_rad))
    quarters = round(float(np.angle(turn)) / (math.pi / 2))
    return WorldFrame(quarters * math.pi / 2) if turn else None


_ANCHOR = re.compile(r'(the .+?) at the (front|left|back|right)(?: and |$)')


def say_anchors(anchors: Mapping[Side, str]) -> str:
    """Return anchors in words, e.g. 'the bed at the front and the desk at the left'."""
    return ' and '.join(f'{definite(name)} at the {side.value}' for side, name in anchors.items())


def read_anchors(facing: str) -> dict[Side, str]:
    """Return the anchors that `say_anchors` says."""
    return {Side(side): without_article(name) for name, side in _ANCHOR.findall(facing)}


def _find_direction(g: GraphReader, query: Query) -> GraphAnswer:
    thing, origin = (node.box if node else None for node in map(g.named, query.phrases))
    frame = frame_of(g, query.word)
    found = frame.direction(thing, origin) if frame and thing and origin else ''
    if not found:
        raise SilentError('the map gives no clear direction')
    return GraphAnswer(found)


# Where an object is as seen from another, in the frame of the anchors in the word.
DIRECTION = Kind('direction', Category.RELATIONS_SPATIAL, AnswerType.TEXT, _find_direction)(
    'With {facing}, in which direction is {0:the} as seen from {1:the}?'
)
