from dataclasses import replace

import numpy as np
import pytest
from support.figures import figures

from osmabench_ros.errors import ConfigError, MetricError
from osmabench_ros.metrics.confusion import read_confusions
from osmabench_ros.metrics.segmentation import score_scenes
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.suites.osma_segmentation import OsmaSegmentationSuite


def evaluate(context, **options):
    return figures(OsmaSegmentationSuite(options=options), context)


def test_a_faultless_map_scores_one(context):
    found = evaluate(context)
    for mode in ('compat', 'strict'):
        assert found[mode, 'macc', ''].value == pytest.approx(1.0, abs=2e-3)
    assert found['strict', 'iou', 'table'].value == pytest.approx(1.0, abs=5e-3)
    for metric in ('missing', 'unlabelled', 'hallucinated'):
        record = found['strict', metric, '']
        assert record.value == 0.0
        assert not record.higher_is_better
    # Its interval is over objects, and named so.
    record = found['strict', 'macc_over_objects', '']
    assert record.value == pytest.approx(found['strict', 'macc', ''].value)
    assert record.low <= record.value <= record.high
    assert record.n == 3
    assert found['strict', 'macc', ''].low is None


def test_an_unmapped_table_costs_strict_its_class_and_compat_nothing_it_should(context, with_map):
    dense = context.semantic_map.dense
    table = dense.labels == context.ground_truth.label_set.id_of('table')
    found = evaluate(with_map(valid=~table))
    assert found['strict', 'class_accuracy', 'table'].value == 0.0
    assert found['strict', 'macc', ''].value == pytest.approx(2 / 3, abs=2e-3)
    n = found['strict', 'macc', ''].n
    assert found['strict', 'missing', ''].value == pytest.approx(table.sum() / n, abs=1e-2)
    assert found['compat', 'macc', ''].value == pytest.approx(2 / 3, abs=2e-3)
    assert found['compat', 'iou', 'floor'].value < found['strict', 'iou', 'floor'].value


def test_invented_surface_costs_strict_and_not_compat(context, with_map):
    dense = context.semantic_map.dense
    ghost = dense.points + np.array([0, 0, 20], np.float32)
    points = np.concatenate([dense.points, ghost])
    twice = {name: np.tile(getattr(dense, name), 2) for name in ('labels', 'instances')}
    found = evaluate(with_map(points=points, **twice))
    assert found['compat', 'miou', ''].value == pytest.approx(1.0, abs=5e-3)
    assert found['strict', 'miou', ''].value == pytest.approx(0.5, abs=0.05)
    assert found['strict', 'hallucinated', ''].value == 0.5


def test_confusions_are_kept_as_published_ones(context, tmp_path):
    found = evaluate(replace(context, output_directory=tmp_path))
    for mode in ('compat', 'strict'):
        matrices = read_confusions(tmp_path / f'confusion_{mode}.npz')
        row = score_scenes(matrices, ignored=())[0]
        assert row.scene == 'room'
        assert row.macc == pytest.approx(found[mode, 'macc', ''].value)


def test_maps_without_labels_or_points_are_not_applicable_not_zero(context, perfect_map):
    for bare in (
        replace(perfect_map, dense=None),
        replace(perfect_map, dense=replace(perfect_map.dense, labels=None), graph=SceneGraph()),
    ):
        found = evaluate(replace(context, semantic_map=bare))
        assert found
        assert all(not item.applicable and item.value is None for item in found.values())


def test_an_empty_map_misses_everything(with_map):
    empty = np.zeros(0, np.int32)
    found = evaluate(with_map(points=np.zeros((0, 3), np.float32), labels=empty, instances=empty))
    assert found['strict', 'macc', ''].value == 0.0
    assert found['strict', 'missing', ''].value == 1.0
    assert found['compat', 'macc', ''].value == 0.0
    assert not found['strict', 'hallucinated', ''].applicable


