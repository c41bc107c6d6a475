import dataclasses

import numpy as np
import pytest
from maps.importers.method_files import write_bbq, write_openscene
from support.world.maps import sample_map

from osmabench_ros.errors import MapError
from osmabench_ros.maps import labelling
from osmabench_ros.maps.importer import import_map
from osmabench_ros.maps.storage import read_map, write_map
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

LABELS = LabelSet.from_names('own', ['cup', 'mug', 'table', 'wall'], first_id=10)
TEXT = np.random.default_rng(5).normal(size=(4, 5)).astype(np.float32)


def cosines(vectors, text):
    """Return cosines by SciPy, the other way."""
    distance = pytest.importorskip('scipy.spatial.distance')
    return 1 - distance.cdist(vectors.astype(float), text.astype(float), 'cosine')


def test_nodes_and_points_get_the_class_of_highest_cosine():
    source = sample_map()
    made = labelling.label_by_features(source, TEXT, LABELS)
    similarity = cosines(source.feature_spaces['clip'].vectors, TEXT)
    table = made.graph.by_id[4]
    order = np.argsort(-similarity[0])
    assert [label.class_id for label in table.labels] == (order + 10).tolist()
    np.testing.assert_allclose(
        [label.score for label in table.labels], similarity[0][order], rtol=1e-5
    )
    rows = made.dense.feature_rows
    expected = np.where(rows >= 0, similarity.argmax(axis=1)[rows] + 10, UNLABELLED)
    assert made.dense.labels.tolist() == expected.tolist()
    np.testing.assert_allclose(
        made.dense.scores[rows >= 0], similarity.max(axis=1)[rows[rows >= 0]], rtol=1e-5
    )  # type: ignore[index]
    assert made.label_set is LABELS


def test_what_has_no_feature_keeps_its_name_with_the_new_class_id():
    cup = labelling.label_by_features(sample_map(), TEXT, LABELS).graph.by_id[7]
    assert [(label.name, label.class_id) for label in cup.labels] == [('cup', 10)]


def test_points_without_features_take_the_label_of_their_node():
    source = sample_map()
    dense = dataclasses.replace(source.dense, feature_rows=None, feature_space='')
    made = labelling.label_by_features(dataclasses.replace(source, dense=dense), TEXT, LABELS)
    table = made.graph.by_id[4].class_id
    assert made.dense.labels.tolist() == [10, table, UNLABELLED] * 2


def test_points_never_seen_stay_unlabelled(tmp_path):
    features = write_openscene(tmp_path)
    source = import_map('openscene', tmp_path)
    text = np.random.default_rng(1).normal(size=(4, 768))
    made = labelling.label_by_features(source, text, LABELS)
    seen = (features != 0).any(axis=1)
    best = cosines(features[seen], text).argmax(axis=1) + 10
    assert made.dense.labels[seen].tolist() == best.tolist()
    assert set(made.dense.labels[~seen].tolist()) == {UNLABELLED}


def test_a_labelled_map_is_sound(tmp_path):
    made = labelling.label_by_features(sample_map(), TEXT, LABELS)
    write_map(made, tmp_path / 'map')
    again = read_map(tmp_path / 'map')
    assert again.label_set == LABELS
    assert len(again.graph.by_id[4].labels) == len(LABELS.classes)


def test_templates_are_normalised_averaged_and_normalised():
    features = np.random.default_rng(2).normal(size=(3, 4, 5)) * [[[1]], [[10]], [[100]]]
    expected = []
    for i in range(4):
        mean = sum(features[t, i] / np.sqrt((features[t, i] ** 2).sum()) for t in range(3)) / 3
        expected.append(mean / np.sqrt((mean**2).sum()))
    np.testing.assert_allclose(labelling.average_text_features(features), expected, rtol=1e-6)


@pytest.mark.parametrize('shape', [(4, 5), (3, 4, 5)])
def test_text_features_are_read_from_a_file(tmp_path, shape):
    features = np.random.default_rng(3).normal(size=shape)
    np.save(tmp_path / 'text.npy', features)
    read = labelling.read_text_features(tmp_path / 'text.npy', LABELS)
    assert read.shape == (4, 5)
    np.testing.assert_allclose(np.linalg.norm(read, axis=1), 1, rtol=1e-6)


def test_text_features_of_other_classes_are_refused(tmp_path):
    np.save(tmp_path / 'text.npy', np.ones((3, 5)))
    with pytest.raises(MapError, match=r'text\.npy is \(3, 5\); label set "own" has 4 classes'):
        labelling.read_text_features(tmp_path / 'text.npy', LABELS)


@pytest.mark.parametrize(
    ('text', 'space', 'message'),
    [
        (TEXT[:3], '', r'text features are \(3, 5\), \(4, 5\) is needed'),
        (TEXT[:, :4], '', r'from the encoder of "clip" \(ViT-H-14 laion2b\)'),
        (TEXT * 0, '', 'zero, NaN or infinite'),
        (TEXT, 'dino', 'no feature space "dino"'),
    ],
)
def test_text_that_does_not_fit_is_refused(text, space, message):
    with pytest.raises(MapError, match=message):
        labelling.label_by_features(sample_map(), text, LABELS, space=space)


def test_a_map_without_comparable_features_says_so(tmp_path):
    write_bbq(tmp_path)
    raw = import_map('bbq', tmp_path)
    with pytest.raises(MapError, match='map of bbq has no features that text can be compared'):
        labelling.label_by_features(raw, np.ones((4, 384)), LABELS)
