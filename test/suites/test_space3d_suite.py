"""Space3D-Bench's kinds of questions about a small flat whose answers are known by hand."""

import dataclasses

import numpy as np
import pytest
from support.world.graphs import as_map, ground_truth_of, thing

from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.relations import derive_relations
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph
from osmabench_ros.suites.space3d.suite import SPACE3D
from osmabench_ros.suites.suite import SuiteContext, make_suite
from osmabench_ros.vqa.answering.rule import RuleAnswerer
from osmabench_ros.vqa.exact.generation import questions_about
from osmabench_ros.vqa.kinds import QueryKind
from osmabench_ros.vqa.questions import AnswerType, Inquiry, SpatialCategory
from osmabench_ros.vqa.wording import parsed

# A wall parts the flat of 8.2 m x 4 m; its doorway is from y = 0 to DOOR_Y.
WALL_X, DOOR_Y = (4.0, 4.2), 1.2


def in_room(room_id, *box):
    return dataclasses.replace(thing(*box), parent=room_id)


def flat():
    """Return two rooms: a table with four stools in a row, and a bed, a shelf and a chest."""
    nodes = [
        thing(1, 'floor', (0, 0, -0.1), (8.2, 4, 0.1), kind=NodeKind.BACKGROUND),
        thing(50, 'living room', (0, 0, 0), (4, 4, 2.5), kind=NodeKind.ROOM),
        thing(51, 'bedroom', (4.2, 0, 0), (4, 4, 2.5), kind=NodeKind.ROOM),
        in_room(50, 3, 'table', (0, 2.85, 0), (1.6, 1.15, 0.7)),
        *(in_room(50, 4 + i, 'stool', (0.05 + 0.4 * i, 2.4, 0), (0.35, 0.4, 0.5))
          for i in range(4)),
        in_room(51, 9, 'bed', (6.0, 2.8, 0), (2.0, 1.0, 0.5)),
        in_room(51, 10, 'chest', (4.6, 3.0, 0), (0.6, 0.5, 0.4)),
        in_room(50, 11, 'television', (0.2, 3.2, 0.7), (0.8, 0.2, 0.5)),
    ]  # fmt: skip
    return SceneGraph(tuple(nodes), derive_relations(nodes))


def surface(graph):
    """Return points on the floor, on the parting wall and on the sides of things, 2.5 cm apart."""
    step = 0.025

    def rectangle(low, high):
        axes = [np.arange(a, b + step / 2, step) for a, b in zip(low, high, strict=True)]
        return np.stack(np.meshgrid(*axes, indexing='ij'), -1).reshape(-1, 3)

    parts = [rectangle((0, 0, 0), (8.2, 4, 0))]
    parts += [rectangle((x, DOOR_Y, 0), (x, 4, 2)) for x in WALL_X]
    for node in graph.of_kind(NodeKind.OBJECT):
        low, high = node.box.minimum, node.box.maximum
        parts += [rectangle((x, low[1], low[2]), (x, high[1], high[2])) for x in (low[0], high[0])]
        parts += [rectangle((low[0], y, low[2]), (high[0], y, high[2])) for y in (low[1], high[1])]
        parts.append(rectangle((*low[:2], high[2]), high))
    return np.concatenate(parts).astype(np.float32)


def cloud(points):
    none = np.zeros(len(points), np.int32)
    return LabelledCloud(points, none, none)


@pytest.fixture(scope='module')
def truth():
    graph = flat()
    names = {node.label for node in graph.nodes if node.kind is not NodeKind.ROOM}
    labels = LabelSet.from_names('t', names, structure=('floor',))
    objects = [node.id for node in graph.nodes if node.kind is not NodeKind.ROOM]
    return ground_truth_of(
        graph, cloud(surface(graph)), scene='flat', label_set=labels, seen_instances=tuple(objects)
    )


def perfect_map(truth):
    return as_map(truth.graph, truth.label_set, DenseMap(truth.surface.points))


@pytest.fixture(scope='module')
def asked(truth):
    return questions_about(truth, scene='flat', seed=2, count=120, asked=SPACE3D)


def said(truth, text, answer_type=AnswerType.NUMBER):
    (answer,) = RuleAnswerer().answer(perfect_map(truth), [Inquiry('q', text, answer_type)])
    return answer.value


def test_each_of_the_six_kinds_is_asked(asked):
    assert {item.category for item in asked} == {kind.value for kind in SpatialCategory}
    assert {item.suite for item in asked} == {'space3d'}
    kinds = {parsed(item.text).kind for item in asked}
    new = {QueryKind.CENTER, QueryKind.SAME_ROOM, QueryKind.COUNT_WITH, QueryKind.ROOM_AREA,
           QueryKind.WALK, QueryKind.WALK_CLOSER, QueryKind.ROUND, QueryKind.ALIKE,
           QueryKind.ROW, QueryKind.FITS_ON}  # fmt: skip
    assert new - kinds <= {QueryKind.ALIKE, QueryKind.ROW}, 'only yes and no in pairs are asked'


