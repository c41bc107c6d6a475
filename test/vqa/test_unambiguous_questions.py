"""What people could answer in two ways is not asked."""

import numpy as np
import pytest
from support.world.graphs import ground_truth_of, living_room, seen, thing

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneEdge, SceneGraph
from osmabench_ros.vqa.exact.generation import candidates, generate_questions, questions_about
from osmabench_ros.vqa.exact.view import SceneView, find_glimpsed_instances
from osmabench_ros.vqa.kinds import QueryKind
from osmabench_ros.vqa.wording import parsed

FLOOR = thing(900, 'floor', (-20, -20, -0.1), (40, 40, 0.1), kind=NodeKind.BACKGROUND)


def graph_of(*nodes, edges=()):
    return SceneGraph((FLOOR, *nodes), tuple(SceneEdge(*edge) for edge in edges))


def queries(graph, *kinds, glimpsed=()):
    """Return (phrases, word or number, answer) of all that may be asked of some kinds."""
    view = SceneView(graph, seen(graph) - set(glimpsed), glimpsed)
    drafts = {draft.query: draft for seed in range(8) for draft in candidates(view, seed, 1000)}
    return [
        (query.phrases, query.word or query.number, draft.answer)
        for query, draft in drafts.items()
        if query.kind in kinds
    ]


TABLE = thing(1, 'table', (0, 0, 0), (1.5, 1, 0.7))
BOOK = thing(2, 'book', (0.1, 0.1, 0.7), (0.2, 0.2, 0.05), color='red')
REMOTE = thing(3, 'remote control', (0.8, 0.8, 0.7), (0.2, 0.05, 0.02))


def test_a_glimpsed_thing_makes_no_count_but_those_it_does_not_change():
    lamps = [thing(i, 'stool', (3 * i, 4, 0), (0.5, 0.5, 0.6)) for i in (4, 5)]
    graph = graph_of(TABLE, *lamps)
    counted = {p[0]: a for p, _, a in queries(graph, QueryKind.COUNT)}
    assert (counted['stool'], counted['table']) == (2, 1)
    counted = {p[0]: a for p, _, a in queries(graph, QueryKind.COUNT, glimpsed=[5])}
    assert 'stool' not in counted
    assert counted['table'] == 1


def test_a_glimpsed_rival_makes_a_name_ambiguous():
    first = thing(4, 'stool', (3, 4, 0), (0.5, 0.5, 0.6), color='red')
    second = thing(5, 'stool', (6, 4, 0), (0.5, 0.5, 0.6), color='green')
    heights = queries(graph_of(TABLE, first, second), QueryKind.HEIGHT, glimpsed=[5])
    assert {p[0] for p, _, _ in heights} == {'table', 'red stool'}


@pytest.mark.parametrize('glimpsed', [2, 3])
def test_a_glimpsed_thing_on_a_table_leaves_no_sole_thing_there(glimpsed):
    kinds = (QueryKind.RELATED_TO, QueryKind.SUPPORTED_BY)
    graph = graph_of(TABLE, BOOK, REMOTE, edges=[(2, 1, 'on'), (3, 1, 'on')])
    assert not queries(graph, *kinds, glimpsed=[glimpsed])
    assert queries(graph_of(TABLE, BOOK, edges=[(2, 1, 'on')]), *kinds)


def test_what_bears_something_glimpsed_is_not_said_to_be_bare():
    graph = graph_of(TABLE, BOOK, thing(4, 'bench', (5, 0, 0), (1, 1, 0.5)), edges=[(2, 1, 'on')])
    kinds = (QueryKind.LOADED, QueryKind.UNLOADED)
    assert {p[0] for p, _, _ in queries(graph, *kinds)} == {'table', 'bench'}
    assert 'table' not in {p[0] for p, _, _ in queries(graph, *kinds, glimpsed=[2])}


