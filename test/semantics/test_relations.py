import time
from dataclasses import replace

import numpy as np
import pytest

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.semantics.cloud import close_pairs
from osmabench_ros.semantics.labels import is_structure, is_unnamed
from osmabench_ros.semantics.relations import SYMMETRIC, derive_relations, with_neighbours_within
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel


def node(node_id, low, high, label='thing', kind=NodeKind.OBJECT, parent=None):
    return SceneNode(
        node_id, kind, (ScoredLabel(label, 1.0),), box=AxisAlignedBox(low, high), parent=parent
    )


def triples(nodes, **options):
    return {(e.source, e.type, e.target) for e in derive_relations(nodes, **options)}


def sheet(low, high, step=0.02):
    """Points on an axis-aligned rectangle or box's surface, given by opposite corners."""
    axes = [
        np.arange(a, b + step / 2, step) if b > a else np.array([a])
        for a, b in zip(low, high, strict=True)
    ]
    return np.stack(np.meshgrid(*axes, indexing='ij'), axis=-1).reshape(-1, 3)


def vessel(low, high):
    """Points on the bottom and the four walls of an open box."""
    (x0, y0, z0), (x1, y1, z1) = low, high
    return np.concatenate(
        [
            sheet((x0, y0, z0), (x1, y1, z0)),
            sheet((x0, y0, z0), (x0, y1, z1)),
            sheet((x1, y0, z0), (x1, y1, z1)),
            sheet((x0, y0, z0), (x1, y0, z1)),
            sheet((x0, y1, z0), (x1, y1, z1)),
        ]
    )


FLOOR = node(90, (-5, -5, -0.1), (5, 5, 0), 'floor', NodeKind.BACKGROUND)
TABLE = node(1, (0, 0, 0), (1, 0.6, 0.75), 'table')
TABLE_POINTS = np.concatenate(
    [
        sheet((0, 0, 0.75), (1, 0.6, 0.75)),
        *(sheet((x, y, 0), (x, y, 0.72)) for x in (0.02, 0.98) for y in (0.02, 0.58)),
    ]
)


def test_cup_on_table_on_floor():
    cup = node(2, (0.4, 0.2, 0.76), (0.5, 0.3, 0.85), 'cup')
    found = triples([FLOOR, TABLE, cup])
    assert {(2, 'on', 1), (1, 'on', 90)} <= found
    assert not {t for t in found if t[1] in ('next to', 'near', 'under', 'in', 'attached to')}


@pytest.mark.parametrize(
    ('gap', 'holds'), [(0.0, True), (0.039, True), (-0.039, True), (0.05, False)]
)
def test_support_needs_a_small_gap(gap, holds):
    cup = node(2, (0.4, 0.2, 0.75 + gap), (0.5, 0.3, 0.85 + gap))
    assert ((2, 'on', 1) in triples([TABLE, cup])) is holds
    assert ((2, 'on', 1) in triples([TABLE, cup], surfaces={1: TABLE_POINTS})) is holds


@pytest.mark.parametrize(('overhang', 'holds'), [(0.0, True), (0.06, True), (0.08, False)])
def test_support_needs_a_share_of_the_footprint(overhang, holds):
    cup = node(2, (-overhang, 0.2, 0.75), (0.1 - overhang, 0.3, 0.85))
    assert ((2, 'on', 1) in triples([TABLE, cup])) is holds


def test_support_is_found_below_the_top_of_the_box():
    # A bed's headboard rises above the pillow.
    bed = node(1, (0, 0, 0), (1.6, 2.0, 1.1), 'bed')
    mattress = np.concatenate(
        [sheet((0, 0, 0.5), (1.6, 1.9, 0.5)), sheet((0, 1.95, 0), (1.6, 1.95, 1.1))]
    )
    pillow = node(2, (0.2, 1.4, 0.5), (0.8, 1.8, 0.62), 'pillow')
    assert (2, 'on', 1) in triples([bed, pillow], surfaces={1: mattress})


def test_thin_support_wins_over_what_is_below_it():
    rug = node(2, (0, 0, 0), (2, 2, 0.012), 'rug')
    table = node(3, (0.5, 0.5, 0.012), (1.5, 1.5, 0.5), 'table')
    rug_points = np.concatenate([sheet((0, 0, z), (2, 2, z)) for z in (0.0, 0.012)])
    surfaces = {90: sheet((-5, -5, 0), (5, 5, 0), 0.04), 2: rug_points}
    found = triples([FLOOR, rug, table], surfaces=surfaces)
    assert {(3, 'on', 2), (2, 'on', 90)} <= found
    assert (3, 'on', 90) not in found