@pytest.mark.parametrize(('text', 'right'), [
    ('Are the table and the bed in the same room?', 'no'),
    ('Are the chest and the bed in the same room?', 'yes'),
    ('How many stools are in the room with the table?', 4),
    ('How many stools are in the room with the bed?', 0),
    ('What is the floor area in square metres of the room with the bed?', 16.0),
    ('How many stools stand right next to the table?', 4),
    ('Are all stools of the scene equally tall?', 'yes'),
    ('Do all stools of the scene stand in one straight line?', 'yes'),
    ('Would the television fit on top of the chest without jutting out?', 'no'),
    ('Would the chest fit on top of the bed without jutting out?', 'yes'),
    ('What are the coordinates of the centre of the bed in metres?', (7.0, 3.3, 0.25)),
    ('Which is the shorter way for a robot from the bed: to the chest or to the table?', 'chest'),
    ('Is the room with the table about as large as the room with the bed?', 'yes'),
    ('Which would fit on top of the bed without jutting out: the table or the chest?', 'chest'),
    # The doorway is at small y: on the left of who drives towards -x.
    ('Does the shortest way for a robot from the bed to the table lie left or right of the '
     'straight line?', 'left'),
    ('On the shortest way for a robot from the table to the bed, to which side does it turn off '
     'the straight line, left or right?', 'right'),
])  # fmt: skip
def test_answers_are_those_of_the_flat(text, right, truth):
    assert said(truth, text) == right


@pytest.mark.parametrize(('x', 'right'), [(7.9, 'yes'), (7.6, 'no'), (6.2, 'no')])
def test_things_stand_symmetrically_that_are_mirror_images_about_the_middle(x, right, truth):
    # The middle of the bed is at x = 7; from 7.9 to 6.1 it is as far on both sides.
    pair = (thing(60 + i, 'plant', (left - 0.1, 2.0, 0), (0.2, 0.2, 0.4))
            for i, left in enumerate((6.1, x)))  # fmt: skip
    graph = dataclasses.replace(truth.graph, nodes=(*truth.graph.nodes, *pair))
    asked = 'Do the two plants of the scene stand symmetrically about the bed?'
    assert said(dataclasses.replace(truth, graph=graph), asked) == right


def test_no_way_is_asked_for_through_a_closed_wall(truth):
    y = np.arange(0, DOOR_Y, 0.02)
    closing = np.stack(np.meshgrid(WALL_X, y, np.arange(0, 2, 0.02), indexing='ij'), -1)
    points = [truth.surface.points, closing.reshape(-1, 3).astype(np.float32)]
    shut = dataclasses.replace(truth, surface=cloud(np.concatenate(points)))
    asked = questions_about(shut, scene='flat', seed=2, count=60, asked=SPACE3D)
    ways_m = [item.answer for item in asked if parsed(item.text).kind is QueryKind.WALK]
    assert ways_m
    assert max(ways_m) < 5, 'only the larger room can be reached, and ends are moved to it'


def test_a_map_without_points_is_not_asked_for_ways(truth, tmp_path):
    bare = dataclasses.replace(perfect_map(truth), dense=None)
    suite = make_suite('space3d', {'count': 60, 'embedding': 'off'})
    found = suite.evaluate(SuiteContext('flat', bare, truth))
    by_category = {r.class_name: r for r in found if r.metric == 'accuracy'}
    assert not by_category['navigation'].applicable
    served = next(r for r in found if r.metric == 'accuracy_served')
    assert (served.value, served.n < by_category[''].n) == (1.0, True)


def test_a_perfect_map_is_right_and_so_is_the_ceiling(truth):
    suite = make_suite('space3d', {'count': 90})
    found = suite.evaluate(SuiteContext('flat', perfect_map(truth), truth))
    overall = {r.metric: r for r in found if not r.class_name}
    assert overall['accuracy'].value == overall['ceiling_ground_truth'].value == 1.0
    assert overall['baseline_random_labels'].value < 0.7
    assert {r.suite for r in found} == {'space3d'}


def test_the_same_seed_asks_the_same_and_another_set_of_questions_has_other_ids(truth, asked):
    again = questions_about(truth, scene='flat', seed=2, count=120, asked=SPACE3D)
    assert again == asked
    usual = questions_about(truth, scene='flat', seed=2, count=120)
    assert not {item.id for item in usual} & {item.id for item in asked}
    assert all(item.suite == 'exact_questions' for item in usual)