def test_glimpsed_is_what_shows_a_point_and_what_stands_on_or_in_something_seen():
    chair = thing(4, 'chair', (5, 5, 0), (0.5, 0.5, 1))
    graph = graph_of(TABLE, BOOK, REMOTE, chair, edges=[(2, 1, 'on'), (3, 1, 'on')])
    instances = np.array([1, 2, 4], np.int32)
    cloud = LabelledCloud(np.zeros((3, 3), np.float32), np.zeros(3, np.int32), instances)
    labels = LabelSet.from_names('t', {n.label for n in graph.nodes}, structure=('floor',))
    truth = ground_truth_of(
        graph, cloud, unseen=cloud, label_set=labels, seen_instances=(1, 2, 900)
    )
    asked = [parsed(q.text) for q in questions_about(truth, scene='s', seed=0)]
    assert asked
    assert not [q for q in asked if q.kind in (QueryKind.RELATED_TO, QueryKind.SUPPORTED_BY)]
    assert not [q for q in asked if 'chair' in q.phrases], 'one point is no view of a chair'


def test_books_in_a_shelf_are_on_it_too():
    shelf = thing(1, 'bookshelf', (0, 0, 0), (1, 0.4, 1.2))
    vase = thing(2, 'vase', (0.2, 0.1, 1.2), (0.2, 0.2, 0.3))
    inside = thing(3, 'book', (0.2, 0.1, 0.5), (0.2, 0.2, 0.2))
    kinds = (
        QueryKind.RELATED_TO, QueryKind.SUPPORTED_BY, QueryKind.LOADED, QueryKind.AFFORDS_ON,
    )  # fmt: skip
    with_vase = queries(graph_of(shelf, vase, edges=[(2, 1, 'on')]), *kinds)
    assert (('bookshelf',), 'on', 'vase') in with_vase
    assert (('bookshelf',), 'opened', 'no') in with_vase
    both = queries(graph_of(shelf, vase, inside, edges=[(2, 1, 'on'), (3, 1, 'in')]), *kinds)
    assert not [item for item in both if item[1] == 'on']
    assert (('bookshelf',), 'opened', 'no') not in both
    only_inside = queries(graph_of(shelf, inside, edges=[(3, 1, 'in')]), QueryKind.LOADED)
    assert not only_inside


def test_what_hangs_is_not_to_be_carried_away():
    lamp = thing(4, 'chandelier', (3, 0, 1.2), (0.8, 0.8, 0.5))
    ceiling = thing(5, 'ceiling', (-9, -9, 1.7), (18, 18, 0.1), kind=NodeKind.BACKGROUND)
    kinds = (QueryKind.LOADED, QueryKind.UNLOADED)
    for edges, expected in (([], {'table', 'chandelier'}), ([(4, 5, 'attached to')], {'table'})):
        graph = graph_of(TABLE, BOOK, lamp, ceiling, edges=[(2, 1, 'on'), *edges])
        assert {p[0] for p, _, _ in queries(graph, *kinds)} == expected


def test_only_what_is_known_as_closed_has_to_be_opened():
    inside = thing(2, 'bowl', (0.1, 0.1, 0.5), (0.2, 0.2, 0.1))
    for attributes, expected in (({}, []), ({'state': 'closed'}, [(('bowl',), '', 'cabinet')])):
        cabinet = thing(1, 'cabinet', (0, 0, 0), (1, 0.5, 1.5), **attributes)
        found = queries(graph_of(cabinet, inside, edges=[(2, 1, 'in')]), QueryKind.OPEN_FIRST)
        assert [(p, word or '', answer) for p, word, answer in found] == expected


def test_robots_drive_over_rugs_and_not_through_what_stands_between():
    sofa = thing(1, 'sofa', (0, 0, 0), (1, 2, 0.8))
    table = thing(2, 'table', (2.5, 0, 0), (1, 2, 0.7))
    rug = thing(3, 'rug', (0.5, 0, 0), (2, 2, 0.02))
    gaps = queries(graph_of(sofa, table, rug), QueryKind.PASSABLE)
    assert {frozenset(p) for p, _, _ in gaps} == {frozenset(('sofa', 'table'))}
    stool = thing(4, 'stool', (1.5, 1, 0), (0.4, 0.4, 0.5))
    gaps = queries(graph_of(sofa, table, stool), QueryKind.PASSABLE)
    assert frozenset(('sofa', 'table')) not in {frozenset(p) for p, _, _ in gaps}
    wall = thing(5, 'wall', (1.6, -5, 0), (0.1, 10, 2.5), kind=NodeKind.BACKGROUND)
    assert not queries(graph_of(sofa, table, wall), QueryKind.PASSABLE)
    house = thing(6, 'wall', (-20, -20, 0), (40, 40, 2.5), kind=NodeKind.BACKGROUND)
    assert queries(graph_of(sofa, table, house), QueryKind.PASSABLE), 'one mesh of all walls'