def test_apple_in_bowl_not_on_it():
    bowl = node(2, (0, 0, 0.75), (0.3, 0.3, 0.85), 'bowl')
    apple = node(3, (0.1, 0.1, 0.76), (0.18, 0.18, 0.84), 'apple')
    found = triples([bowl, apple], surfaces={2: vessel((0, 0, 0.75), (0.3, 0.3, 0.85))})
    assert (3, 'in', 2) in found
    assert (3, 'on', 2) not in found


def test_book_in_open_shelf():
    shelf = node(1, (0, 0, 0), (0.8, 0.3, 1.0), 'bookshelf')
    boards = [sheet((0, 0, z), (0.8, 0.3, z)) for z in (0.0, 0.5, 1.0)]
    sides = [sheet((x, 0, 0), (x, 0.3, 1.0)) for x in (0.0, 0.8)]
    back = sheet((0, 0.3, 0), (0.8, 0.3, 1.0))
    book = node(2, (0.3, 0.05, 0.5), (0.5, 0.25, 0.7), 'book')
    found = triples([shelf, book], surfaces={1: np.concatenate([*boards, *sides, back])})
    assert (2, 'in', 1) in found
    assert (2, 'under', 1) not in found


def test_stool_under_table_not_in_it():
    stool = node(2, (0.35, 0.15, 0), (0.65, 0.45, 0.45), 'stool')
    found = triples([TABLE, stool], surfaces={1: TABLE_POINTS})
    assert (2, 'under', 1) in found
    assert (2, 'in', 1) not in found


def test_under_is_not_said_of_what_stands_on_the_cover():
    stool = node(2, (0.35, 0.15, 0), (0.65, 0.45, 0.45), 'stool')
    lamp = node(3, (0.3, 0.1, 0.75), (0.7, 0.5, 1.1), 'lamp')
    surfaces = {1: TABLE_POINTS, 3: sheet((0.3, 0.1, 0.8), (0.7, 0.5, 0.8))}
    found = triples([TABLE, stool, lamp], surfaces=surfaces)
    assert (2, 'under', 1) in found
    assert (2, 'under', 3) not in found


WALL = node(80, (-2, 2, 0), (2, 2.1, 2.5), 'wall', NodeKind.BACKGROUND)


def test_painting_attached_to_the_wall_it_touches_most():
    side = node(81, (2, -2, 0), (2.1, 2, 2.5), 'wall', NodeKind.BACKGROUND)
    painting = node(2, (1.3, 1.96, 1.4), (1.99, 2.0, 1.9), 'painting')
    found = triples([WALL, side, painting])
    assert (2, 'attached to', 80) in found
    assert (2, 'attached to', 81) not in found


def test_lamp_attached_to_the_ceiling_but_cupboard_on_floor_is_not():
    ceiling = node(82, (-5, -5, 2.5), (5, 5, 2.6), 'ceiling', NodeKind.BACKGROUND)
    lamp = node(2, (0, 0, 2.2), (0.3, 0.3, 2.49), 'lamp')
    cupboard = node(3, (-1, 1.4, 0), (0, 1.99, 1.8), 'cupboard')
    found = triples([FLOOR, WALL, ceiling, lamp, cupboard])
    assert (2, 'attached to', 82) in found
    assert not {t for t in found if t[0] == 3 and t[1] == 'attached to'}
    assert not {t for t in found if t[0] in (80, 82, 90)}


def test_a_wall_is_a_part_of_the_building_whatever_kind_of_node_it_is():
    wall = replace(WALL, kind=NodeKind.OBJECT)
    found = triples([FLOOR, wall, node(3, (0, 1.7, 0), (0.5, 1.95, 0.5), 'box')])
    assert found
    assert not {t for t in found if t[0] == 80}


def test_wall_merged_into_one_thing_attaches_by_points():
    # One instance for all walls: its box holds the whole room.
    walls = node(80, (-3, -3, 0), (3, 3, 2.5), 'wall', NodeKind.BACKGROUND)
    surfaces = {80: sheet((-3, 3, 0), (3, 3, 2.5), 0.03)}
    clock = node(2, (0, 2.95, 1.8), (0.3, 2.99, 2.1), 'clock')
    balloon = node(3, (0, 0, 1.8), (0.3, 0.3, 2.1), 'balloon')
    found = triples([walls, clock, balloon], surfaces=surfaces)
    assert (2, 'attached to', 80) in found
    assert not {t for t in found if t[0] == 3}


