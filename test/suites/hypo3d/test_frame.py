"""The world frame of anchors, and directions in it."""

import math

import numpy as np
import pytest
from support.world.scenes import furnished_room

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.suites.hypo3d.frame import (
    Side,
    WorldFrame,
    choose_anchors,
    frame_of,
    read_anchors,
    say_anchors,
)
from osmabench_ros.vqa.answering.execution import GraphReader

GRAPH = build_ground_truth_graph(furnished_room())
NAMES = {node.id: node.label for node in GRAPH.nodes if node.label not in ('floor', 'wall')}


def cube(x, y):
    return AxisAlignedBox(np.array([x - 0.1, y - 0.1, 0]), np.array([x + 0.1, y + 0.1, 1]))


def test_the_bulkiest_named_thing_at_each_side_is_its_anchor():
    assert read_anchors(choose_anchors(GRAPH, NAMES)) == {
        Side.FRONT: 'bed',
        Side.LEFT: 'desk',
        Side.BACK: 'sofa',
        Side.RIGHT: 'shelf',
    }
    without = {key: name for key, name in NAMES.items() if name != 'bed'}
    assert Side.FRONT not in read_anchors(choose_anchors(GRAPH, without))


@pytest.mark.parametrize('front', Side)
def test_a_graph_with_the_anchors_has_the_frame_that_they_were_chosen_in(front):
    sides = list(Side)
    turn = sides.index(front)
    known = read_anchors(choose_anchors(GRAPH, NAMES))
    anchors = {sides[(i + turn) % 4]: known[side] for i, side in enumerate(sides)}
    frame = frame_of(GraphReader(GRAPH), say_anchors(anchors))
    np.testing.assert_allclose(frame.axis(front), [1, 0, 0], atol=1e-12)
    # One anchor is enough, and none is not.
    one = frame_of(GraphReader(GRAPH), say_anchors({Side.BACK: anchors[Side.BACK]}))
    assert math.cos(one.front_rad - frame.front_rad) == pytest.approx(1)
    assert frame_of(GraphReader(GRAPH), 'the piano at the front') is None


@pytest.mark.parametrize(
    ('bearing_deg', 'expected'),
    [
        (0, 'front'),
        (13, 'front'),
        (16, ''),
        (29, ''),
        (32, 'front left'),
        (90, 'left'),
        (135, 'back left'),
        (180, 'back'),
        (-135, 'back right'),
        (-90, 'right'),
        (-45, 'front right'),
    ],
)
def test_directions_have_a_dead_band_between_them(bearing_deg, expected):
    bearing = math.radians(bearing_deg)
    thing = cube(2 * math.cos(bearing), 2 * math.sin(bearing))
    assert WorldFrame(0.0).direction(thing, cube(0, 0)) == expected
    # In a frame that is turned with the thing, it is the same.
    turned = cube(2 * math.cos(bearing + math.pi / 2), 2 * math.sin(bearing + math.pi / 2))
    assert WorldFrame(math.pi / 2).direction(turned, cube(0, 0)) == expected


def test_what_is_close_has_no_direction():
    assert WorldFrame(0.0).direction(cube(0.29, 0), cube(0, 0)) == ''
    assert WorldFrame(0.0).direction(cube(0.31, 0), cube(0, 0)) == 'front'
