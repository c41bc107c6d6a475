import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.libraries import Lazy
from support.published_data import SEGMENTATION

from osmabench_ros.base.files import claim_folder
from osmabench_ros.errors import MetricError
from osmabench_ros.metrics import confusion, segmentation
from osmabench_ros.metrics.nearest_neighbours import Neighbours, nearest
from osmabench_ros.semantics.labels import UNLABELLED

torch, sklearn_metrics = Lazy('torch'), Lazy('sklearn.metrics')

# mAcc and f-mIoU in percent, Tables I and II of arXiv 2503.10331.
TABLES = {
    'conceptgraphs_replica_cad_baseline': (29.53, 28.00),
    'conceptgraphs_replica_cad_camera_lights': (29.76, 22.71),
    'conceptgraphs_replica_cad_dynamic_lights': (24.73, 14.29),
    'conceptgraphs_replica_cad_no_lights': (26.80, 21.34),
    'conceptgraphs_replica_cad_velocity': (28.32, 27.33),
    'conceptgraphs_hm3d_no_lights': (20.39, 17.72),
    'conceptgraphs_hm3d_camera_lights': (16.73, 15.48),
    'conceptgraphs_hm3d_velocity': (19.42, 17.49),
}


@pytest.mark.parametrize('name', TABLES)
def test_every_published_row_and_the_papers_tables_follow_from_their_matrices(name):
    """The tables sum the scenes of ReplicaCAD, and average those of HM3D."""
    published = pd.read_csv(SEGMENTATION / f'{name}.csv', index_col='scene')
    matrices = confusion.read_confusions(SEGMENTATION / f'{name}.npz')
    rows = segmentation.score_scenes(matrices)
    assert {row.scene for row in rows} == set(published.index)
    for row in rows:
        for metric in ('miou', 'fmiou', 'macc'):
            expected = published.loc[row.scene, metric]
            assert getattr(row, metric) == pytest.approx(expected, abs=1e-9), (row.scene, metric)
    overall, mean = rows[-2:]
    assert (overall.scene, mean.scene) == ('overall', 'overall_mean')
    row = overall if 'replica' in name else mean
    assert (round(100 * row.macc, 2), round(100 * row.fmiou, 2)) == TABLES[name]


STRICT = {'max_distance_m': 0.1, 'vocabulary': np.array([3, 4]), 'device': 'cpu'}
labels = st.lists(st.integers(-1, 6), min_size=1, max_size=80)


@settings(max_examples=60)
@given(labels, st.randoms())
def test_confusion_and_scores_agree_with_scikit_learn(truth, random):
    predicted = [random.randint(-1, 6) for _ in truth]  # type: ignore[attr-defined]
    vocabulary = [1, 2, 3, 4, 5, 6, 0]
    ours = confusion.confusion_matrix(truth, predicted, vocabulary, device='cpu')
    theirs = sklearn_metrics.confusion_matrix(truth, predicted, labels=[*vocabulary, -1])
    np.testing.assert_array_equal(ours.counts, theirs)
    scores = segmentation.score_segmentation(ours, ignored=())
    classes = [c for c in range(7) if c in truth]
    if not classes:
        assert np.isnan(scores.miou)
        return
    macro = {'labels': classes, 'average': 'macro', 'zero_division': 0}
    assert scores.miou == pytest.approx(sklearn_metrics.jaccard_score(truth, predicted, **macro))
    assert scores.macc == pytest.approx(sklearn_metrics.recall_score(truth, predicted, **macro))
    weighted = {**macro, 'average': 'weighted'}
    expected = sklearn_metrics.jaccard_score(truth, predicted, **weighted)
    assert scores.fmiou == pytest.approx(expected)


def test_labels_outside_every_table_count_as_outside():
    found = confusion.confusion_matrix([1, 70000, -9], [70001, 1, 1], [1], device='cpu')
    assert found.counts.tolist() == [[0, 1], [2, 0]]


def test_torch_and_numpy_input_count_alike():
    rng = np.random.default_rng(0)
    truth, predicted = rng.integers(0, 9, (2, 1000)).astype(np.uint16)
    ours = confusion.confusion_matrix(truth, predicted, range(9), device='cpu')
    tensors = [torch.from_numpy(item.astype(np.int32)) for item in (truth, predicted)]
    theirs = confusion.confusion_matrix(*tensors, range(9), device='cpu')
    np.testing.assert_array_equal(ours.counts, theirs.counts)