@pytest.mark.parametrize(
    ('gap', 'relation'),
    [(0.1, 'next to'), (0.29, 'next to'), (0.31, 'near'), (0.79, 'near'), (0.81, None)],
)
def test_neighbours_by_distance_and_both_ways(gap, relation):
    first = node(1, (0, 0, 0), (1, 1, 1))
    second = node(2, (1 + gap, 0, 0), (2 + gap, 1, 1))
    expected = set() if relation is None else {(1, relation, 2), (2, relation, 1)}
    assert triples([first, second]) == expected
    assert {r.value for r in SYMMETRIC} == {'next to', 'near'}


def test_things_at_other_heights_are_near_not_next_to():
    cup = node(1, (0, 0, 0.75), (0.1, 0.1, 0.85))
    bin_ = node(2, (0.2, 0, 0), (0.5, 0.3, 0.8))
    assert triples([cup, bin_]) == {(1, 'near', 2), (2, 'near', 1)}


def test_no_neighbours_through_a_wall():
    rooms = [
        node(r, (x, 0, 0), (x + 5, 5, 2.5), 'room', NodeKind.ROOM)
        for r, x in ((70, -5), (71, 0.1))
    ]
    first = node(1, (-0.5, 1, 0), (-0.1, 2, 1), parent=70)
    second = node(2, (0.1, 1, 0), (0.5, 2, 1), parent=71)
    assert triples([*rooms, first, second]) == {(1, 'part of', 70), (2, 'part of', 71)}


def test_room_is_found_by_position_where_no_parent_says():
    rooms = [
        node(70, (0, 0, 0), (9, 9, 2.5), 'flat', NodeKind.ROOM),
        node(71, (0, 0, 0), (3, 3, 2.5), 'bath', NodeKind.ROOM),
    ]
    found = triples([*rooms, node(1, (1, 1, 0), (2, 2, 1)), node(2, (5, 5, 0), (6, 6, 1))])
    assert found == {(1, 'part of', 71), (2, 'part of', 70)}


def test_order_of_nodes_and_turning_and_shifting_the_world_change_nothing():
    rng = np.random.default_rng(5)
    low = rng.uniform(0, 3, (40, 3)) * [1, 1, 0.3]
    boxes = list(enumerate(zip(low, low + rng.uniform(0.05, 0.5, (40, 3)), strict=True), start=1))
    edges = derive_relations([node(i, *corners) for i, corners in boxes])
    assert len(edges) > 20
    shuffled = [boxes[row] for row in rng.permutation(40)]
    assert derive_relations([node(i, *corners) for i, corners in shuffled]) == edges
    turned = [
        node(i, (-b[1] + 4, a[0] - 2, a[2]), (-a[1] + 4, b[0] - 2, b[2])) for i, (a, b) in boxes
    ]
    assert derive_relations(turned) == edges


def test_nodes_without_box_and_no_nodes():
    assert derive_relations([]) == ()
    assert derive_relations([SceneNode(1), TABLE.__class__(2)]) == ()


def test_close_pairs_equals_all_pairs():
    rng = np.random.default_rng(1)
    low = rng.uniform(0, 10, (120, 3))
    high = low + rng.uniform(0, 2, (120, 3))
    gaps = np.maximum(low[:, None] - high, low - high[:, None]).max(axis=2)
    expected = np.argwhere(np.triu(gaps <= 0.5, 1))
    np.testing.assert_array_equal(np.column_stack(close_pairs(low, high, 0.5)), expected)


def test_hundreds_of_objects_take_seconds():
    rng = np.random.default_rng(2)
    low = rng.uniform(0, 30, (800, 3)) * [1, 1, 0.08]
    nodes = [node(i + 1, a, a + rng.uniform(0.05, 0.8, 3)) for i, a in enumerate(low)]
    start = time.process_time()
    derive_relations(nodes)
    assert time.process_time() - start < 5


def test_painting_that_sinks_into_the_wall_hangs_on_it():
    wall = node(80, (-2, 1.95, 0), (2, 2.1, 2.5), 'wall', NodeKind.BACKGROUND)
    painting = node(2, (1.3, 1.93, 1.4), (1.9, 2.0, 1.9), 'painting')
    surfaces = {80: sheet((-2, 1.95, 0), (2, 1.95, 2.5))}
    assert triples([wall, painting], surfaces=surfaces) == {(2, 'attached to', 80)}