def test_free_space_that_a_ceiling_may_end_is_not_asked_about():
    tall = thing(1, 'wardrobe', (0, 0, 0), (1, 1, 2.1))
    low = thing(2, 'bench', (5, 0, 0), (1, 1, 0.5))
    lamp = thing(3, 'chandelier', (10, 0, 1.9), (1, 1, 0.6))
    ceiling = thing(4, 'ceiling', (-9, -9, 2.5), (30, 30, 0.1), kind=NodeKind.BACKGROUND)
    graph = graph_of(tall, low, lamp, ceiling, edges=[(3, 4, 'attached to')])
    open_air = queries(graph_of(tall, low, lamp), QueryKind.CLEARANCE)
    assert {p[0] for p, _, answer in open_air if answer == 'yes'} == {
        'wardrobe', 'bench', 'chandelier'
    }  # fmt: skip
    assert {p[0] for p, _, _ in queries(graph, QueryKind.CLEARANCE)} == {'bench'}


def test_higher_up_is_asked_only_where_feet_and_top_agree():
    wardrobe = thing(1, 'wardrobe', (0, 0, 0), (1, 1, 2.4))
    bowl = thing(2, 'bowl', (3, 0, 0.5), (0.2, 0.2, 0.1))
    picture = thing(3, 'picture', (6, 0, 2.5), (0.5, 0.1, 0.5))
    kinds = (QueryKind.WHICH_MORE, QueryKind.IS_MORE)
    found = queries(graph_of(wardrobe, bowl, picture), *kinds)
    higher = {frozenset(p) for p, word, _ in found if word == 'higher up'}
    assert frozenset(('wardrobe', 'bowl')) not in higher
    assert frozenset(('bowl', 'picture')) in higher


def test_closer_is_asked_only_where_centres_and_surfaces_agree():
    origin = thing(1, 'globe', (0, 0, 0), (0.4, 0.4, 0.4))
    long_side = thing(2, 'sofa', (0.6, -3, 0), (1, 9, 0.8))
    small = thing(3, 'stool', (1.0, 0, 0), (0.3, 0.3, 0.5))
    far = thing(4, 'bench', (9, 0, 0), (1, 1, 0.5))
    found = queries(graph_of(origin, long_side, small, far), QueryKind.CLOSER)
    pairs = {(frozenset(p[:2]), p[2]) for p, _, _ in found}
    assert (frozenset(('stool', 'bench')), 'globe') in pairs
    assert (frozenset(('stool', 'sofa')), 'globe') not in pairs


def test_a_lamp_over_a_sofa_is_not_said_to_be_near_it():
    sofa = thing(1, 'sofa', (0, 0, 0), (2, 1, 0.8))
    lamp = thing(2, 'chandelier', (0.5, 0, 2), (0.5, 0.5, 0.5))
    stool = thing(3, 'stool', (2.5, 0, 0), (0.4, 0.4, 0.5))
    bed = thing(4, 'bed', (9, 9, 0), (2, 2, 0.5))
    graph = graph_of(sofa, lamp, stool, bed, edges=[(1, 2, 'near'), (1, 3, 'near')])
    near = queries(graph, QueryKind.RELATED)
    assert {frozenset(p) for p, _, answer in near if answer == 'yes'} == {
        frozenset(('sofa', 'stool'))
    }
    assert {answer for _, _, answer in near} == {'yes', 'no'}


def test_things_of_several_colours_have_none():
    plant = thing(1, 'plant', (0, 0, 0), (0.5, 0.5, 1), color='brown', material='ceramic')
    chair = thing(2, 'chair', (3, 0, 0), (0.5, 0.5, 1), color='red', material='wood')
    kinds = (QueryKind.COLOR_OF, QueryKind.HAS_COLOR, QueryKind.MATERIAL_OF)
    assert {p[0] for p, _, _ in queries(graph_of(plant, chair), *kinds)} == {'chair'}