@pytest.mark.skipif('not torch.cuda.is_available()', reason='needs a CUDA device')
def test_cuda_counts_what_the_cpu_counts():
    truth, predicted = np.random.default_rng(0).integers(0, 99, (2, 100_000))
    cpu, cuda = (
        confusion.confusion_matrix(truth, predicted, range(99), device=name)
        for name in ('cpu', 'cuda')
    )
    np.testing.assert_array_equal(cpu.counts, cuda.counts)


def test_compat_takes_the_nearest_label_however_far_and_drops_what_has_no_class():
    points = np.array([[0, 0, 0], [100, 0, 0], [1, 0, 0], [2, 0, 0]], np.float32)
    truth = np.array([3, 3, 0, UNLABELLED])
    predicted = np.array([3, UNLABELLED])
    near = nearest(points, np.array([[0, 0, 0], [50, 0, 0]], np.float32), device='cpu')
    found = segmentation.compat_confusion(truth, predicted, near, device='cpu')
    assert found.labels.tolist() == [3, confusion.OUTSIDE]
    assert found.counts.tolist() == [[1, 1], [0, 0]]


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_compat_drops_what_scikit_learn_drops(seed):
    rng = np.random.default_rng(seed)
    truth, predicted = rng.choice([0, 3, 4, 9, UNLABELLED], 60), rng.choice([3, 4, 7, -1], 20)
    near = Neighbours(rng.integers(0, 20, 60), np.zeros(60, np.float32))
    found = segmentation.compat_confusion(truth, predicted, near, device='cpu')
    kept = ~np.isin(truth, [0, UNLABELLED])
    # The classes 7 and -1, which is one that the label set does not have, are not labels.
    pairs = truth[kept], predicted[near.indices][kept]
    expected = sklearn_metrics.confusion_matrix(*pairs, labels=[3, 4, 9])
    np.testing.assert_array_equal(found.counts[:3, :3], expected)
    assert found.counts.sum() == expected.sum()


def test_a_class_outside_the_vocabulary_is_wrong_in_strict_alone():
    near = Neighbours(np.arange(4), np.zeros(4, np.float32))
    truth, predicted = np.array([3, 3, 4, 4]), np.array([3, 7, 4, 4])
    compat = segmentation.compat_confusion(truth, predicted, near, device='cpu')
    strict = segmentation.strict_confusion(truth, predicted, near, **STRICT)
    assert segmentation.score_segmentation(compat).macc == 1.0
    assert segmentation.score_segmentation(strict).macc == pytest.approx((1 / 2 + 1) / 2)


def test_strict_counts_missing_and_unlabelled_points_as_errors():
    near = Neighbours(np.array([0, 1, 0, 0]), np.array([0.01, 0.01, 0.2, 0.02], np.float32))
    truth = np.array([3, 3, 3, UNLABELLED])
    predicted = np.array([3, UNLABELLED])
    found = segmentation.strict_confusion(truth, predicted, near, **STRICT)
    assert found.labels.tolist() == [3, 4, confusion.OUTSIDE, confusion.NOTHING]
    assert found.counts[0].tolist() == [1, 0, 1, 1]
    assert found.counts.sum() == 3
    scores = segmentation.score_segmentation(found, ignored=())
    assert scores.macc == pytest.approx(1 / 3)
    assert scores.miou == pytest.approx(1 / 3)


def test_strict_hallucinations_lower_iou_but_not_accuracy():
    near = Neighbours(np.zeros(10, np.int64), np.zeros(10, np.float32))
    truth, predicted = np.full(10, 3), np.array([3])
    clean = segmentation.strict_confusion(truth, predicted, near, **STRICT)
    dirty = segmentation.strict_confusion(
        truth, predicted, near, hallucinated={3: 10, 9: 2}, **STRICT
    )
    assert segmentation.score_segmentation(clean).miou == 1.0
    assert segmentation.score_segmentation(dirty).miou == 0.5
    assert segmentation.score_segmentation(dirty).macc == 1.0
    assert dirty.counts[-1].tolist() == [10, 0, 2, 0]


def test_a_global_vocabulary_punishes_classes_that_do_not_exist():
    matrix = confusion.ConfusionMatrix(
        np.array([[1, 1, 0], [0, 0, 0], [0, 0, 0]]), np.array([1, 2, -1])
    )
    assert segmentation.score_segmentation(matrix).miou == 0.5
    assert segmentation.score_segmentation(matrix, punish_false_classes=True).miou == 0.25