def test_shoes_on_the_lower_board_of_a_rack_on_legs():
    rack = node(1, (0, 0, 0), (0.8, 0.3, 0.5), 'rack')
    boards = [sheet((0, 0, z), (0.8, 0.3, z)) for z in (0.18, 0.5)]
    legs = [
        sheet((x, y, 0), (x + 0.025, y + 0.025, 0.5), 0.0125)
        for x in (0, 0.775)
        for y in (0, 0.275)
    ]
    shoes = node(2, (0.3, 0.02, 0.18), (0.5, 0.28, 0.32), 'shoes')
    found = triples([rack, shoes], surfaces={1: np.concatenate([*boards, *legs])})
    assert found == {(2, 'on', 1)}


SEAT = node(1, (0, 0, 0), (2, 0.9, 0.8), 'sofa')
SEAT_POINTS = np.concatenate(
    [
        sheet((0, 0, 0.4), (2, 0.7, 0.4)),
        sheet((0, 0.7, 0.4), (2, 0.7, 0.8)),
        sheet((0, 0.7, 0.8), (2, 0.9, 0.8)),
    ]
)


def hidden_by(box, points, room=0.01):
    """Take away the points below an object."""
    inside = (
        (points[:, :2] > box.minimum[:2] - room) & (points[:, :2] < box.maximum[:2] + room)
    ).all(axis=1)
    return points[~inside | (points[:, 2] > box.maximum[2])]


def test_a_thing_stands_on_the_surface_that_it_hides():
    cushion = node(2, (0.3, 0.1, 0.4), (0.7, 0.5, 0.55), 'cushion')
    seen = hidden_by(cushion.box, SEAT_POINTS)
    assert (2, 'on', 1) in triples([SEAT, cushion], surfaces={1: SEAT_POINTS})
    # Neither the top of the box nor the points below the object say so any more.
    assert (2, 'on', 1) not in triples([SEAT, cushion])
    assert (2, 'on', 1) not in triples([SEAT, cushion], surfaces={1: seen})
    assert (2, 'on', 1) in triples([SEAT, cushion], surfaces={1: seen}, occluded=True)
    floating = node(2, (0.3, 0.1, 0.5), (0.7, 0.5, 0.65), 'cushion')
    assert (2, 'on', 1) not in triples([SEAT, floating], surfaces={1: seen}, occluded=True)


def test_a_shelf_holds_what_hides_its_back_and_a_sofa_does_not():
    shelf = node(1, (0, 0, 0), (1, 0.3, 0.8), 'shelf')
    boards = np.concatenate([sheet((0, 0, z), (1, 0.3, z)) for z in (0.0, 0.4, 0.8)])
    book = node(2, (0.4, 0.05, 0.4), (0.6, 0.25, 0.65), 'book')
    found = triples([shelf, book], surfaces={1: boards}, occluded=True)
    assert (2, 'in', 1) in found
    assert (2, 'in', 1) not in triples([shelf, book], surfaces={1: boards})
    cushion = node(2, (0.3, 0.1, 0.4), (0.7, 0.5, 0.55), 'cushion')
    seen = hidden_by(cushion.box, SEAT_POINTS)
    found = triples([SEAT, cushion], surfaces={1: seen}, occluded=True)
    assert (2, 'in', 1) not in found


def test_neighbours_at_the_edge_of_a_threshold_change_with_it():
    things = [node(i, (x, 0, 0), (x + 0.1, 0.1, 0.5)) for i, x in ((1, 0.0), (2, 0.38), (3, 1.2))]
    graph = SceneGraph(tuple(things), derive_relations(things))
    kinds = {
        shift: {(e.source, e.target): e.type for e in with_neighbours_within(graph, shift).edges}
        for shift in (-0.05, 0.0, 0.05)
    }
    assert kinds[0.0] == {(e.source, e.target): e.type for e in graph.edges}
    assert (kinds[0.0][1, 2], kinds[-0.05][1, 2], kinds[0.05][1, 2]) == (
        'next to', 'near', 'next to'
    )  # fmt: skip
    assert kinds[0.0][2, 3] == 'near'
    assert kinds[-0.05][2, 3] == 'near'
    assert (2, 3) not in {(e.source, e.target) for e in with_neighbours_within(graph, -0.1).edges}


@pytest.mark.parametrize(
    'name', ['wall', 'Bathroom_Wall', 'door', 'door frame', 'room window', 'FLOOR']
)
def test_structure(name):
    assert is_structure(name)


@pytest.mark.parametrize(
    'name', ['cabinet door', 'wall clock', 'floor lamp', 'window curtain', 'table', '']
)
def test_things(name):
    assert not is_structure(name)


def test_unnamed():
    assert is_unnamed('Unknown')
    assert is_unnamed('')
    assert not is_unnamed('cup')
