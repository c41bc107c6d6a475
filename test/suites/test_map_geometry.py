from dataclasses import replace

import numpy as np
import pytest
from support.figures import assert_values, figures

from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.suites.map_geometry import MapGeometrySuite
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite


def evaluate(context, **options):
    return figures(MapGeometrySuite(options=options), context, 'metric', 'class_name')


def test_a_faultless_map_covers_everything(context):
    found = evaluate(context)
    assert_values(found, coverage=1.0, hallucinated_volume_m3=0.0, missed_volume_m3=0.0)
    # The map's points lie on the surface; the spacing of samples is not an error.
    assert found['accuracy_m', ''].value < 0.002
    assert found['normal_consistency', ''].value > 0.99
    assert found['coverage', 'room kitchen'].n == found['coverage', ''].n
    assert not found['chamfer_m', ''].higher_is_better
    assert found['f_score_0.1m', ''].higher_is_better


def test_a_missing_table_shows_in_its_class_and_in_the_missed_volume(context, with_map):
    table = context.semantic_map.dense.labels == context.ground_truth.label_set.id_of('table')
    found = evaluate(with_map(valid=~table))
    assert_values(found, 'table', coverage=0.0)
    assert_values(found, 'floor', coverage=1.0)
    # Two square metres in one layer of cells of 0.1 m.
    assert_values(found, missed_volume_m3=pytest.approx(0.2, rel=0.15))
    assert not found['accuracy_m', 'table'].applicable


def test_classes_and_rooms_have_the_figures_of_the_whole(context, with_map):
    points = context.semantic_map.dense.points.copy()
    floor = context.semantic_map.dense.labels == context.ground_truth.label_set.id_of('floor')
    points[np.flatnonzero(floor)[:100], 2] += 1.45
    found = evaluate(with_map(points=points))
    room, made_up = 'room kitchen', found['hallucinated_volume_m3', ''].value
    for name in ('chair', 'table', 'floor', room):
        for metric in (
            *('coverage', 'accuracy_m', 'completeness_m', 'chamfer_m', 'f_score_0.1m'),
            *('hallucinated_volume_m3', 'missed_volume_m3', 'normal_consistency'),
        ):
            assert found[metric, name].applicable, (metric, name)
    assert made_up > 0
    # All that was made up is floor, and lies in the only room.
    for name in ('floor', room):
        assert_values(found, name, hallucinated_volume_m3=made_up)
        assert found['accuracy_m', name].value > 0.002
    assert_values(found, 'table', **{'hallucinated_volume_m3': 0.0, 'f_score_0.1m': 1.0})
    assert found['f_score_0.1m', 'floor'].value < 1.0
    assert found['normal_consistency', 'table'].value > 0.99
    both = (found[metric, 'floor'].value for metric in ('accuracy_m', 'completeness_m'))
    assert_values(found, 'floor', chamfer_m=pytest.approx(sum(both) / 2))


def test_figures_of_classes_that_a_map_without_labels_cannot_have_are_not_applicable(with_map):
    found = evaluate(with_map(labels=None, instances=None, graph=SceneGraph()))
    assert_values(found, 'table', coverage=1.0)
    for metric in ('accuracy_m', 'chamfer_m', 'hallucinated_volume_m3', 'f_score_0.1m'):
        assert not found[metric, 'table'].applicable
        assert found[metric, 'room kitchen'].applicable


def test_completing_what_was_not_seen_is_no_error_but_inventing_is(context, ground_truth):
    table = ground_truth.surface.labels == ground_truth.label_set.id_of('table')
    unseen = replace(
        ground_truth,
        surface=ground_truth.surface.select(~table),
        unseen=ground_truth.surface.select(table),
    )
    assert evaluate(replace(context, ground_truth=unseen))['precision_0.1m', ''].value == 1.0
    nothing = ground_truth.surface.select(np.zeros(len(table), bool))
    invented = replace(unseen, unseen=nothing)
    found = evaluate(replace(context, ground_truth=invented))
    assert found['precision_0.1m', ''].value == pytest.approx(1 - table.mean(), abs=1e-3)
    assert found['hallucinated_volume_m3', ''].value == pytest.approx(0.2, rel=0.15)


def remarks(with_map, points):
    mapped = with_map(labels=None, instances=None, points=points)
    case = replace(mapped, remarks=[])
    evaluate(case, normal_samples=0)
    return case.remarks


def test_copies_of_right_points_that_hide_wrong_ones_have_a_remark(context, with_map):
    rng = np.random.default_rng(0)
    points = context.semantic_map.dense.points.copy()
    wrong = rng.random(len(points)) < 0.1
    points[wrong] += rng.normal(0, 0.2, (int(wrong.sum()), 3)).astype(np.float32)
    right = np.flatnonzero(~wrong)[::2]
    assert not remarks(with_map, points)
    crowded = np.concatenate([points, *[points[right]] * 10])
    texts = remarks(with_map, crowded)
    assert ['points crowd where the map is right' in text for text in texts] == [True, True]


def test_layers_of_points_that_hide_an_error_of_3_cm_have_a_remark(context, with_map):
    rng = np.random.default_rng(0)
    points = context.semantic_map.dense.points.copy()
    low = points[:, 2] < 0.01
    points[~low] += rng.choice([-0.03, 0.03], (int((~low).sum()), 3)).astype(np.float32)
    assert not remarks(with_map, points)
    layers = [points[low] + np.float32([0, 0, 0.002 * step]) for step in range(9)]
    [text] = remarks(with_map, np.concatenate([points, *layers]))
    assert 'within 0.02 m' in text


def test_a_map_without_points_is_not_applicable_and_an_empty_one_covers_nothing(
    context, perfect_map, with_map
):
    bare = evaluate(replace(context, semantic_map=replace(perfect_map, dense=None)))
    assert not any(item.applicable for item in bare.values())
    empty = np.zeros(0, np.int32)
    found = evaluate(with_map(points=np.zeros((0, 3), np.float32), labels=empty, instances=empty))
    assert_values(found, **{'coverage': 0.0, 'f_score_0.1m': 0.0})
    assert not found['accuracy_m', ''].applicable
    assert not found['chamfer_m', ''].applicable


def test_a_labeller_is_asked_once_for_all_suites_that_need_classes(asking, perfect_map):
    case, asked = asking(lambda _: 'floor')
    found = evaluate(case)
    OsmaSegmentationSuite(options={}).evaluate(case)
    # Strict figures share one answer; compat offers the classes of the scene, as published.
    assert asked == [['chair', 'floor', 'lamp', 'table'], ['chair', 'floor', 'table']]
    assert found['accuracy_m', 'floor'].n == len(perfect_map.dense.points)
    assert not found['accuracy_m', 'table'].applicable