def test_hallucinated_surface_weighs_as_much_as_true_surface_whatever_its_density():
    rng = np.random.default_rng(0)
    true = rng.random((40_000, 3)) * [2, 2, 0]
    sparse, dense = ((rng.random((n, 3)) * [1, 1, 0]) + [0, 0, 5] for n in (4000, 100_000))
    for points in (sparse, dense):
        labels, mask = np.full(len(points), 7), np.ones(len(points), bool)
        found = segmentation.count_hallucinated_points(points, labels, mask, true, cell_m=0.1)
        assert found == {7: pytest.approx(10_000, rel=0.02)}


def test_top_k_accuracy_agrees_with_scikit_learn():
    rng = np.random.default_rng(0)
    scores, truth = rng.random((200, 7)), rng.integers(0, 7, 200)
    ranked = np.argsort(-scores, axis=1)
    for k in (1, 3):
        expected = sklearn_metrics.top_k_accuracy_score(truth, scores, k=k, labels=range(7))
        assert segmentation.top_k_accuracy(ranked, truth, k) == (pytest.approx(expected), 200)
    assert np.isnan(segmentation.top_k_accuracy(ranked[:1], np.array([UNLABELLED]), 1)[0])


def test_summed_matrices_align_by_label():
    one = confusion.ConfusionMatrix(np.array([[1, 2], [0, 0]]), np.array([5, -1]))
    two = confusion.ConfusionMatrix(np.array([[3, 0], [1, 4]]), np.array([2, 5]))
    total = one + two
    assert total.labels.tolist() == [2, 5, -1]
    assert total.counts.tolist() == [[3, 0, 0], [1, 5, 2], [0, 0, 0]]
    special = confusion.ConfusionMatrix(np.diag([1, 2, 3]), np.array([4, -1, -2]))
    assert (special + one).labels.tolist() == [4, 5, -1, -2]


def test_matrices_survive_a_file(tmp_path):
    claim_folder(tmp_path)  # type: ignore[arg-type]
    path = tmp_path / 'matrices.npz'  # type: ignore[operator]
    matrix = confusion.ConfusionMatrix(np.array([[1, 2], [0, 0]]), np.array([5, -1]))
    confusion.write_confusions({'a': matrix, 'b': matrix}, path)
    first = path.read_bytes()
    again = confusion.read_confusions(path)
    assert list(again) == ['a', 'b']
    np.testing.assert_array_equal(again['b'].counts, matrix.counts)
    confusion.write_confusions({'a': matrix, 'b': matrix}, path)
    assert path.read_bytes() == first


def test_malformed_input_is_refused(tmp_path, write_file):
    with pytest.raises(MetricError, match=r'\(3,\), predicted ones \(2,\)'):
        confusion.confusion_matrix([1, 1, 1], [1, 1], [1], device='cpu')
    with pytest.raises(MetricError, match='does not fit 3 labels'):
        confusion.ConfusionMatrix(np.zeros((2, 2), int), np.arange(3))
    with pytest.raises(MetricError, match='not negative'):
        confusion.ConfusionMatrix(np.full((1, 1), -1), np.arange(1))
    with pytest.raises(MetricError, match='more than once'):
        confusion.ConfusionMatrix(np.zeros((2, 2), int), np.array([1, 1]))
    with pytest.raises(MetricError, match='no confusion matrices'):
        segmentation.score_scenes({})
    path = write_file('x.npz', b'no archive')
    with pytest.raises(MetricError, match=r'x\.npz cannot be read as \.npz'):
        confusion.read_confusions(path)
    with pytest.raises(MetricError, match=r'y\.npz does not exist'):
        confusion.read_confusions(tmp_path / 'y.npz')  # type: ignore[operator]
    near = Neighbours(np.zeros(2, np.int64), np.zeros(2, np.float32))
    with pytest.raises(MetricError, match='nearest neighbours'):
        segmentation.compat_confusion(
            np.zeros(3, np.int64), np.zeros(2, np.int64), near, device='cpu'
        )
    with pytest.raises(MetricError, match='does not fit 3 true labels'):
        segmentation.top_k_accuracy(np.zeros((2, 2)), np.zeros(3), 1)