def test_another_label_set_is_translated_by_name(context, perfect_map, with_map):
    other = LabelSet.from_names('wide', ['aquarium', 'Chair', 'FLOOR', 'zebra'], first_id=50)
    own = context.ground_truth.label_set
    table = {own.id_of('chair'): 51, own.id_of('floor'): 52, own.id_of('table'): 53}
    labels = np.array([table[int(item)] for item in perfect_map.dense.labels], np.int32)
    found = evaluate(with_map(label_set=other, labels=labels))
    assert found['strict', 'class_accuracy', 'floor'].value == pytest.approx(1, abs=2e-3)
    assert found['strict', 'class_accuracy', 'table'].value == 0.0
    lost = found['strict', 'outside_vocabulary', ''].value
    assert lost == pytest.approx(800 / found['strict', 'macc', ''].n, rel=0.05)
    assert found['strict', 'unlabelled', ''].value == 0.0


def test_points_without_labels_take_those_of_their_nodes_and_ranks_give_top_k(with_map):
    names = {1: ['floor'], 2: ['lamp', 'table'], 3: ['chair']}
    nodes = (SceneNode(i, labels=tuple(map(ScoredLabel, own))) for i, own in names.items())
    bare = with_map(labels=None, graph=SceneGraph(tuple(nodes)), label_set=None)
    found = evaluate(bare, top_k=(1, 2))
    assert found['strict', 'class_accuracy', 'table'].value == 0.0
    assert found['strict', 'top1_accuracy', ''].value == pytest.approx(
        found['strict', 'accuracy', ''].value
    )
    assert found['strict', 'top2_accuracy', ''].value == pytest.approx(1.0, abs=2e-3)


def test_a_labeller_names_feature_maps_from_the_vocabulary_of_the_mode(asking):
    case, asked = asking(lambda _: 'floor')
    found = evaluate(case, vocabulary='global')
    assert asked == [['chair', 'floor', 'table'], ['chair', 'floor', 'lamp', 'table']]
    assert found['strict', 'macc', ''].value == pytest.approx(1 / 3, abs=2e-3)


@pytest.mark.parametrize(
    ('parts', 'message'),
    [
        ({'labels': np.zeros(3, np.int32)}, r'labels have shape \(3,\)'),
        ({'points': np.full((7200 + 900, 3), np.nan, np.float32)}, 'shape'),
        ({'valid': np.zeros(2, bool)}, r'valid have shape \(2,\)'),
    ],
)
def test_arrays_that_do_not_fit_are_refused(with_map, parts, message):
    with pytest.raises(MetricError, match=message):
        evaluate(with_map(**parts))


def test_labels_unknown_to_the_label_set_and_nan_points_are_refused(perfect_map, with_map):
    dense = perfect_map.dense
    labels = np.full(len(dense.points), 4711, np.int32)
    with pytest.raises(MetricError, match='4711'):
        evaluate(with_map(labels=labels))
    with pytest.raises(MetricError, match='no label set'):
        evaluate(with_map(label_set=None))
    points = dense.points.copy()
    points[5, 1] = np.nan
    with pytest.raises(MetricError, match=r'map: 1 of \d+ points have NaN'):
        evaluate(with_map(points=points))
    found = evaluate(with_map(labels=np.full(len(dense.points), UNLABELLED, np.int32)))
    assert found['strict', 'unlabelled', ''].value == 1.0


def test_options_are_checked():
    with pytest.raises(ConfigError, match='Did you mean "max_distance_m"'):
        OsmaSegmentationSuite(options={'max_distance': 1})
    with pytest.raises(ConfigError, match='max_distance_m: Input should be greater than 0'):
        OsmaSegmentationSuite(options={'max_distance_m': -1})


@pytest.mark.parametrize('vocabulary', ['scene', 'global'])
def test_a_wrong_name_from_outside_the_scene_costs_accuracy_in_strict_mode_alone(
    asking, vocabulary
):
    """A text encoder that takes everything for a lamp, of which the scene has none."""
    case, _ = asking(lambda names: 'lamp' if 'lamp' in names else 'floor')
    found = evaluate(case, vocabulary=vocabulary)
    assert found['strict', 'accuracy', ''].value == 0.0
    assert found['compat', 'accuracy', ''].value > 0.0
