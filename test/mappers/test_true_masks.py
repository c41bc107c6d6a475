"""The scene's masks as detections of a method: their form, features, and who may have them."""

import dataclasses
import gzip
import json
import pickle
import sys

import numpy as np
import pytest
from support.world.masks import LABELS, furnished

from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.mappers.mapper import knows_ground_truth, make_mapper
from osmabench_ros.mappers.offline import ConceptGraphsDetections, PatchFeatures
from osmabench_ros.mappers.offline_method import load_method
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.assembly import MapBuilder
from osmabench_ros.maps.importers.conceptgraphs import METHOD
from osmabench_ros.semantics.labels import UNLABELLED


def detections(tmp_path, frame):
    ConceptGraphsDetections(tmp_path, LABELS, 3).write(frame, 7)
    with gzip.open(tmp_path / 'gsa_detections_true_masks' / 'frame000007.pkl.gz') as file:
        return pickle.load(file)


def test_every_object_is_one_detection_with_its_mask_box_and_name(tmp_path):
    frame = furnished()
    found = detections(tmp_path, frame)
    assert json.loads((tmp_path / 'gsa_classes_true_masks.json').read_text()) == found['classes']
    names = [found['classes'][row] for row in found['class_id']]
    assert sorted(names) == ['chair', 'chair', 'table', 'wall']
    boxes = {tuple(box) for box in found['xyxy'].astype(int).tolist()}
    assert boxes == {(2, 5, 9, 15), (20, 5, 30, 15), (10, 18, 35, 25), (0, 0, 40, 29)}
    # Masks are disjoint, and together cover all pixels with a class.
    np.testing.assert_array_equal(found['mask'].sum(axis=0), frame.semantic != UNLABELLED)
    for mask, name in zip(found['mask'], names, strict=True):
        assert set(frame.semantic[mask].tolist()) == {LABELS.id_of(name)}
    assert found['confidence'].tolist() == [1.0] * 4
    # ConceptGraphs indexes every key but `classes`, and knows only lists and arrays.
    for key in set(found) - {'classes'}:
        assert isinstance(found[key], (list, np.ndarray))
        assert len(found[key]) == 4
    same = [text @ other for text in found['text_feats'] for other in found['text_feats']]
    assert np.isclose(np.array(same).reshape(4, 4), 1.0, atol=1e-5).sum() == 6  # chair and chair


def test_a_frame_without_objects_has_no_detection(tmp_path):
    empty = dataclasses.replace(
        furnished(), semantic=np.full((30, 40), UNLABELLED, np.uint16),
        instance=np.zeros((30, 40), np.int32),
    )  # fmt: skip
    found = detections(tmp_path, empty)
    assert found['xyxy'].shape == (0, 4)
    assert found['mask'].shape == (0, 30, 40)
    assert found['image_feats'].shape == (0, 64)


def test_a_frame_without_masks_is_named(tmp_path):
    blind = dataclasses.replace(furnished(9), semantic=None, instance=None)
    with pytest.raises(RunError, match='frame 9 lacks the semantic or the instance image'):
        detections(tmp_path, blind)


def test_features_resemble_those_of_another_view_more_than_those_of_another_thing():
    encoder, whole = PatchFeatures(1), np.ones((48, 48), bool)
    rng = np.random.default_rng(4)

    def texture(mean):
        rows = np.sin(np.arange(48) / 3)[:, None, None] * 25
        return np.clip(mean + rows + rng.normal(0, 4, (48, 48, 3)), 0, 255).astype(np.uint8)

    one, again, other = (encoder.of(texture(mean), whole) for mean in (90, 90, 170))
    assert np.linalg.norm(one) == pytest.approx(1.0, abs=1e-5)
    assert one @ again > 0.9 > 0.6 > one @ other
    np.testing.assert_array_equal(PatchFeatures(1).of(texture(90)[:5], whole[:5]).shape, (64,))
    # Points outside of the mask do not count.
    half = whole.copy()
    half[:, 24:] = False
    both = texture(90)
    changed = both.copy()
    changed[:, 28:] = 255
    assert encoder.of(both, half) @ encoder.of(changed, half) > 0.95


def options(tmp_path, method):
    return {
        'method': method,
        'work': str(tmp_path / 'work'),
        'variables': {'python': sys.executable, 'root': str(tmp_path), 'gsa': '/gsa'},
    }


@pytest.mark.parametrize(
    ('mapper', 'method', 'right'),
    [('offline', 'conceptgraphs_true_masks', 'offline_true_masks'),
     ('offline_true_masks', 'conceptgraphs', 'offline')],
)  # fmt: skip
def test_masks_of_the_scene_are_asked_for_by_name(tmp_path, mapper, method, right):
    with pytest.raises(ConfigError, match=f'write implementation: {right}$'):
        make_mapper(mapper, label_set=LABELS, options=options(tmp_path, method))


def test_the_detections_lie_beside_the_frames_before_the_method_runs(tmp_path):
    mapper = make_mapper(
        'offline_true_masks', label_set=LABELS,
        options=options(tmp_path, 'conceptgraphs_true_masks'),
    )  # fmt: skip
    assert mapper.uses_ground_truth
    assert knows_ground_truth('offline_true_masks')
    assert not knows_ground_truth('offline')
    (tmp_path / 'conceptgraph').mkdir()
    for index in range(2):
        mapper.integrate(furnished(index))
    with pytest.raises(RunError, match=r'cfslam_pipeline_batch\.py'):
        mapper.semantic_map(final=True)
    sequence = tmp_path / 'work' / 'sequences' / 'scene'
    frames = sorted(path.stem for path in (sequence / 'results').glob('frame*.jpg'))
    folder = sequence / f'gsa_detections_{_variant()}'
    assert [path.name.partition('.')[0] for path in sorted(folder.iterdir())] == frames
    assert (sequence / f'gsa_classes_{_variant()}.json').is_file()


def spaces(options, features):
    builder = MapBuilder(METHOD, options)
    for name, vectors in features.items():
        builder.add_space(name, vectors)
    return list(builder.build(source_sha256='').feature_spaces.values())


def test_features_of_a_random_encoder_are_never_compared_with_text():
    names = {'clip': np.eye(4, 64, dtype=np.float32), 'text': np.eye(4, 64, dtype=np.float32)}
    options = ImportOptions(
        feature_model='random features of patches', feature_pretrained='untrained',
        text_comparable=False,
    )  # fmt: skip
    for space in spaces(options, names):
        assert not space.text_comparable
        assert (space.model, space.pretrained) == ('random features of patches', 'untrained')
    _, usual = spaces(ImportOptions(), names)
    assert usual.text_comparable
    assert usual.model == 'ViT-H-14'


def _variant():
    """Return the name of the detector that the method's file gives to ConceptGraphs."""
    [command] = load_method('conceptgraphs_true_masks').commands
    [named] = [word for word in command if word.startswith('gsa_variant=')]
    return named.partition('=')[2]
