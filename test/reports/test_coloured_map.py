import colorsys
from dataclasses import replace

import numpy as np
from support.world.box_room import LABELS
from support.world.graphs import thing
from support.world.outcomes import POINTS, SOFA, TABLE, context

from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.reports import palette
from osmabench_ros.reports.palette import HALLUCINATED, PointOutcome, assign_class_colors
from osmabench_ros.reports.pictures import graph_errors
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph

FAR = [9, 9, 9]


def test_points_get_the_colour_of_their_class_by_name():
    other = LabelSet.from_names('other', ['a', 'b', 'sofa', 'z'])
    dense = DenseMap(POINTS, labels=np.array([other.id_of('sofa'), other.id_of('z'), 65535, 1]))
    semantic_map = SemanticMap(context(POINTS, None).semantic_map.header, dense=dense)
    shown = graph_errors.color_by_class(replace(semantic_map, label_set=other), LABELS)
    colors = assign_class_colors(LABELS)
    grey = colors[UNLABELLED]
    assert [tuple(color) for color in shown.colors] == [colors[SOFA], grey, grey, grey]
    assert shown.labels.tolist() == [SOFA, UNLABELLED, UNLABELLED, UNLABELLED]
    assert graph_errors.color_by_class(semantic_map) is None, (
        'the meaning of the labels is unknown'
    )


def test_every_kind_of_error_has_its_colour():
    points = [[0, 0, 0.05], [1, 0, 0], [2, 0, 0], [3, 0, 0.2], FAR]
    shown = graph_errors.color_by_error(
        context(points, [SOFA, TABLE, UNLABELLED, SOFA, SOFA]), 0.1
    )
    kinds = (
        PointOutcome.CORRECT, PointOutcome.WRONG, PointOutcome.UNLABELLED, PointOutcome.MISSING
    )  # fmt: skip
    # The fourth map point lies 0.2 m from any surface, so it stands for nothing.
    expected = [*(item.color for item in kinds), HALLUCINATED, HALLUCINATED]
    assert [tuple(color) for color in shown.colors] == expected
    assert shown.points[-1].tolist() == FAR
    assert shown.labels.tolist()[-1] == graph_errors.HALLUCINATED_CODE
    assert (
        len(graph_errors.ERROR_COLORS)
        == len(graph_errors.ERROR_TITLES)
        == len(graph_errors.OUTCOMES) + 1
    )


def test_a_map_without_labels_is_judged_by_geometry():
    shown = graph_errors.color_by_error(context([[0, 0, 0], [1, 0, 0], FAR], None), 0.1)
    mapped, missing = PointOutcome.UNLABELLED.color, PointOutcome.MISSING.color
    assert [tuple(color) for color in shown.colors] == [
        mapped, mapped, missing, missing, HALLUCINATED,
    ]  # fmt: skip


def test_a_map_without_points_has_nothing_to_show():
    given = context(POINTS, None)
    empty = replace(given, semantic_map=replace(given.semantic_map, dense=None))
    assert graph_errors.color_by_error(empty, 0.1) is None
    assert graph_errors.color_by_class(empty.semantic_map, LABELS) is None


def graph_of(*nodes):
    """Return nodes of 1 m: id, name, x, and kind if they are no objects."""
    return SceneGraph(
        tuple(
            thing(number, name, (x, 0, 0), (1, 1, 1), kind=kind[0] if kind else NodeKind.OBJECT)
            for number, name, x, *kind in nodes
        )
    )


def test_words_outside_the_label_set_have_colours_of_their_own():
    graph = graph_of((1, 'sofa', 0), (2, 'sofa bed', 2), (3, '', 4))
    colors = graph_errors.assign_node_colors(graph, LABELS)
    assert colors[1] == assign_class_colors(LABELS)[SOFA]
    assert colors[2] == palette.name_color('sofa bed') != palette.name_color('bed sofa')
    assert colors[3] == assign_class_colors(LABELS)[UNLABELLED]
    assert graph_errors.assign_node_colors(graph, None)[1] == palette.name_color('sofa')


def test_nodes_are_right_wrong_invented_or_missed():
    true = graph_of(
        (1, 'sofa', 0), (2, 'table', 2), (3, 'cup', 4), (4, 'cup', 6), (5, 'shelf', 8),
        (6, 'floor', 10, NodeKind.BACKGROUND),
    )  # fmt: skip
    truth = replace(context(POINTS, None).ground_truth, graph=true, seen_instances=(1, 2, 3, 4, 6))
    found = graph_of(
        (10, 'sofa', 0.1), (20, 'cup', 2), (30, '', 4), (40, 'sofa', 20),
        (50, 'kitchen', 0, NodeKind.ROOM),
    )  # fmt: skip
    errors = graph_errors.find_graph_errors(found, truth)
    assert {item.id: errors.colors[item.id] for item in errors.graph.nodes} == {
        10: PointOutcome.CORRECT.color,
        20: PointOutcome.WRONG.color,
        30: PointOutcome.UNLABELLED.color,
        40: HALLUCINATED,
        41: PointOutcome.MISSING.color,
    }, 'the unseen shelf and the floor are not missed'
    assert graph_errors.find_centers(errors.graph)[41].tolist() == [6.5, 0.5, 0.5]


def test_each_outcome_has_its_share_of_the_surface():
    points = [[0, 0, 0.05], [1, 0, 0], [2, 0, 0], [3, 0, 0.2]]
    given = context(points, [SOFA, TABLE, UNLABELLED, SOFA])
    codes = graph_errors.compute_surface_outcomes(given, 0.1)
    assert graph_errors.compute_shares(codes) == dict.fromkeys(PointOutcome, 0.25)
    assert graph_errors.compute_surface_outcomes(context([[0, 0, 0]], None), 0.1) is None
    codes = graph_errors.compute_surface_outcomes(context(np.zeros((0, 3)), []), 0.1)
    assert {graph_errors.OUTCOMES[code] for code in codes} == {PointOutcome.MISSING}


def test_the_largest_distance_is_the_gate_of_the_suite():
    gated = SuiteConfig(name='osma_segmentation', options={'max_distance_m': 0.3})
    assert graph_errors.read_max_distance([gated]) == 0.3
    assert graph_errors.read_max_distance([SuiteConfig(name='map_geometry')]) == 0.1


THINGS = [f'thing {letter}' for letter in 'abcdefghijklmnopqrstuvwxyzäöü']
MANY = LabelSet.from_names('many', THINGS, structure=['floor', 'wall', 'ceiling'])


def test_every_class_has_a_colour_of_its_own():
    colors = assign_class_colors(MANY)
    assert set(colors) == {UNLABELLED, *MANY.ids.tolist()}
    assert len(set(colors.values())) == len(colors)


def test_structure_is_paler_than_things():
    def saturation(name):
        return colorsys.rgb_to_hsv(
            *(v / 255 for v in assign_class_colors(MANY)[MANY.id_of(name)])
        )[1]

    assert max(map(saturation, ['floor', 'wall', 'ceiling'])) < min(map(saturation, THINGS))


def test_ids_without_a_colour_look_unlabelled():
    colors = assign_class_colors(MANY)
    found = palette.color_labels(np.array([1, UNLABELLED, -1, 60000]), colors)
    assert found[0].tolist() == list(colors[1])
    assert (found[1:] == colors[UNLABELLED]).all()


def test_outcomes_differ_in_brightness_too():
    light = sorted(np.dot(item.color, (0.2126, 0.7152, 0.0722)) for item in PointOutcome)
    assert min(np.diff(light)) > 8
    assert palette.format_hex_color((0, 114, 178)) == '#0072b2'