def test_usable_neighbours_that_some_would_use_otherwise_make_no_no():
    sofa = thing(1, 'sofa', (0, 0, 0), (2, 1, 0.8))
    chair = thing(2, 'chair', (2.3, 0, 0), (0.5, 0.5, 1))
    bed = thing(3, 'bed', (-2.3, 0, 0), (2, 1, 0.5))
    lamp = thing(4, 'floor lamp', (0, 1.2, 0), (0.3, 0.3, 1.6))

    def near(*edges):
        graph = graph_of(sofa, chair, bed, lamp, edges=edges)
        found = queries(graph, QueryKind.AFFORDS_NEAR)
        return {word: answer for p, word, answer in found if p == ('sofa',)}

    assert near((4, 1, 'next to'), (2, 1, 'next to'))['sat on'] == 'yes'
    assert near((4, 1, 'next to'))['sat on'] == 'no'
    assert 'sat on' not in near((4, 1, 'next to'), (2, 1, 'near')), 'almost next to it'
    assert 'sat on' not in near((4, 1, 'next to'), (3, 1, 'next to')), 'some sit on beds'


def test_labels_are_spelt_as_people_spell_them_and_answers_match():
    nodes = (
        thing(1, 'tvcabinet', (0, 0, 0), (1.5, 0.5, 0.5)),
        thing(2, 'airconditioner', (4, 0, 0), (0.5, 0.5, 1.8)),
        thing(3, 'fitness equipment', (8, 0, 0), (1, 1, 1)),
    )
    asked = generate_questions(
        SceneView(graph_of(*nodes), {1, 2, 3}), scene='s', seed=0, count=300
    )
    texts = ' '.join(q.text for q in asked)
    assert 'tvcabinet' not in texts
    assert 'airconditioner' not in texts
    assert 'tv cabinet' in texts
    assert 'pieces of fitness equipment' in texts
    winners = {q.answer for q in asked if parsed(q.text).kind is QueryKind.WHICH_MORE}
    assert 'air conditioner' in winners


def test_a_pair_of_classes_is_joined_once_for_yes_and_once_for_no():
    graph = living_room()
    asked = generate_questions(SceneView(graph, seen(graph)), scene='s', seed=0, count=3000)
    pairs = [(parsed(q.text).phrases, q.answer) for q in asked if q.category == 'Binary Logical']
    assert len(pairs) > 50
    assert len(pairs) == len(set(pairs))


def _plane(x, width, height, step=0.05):
    """Return points on a rectangle across the x axis, around it."""
    y, z = np.meshgrid(np.arange(-width / 2, width / 2, step), np.arange(0, height, step))
    return np.stack([np.full(y.size, x), y.ravel(), z.ravel()], axis=1).astype(np.float32)


@pytest.mark.parametrize(('wall_x', 'glimpsed'), [(None, {4}), (5.0, set())])
def test_glimpsed_is_what_shows_from_afar_and_not_what_a_wall_hides(wall_x, glimpsed):
    nodes = (thing(4, 'chair', (9, -0.5, 0), (0.5, 1, 1)), thing(5, 'bed', (-9, 0, 0), (1, 1, 1)))
    parts = [(_plane(9.0, 1, 1), 4), (_plane(-9.0, 1, 1), 5)]
    if wall_x is not None:
        parts.append((_plane(wall_x, 12, 4), 900))
    points = np.concatenate([part for part, _ in parts])
    ids = np.concatenate([np.full(len(part), number, np.int32) for part, number in parts])
    # The camera stands at the origin, a metre high, and looks along x.
    ahead = Pose(np.array([[0, 0, 1], [-1, 0, 0], [0, -1, 0]], float), np.array([0, 0, 1.0]))
    graph = graph_of(*nodes)
    labels = LabelSet.from_names('t', {n.label for n in graph.nodes}, structure=('floor',))
    unseen = LabelledCloud(points, np.zeros_like(ids), ids)
    truth = ground_truth_of(
        graph, label_set=labels, unseen=unseen, camera_poses=(ahead,), seen_instances=(900,)
    )
    assert find_glimpsed_instances(truth) == glimpsed
