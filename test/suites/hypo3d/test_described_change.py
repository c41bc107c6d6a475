"""Changes in words, the frame of their anchors, and how both change a graph."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from support.world.scenes import furnished_room

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.scenes.changes import Changes, apply_changes
from osmabench_ros.scenes.ground_truth import build_ground_truth_graph
from osmabench_ros.suites.hypo3d.described_change import (
    ChangeType,
    DescribedChange,
    apply_to_graph,
    find_touched_nodes,
    read_change,
)
from osmabench_ros.suites.hypo3d.frame import (
    Side,
    WorldFrame,
    choose_anchors,
    frame_of,
    read_anchors,
    say_anchors,
)
from osmabench_ros.vqa.answering.execution import GraphReader
from osmabench_ros.vqa.knowledge import knowledge

FACING = say_anchors({Side.FRONT: 'bed', Side.LEFT: 'desk'})
MOVED = DescribedChange(ChangeType.MOVEMENT, 'stool', '', Side.BACK, 0.8, FACING)
REMOVED = DescribedChange(ChangeType.REMOVAL, 'plant')
PAINTED = DescribedChange(ChangeType.ATTRIBUTE, 'sofa', color='green')
ADDED = DescribedChange(ChangeType.ADDITION, 'stool', 'chair', Side.RIGHT, 1.2, FACING)
REPLACED = DescribedChange(ChangeType.REPLACEMENT, 'plant', 'stool')
PAIRS = [
    (MOVED, {'kind': 'move', 'object': 'stool_11', 'offset_m': [-0.8, 0, 0]}),
    (REMOVED, {'kind': 'remove', 'object': 'plant_12'}),
    (PAINTED, {'kind': 'recolor', 'object': 'sofa_7', 'color': 'green'}),
    (ADDED, {'kind': 'add', 'name': 'new', 'like': 'stool_11', 'position_m': [1.0, 0.0, 0.0]}),
    (REPLACED, {'kind': 'replace', 'object': 'plant_12', 'like': 'stool_11'}),
]


def test_sentences_describe_the_change():
    assert MOVED.sentence == (
        'With the bed at the front and the desk at the left, the stool has been moved 0.8 m to '
        'the back.'
    )
    assert ADDED.sentence == (
        'With the bed at the front and the desk at the left, a stool like the one that is there '
        'has been added, 1.2 m to the right of the chair.'
    )
    assert REMOVED.sentence == 'The plant has been removed.'


@given(data=st.data())
def test_sentences_about_all_objects_are_read_back(data):
    names = [data.draw(st.sampled_from(sorted(knowledge().household))) for _ in range(4)]
    facing = say_anchors({Side.FRONT: names[2], Side.LEFT: names[3]})
    for said, _ in PAIRS:
        assert read_change(said.sentence) == said
        changed = replace(
            said, thing=names[0], other=said.other and names[1], facing=said.facing and facing
        )
        assert read_change(changed.sentence) == changed


def test_other_sentences_are_not_read():
    assert read_change('The plant is sad.') is None
    assert read_change('') is None


@pytest.mark.parametrize(('said', 'change'), PAIRS, ids=lambda item: getattr(item, 'type', ''))
def test_by_rule_a_graph_changes_as_that_of_the_meshes(said, change):
    scene = furnished_room()
    before = build_ground_truth_graph(scene)
    changes = TypeAdapter(Changes).validate_python([change])
    expected = build_ground_truth_graph(apply_changes(scene, changes))
    found = apply_to_graph(GraphReader(before), said)
    assert found.by_id.keys() == expected.by_id.keys()
    for key, node in expected.by_id.items():
        assert found.by_id[key].label == node.label
        assert found.by_id[key].attributes.get('color') == node.attributes.get('color')
        np.testing.assert_allclose(found.by_id[key].box.center, node.box.center, atol=1e-6)
        np.testing.assert_allclose(found.by_id[key].box.size, node.box.size, atol=1e-6)
    edges = [{(e.source, e.type, e.target) for e in g.edges} for g in (found, expected)]
    assert edges[0] == edges[1]
    changed = {
        key
        for key in before.by_id.keys() | expected.by_id.keys()
        if describe(before.by_id.get(key)) != describe(expected.by_id.get(key))
    }
    assert find_touched_nodes(before, found) == changed != set()


def describe(node):
    return node and (node.attributes, node.box.center.round(6).tolist())


def test_a_graph_that_lacks_the_thing_is_not_changed():
    graph = build_ground_truth_graph(furnished_room())
    for said in (
        DescribedChange(ChangeType.REMOVAL, 'piano'),
        DescribedChange(ChangeType.REPLACEMENT, 'plant', 'piano'),
        DescribedChange(ChangeType.MOVEMENT, 'stool', side=Side.BACK, number=1.0),
    ):
        assert apply_to_graph(GraphReader(graph), said) is None


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
