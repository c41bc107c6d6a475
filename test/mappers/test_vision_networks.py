"""Loading, batches, prompts and failures are real; the weights are tiny and random."""

from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image
from support import tiny_networks
from support.libraries import needs
from support.world import box_room
from support.world.frames import map_frames

from osmabench_ros.errors import ConfigError, MissingDependencyError
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.mappers.open_vocabulary import features
from osmabench_ros.mappers.open_vocabulary.masks import SemanticNetwork, class_ids, mask_finder
from osmabench_ros.maps.storage import pack_map
from osmabench_ros.semantics.labels import UNLABELLED

pytestmark = needs('transformers')

LABELS = box_room.LABELS


@pytest.fixture(scope='module')
def frames():
    return box_room.frames(count=4, size=(80, 60))


@pytest.fixture(scope='module')
def folders(tmp_path_factory):
    base = tmp_path_factory.mktemp('networks')
    names = 'clip', 'mask2former', 'sam', 'owl'
    found = {name: str(getattr(tiny_networks, name)(base / name)) for name in names}
    classes = ['wall', 'floor, flooring', 'couch', 'cup', 'sky']
    return {**found, 'segformer': str(tiny_networks.segformer(base / 'segformer', classes))}


@pytest.fixture(autouse=True)
def no_hub(monkeypatch):
    monkeypatch.setattr('huggingface_hub.constants.HF_HUB_OFFLINE', True)


def source(folder):
    return features.NetworkSource(name=folder)


def runtime(**options):
    return features.Runtime(features.DeviceOptions(device='cpu', **options))


def test_features_have_length_one_and_do_not_depend_on_the_batch(folders):
    names = ['cup', 'sofa', 'table', 'an image of a cup', 'wall']
    pictures = [Image.new('RGB', (20 + i, 30), (50 * i, 9, 200)) for i in range(5)]
    small, large = (
        features.make_encoder(source(folders['clip']), runtime(batch_size=n)) for n in (2, 32)
    )
    for one, other in (
        (small.texts(names), large.texts(names)),
        (small.images(pictures), large.images(pictures)),
    ):
        assert one.shape == (5, 8)
        np.testing.assert_allclose(np.linalg.norm(one, axis=1), 1, atol=1e-5)
        np.testing.assert_allclose(one, other, atol=1e-5)
        assert len(np.unique(one.round(6), axis=0)) == 5


def test_features_of_masks_are_those_of_the_pictures_that_the_options_name(folders, frames):
    color = frames[0].color
    mask = np.zeros(color.shape[:2], bool)
    mask[10:20, 30:50] = True
    mask[10, 30] = False
    encoder = features.make_encoder(source(folders['clip']), runtime())
    window = color[:40, 10:70]
    grey = np.where(mask[:40, 10:70, None], window, np.uint8(127))
    parts = [encoder.images([Image.fromarray(item)])[0] for item in (window, grey, color)]
    for weights in ((1, 0, 0), (0, 1, 0), (0.5, 0.3, 0.2)):
        names = ('crop', 'masked_crop', 'whole_image')
        options = features.FeatureOptions(**dict(zip(names, weights, strict=True)))
        [found] = features.mask_features(color, mask[None], encoder, options)
        expected = np.tensordot(weights, parts, 1)
        np.testing.assert_allclose(found, expected / np.linalg.norm(expected), atol=1e-5)


def test_segments_of_mask2former_are_masks(folders, frames):
    finder = mask_finder(source(folders['mask2former']), None, (), 0.0, runtime())
    found = finder.find(frames[0].color)
    assert found.masks.shape == (1, 60, 80)
    assert found.masks.any()
    assert 0.9 < found.confidences[0] < 1
    strict = mask_finder(source(folders['mask2former']), None, (), 1.0, runtime())
    assert strict.find(frames[0].color).masks.shape == (0, 60, 80)


def test_boxes_by_text_become_masks_with_names(folders, frames):
    masks, detector = source(folders['sam']), source(folders['owl'])
    finder = mask_finder(masks, detector, ('cup', 'sofa'), 0.0, runtime())
    found = finder.find(frames[0].color)
    assert found.masks.shape == (4, 60, 80)  # a box for each patch of the image
    assert set(found.names) <= {'cup', 'sofa'}
    assert set(finder.models) == {'masks', 'detector'}
    nothing = mask_finder(masks, detector, ('cup',), 1.0, runtime()).find(frames[0].color)
    assert nothing.masks.shape == (0, 60, 80)


def test_masks_of_everything_need_torchvision_or_are_there(folders, frames):
    if find_spec('torchvision') is None:
        with pytest.raises(MissingDependencyError, match='torchvision'):
            mask_finder(source(folders['sam']), None, (), 0.3, runtime())
    else:
        finder = mask_finder(source(folders['sam']), None, (), 0.3, runtime())
        assert finder.find(frames[0].color).masks.shape[1:] == (60, 80)


def test_networks_that_do_not_fit_their_part_are_named(folders):
    with pytest.raises(ConfigError, match=r'clip" \(clip\) finds no masks; give .*Mask2Former'):
        mask_finder(source(folders['clip']), None, (), 0.3, runtime())
    detector = source(folders['owl'])
    with pytest.raises(ConfigError, match='cannot mask the boxes of a detector'):
        mask_finder(source(folders['mask2former']), detector, ('cup',), 0.3, runtime())
    with pytest.raises(ConfigError, match='no features of text'):
        features.make_encoder(source(folders['mask2former']), runtime())


def test_what_cannot_be_had_is_named_with_how_to_get_it(tmp_path):
    with pytest.raises(ConfigError, match=r'hf download no/such --revision v1 --local-dir FOLD'):
        features.make_encoder(features.NetworkSource(name='no/such', revision='v1'), runtime())
    with pytest.raises(ConfigError, match='holds no network'):
        features.make_encoder(features.NetworkSource(name=str(tmp_path)), runtime())


def test_devices_that_are_not_there_are_named():
    with pytest.raises(ConfigError, match='"abacus" is unknown'):
        features.Runtime(features.DeviceOptions(device='abacus'))
    import torch

    if not torch.cuda.is_available():
        with pytest.raises(ConfigError, match='"cuda:3" was asked for'):
            features.Runtime(features.DeviceOptions(device='cuda:3'))
    assert features.Runtime(features.DeviceOptions(device='cpu')).dtype is torch.float32


def test_open_clip_is_asked_for_by_name():
    if find_spec('open_clip') is None:
        with pytest.raises(MissingDependencyError, match='pip install .*open_clip_torch'):
            features.make_encoder(
                features.NetworkSource(name='open_clip:ViT-B-32/openai'), runtime()
            )
    else:
        with pytest.raises(ConfigError, match='names no weights'):
            features.make_encoder(features.NetworkSource(name='open_clip:ViT-B-32'), runtime())


def test_classes_of_a_network_are_matched_by_synonyms_and_by_the_given_names():
    classes = {0: 'wall', 1: 'floor, flooring', 2: 'couch', 3: 'sky'}
    table = class_ids(classes, LABELS, {'couch': 'sofa'})
    ids = LABELS.id_of
    assert table.tolist() == [ids('wall'), ids('floor'), ids('sofa'), UNLABELLED]
    with pytest.raises(ConfigError, match='the network has no class "divan"'):
        class_ids(classes, LABELS, {'divan': 'sofa'})
    with pytest.raises(ConfigError, match='the scene has no class "bench"'):
        class_ids(classes, LABELS, {'couch': 'bench'})
    with pytest.raises(ConfigError, match='say under names'):
        class_ids({0: 'sky'}, LABELS, {})


def objects_mapper(folders, **options):
    given = {
        'masks': {'name': folders['mask2former']},
        'features': {'name': folders['clip']},
        'min_confidence': 0.0,
        'association': {'min_detections': 1},
        'device': {'device': 'cpu'},
        'rooms': False,
        **options,
    }
    return make_mapper('open_vocabulary', label_set=LABELS, options=given)


def test_frames_become_objects_with_features_and_the_networks_in_the_provenance(
    folders, frames, capsys
):
    mapper = objects_mapper(folders)
    assert mapper.semantic_map(final=False).dense is None
    made = map_frames(mapper, frames)
    said = capsys.readouterr().err
    assert said.count('the first frame waits for the networks (cpu)') == 1
    assert made.header.complete
    assert made.header.provenance.frames_used == 4
    models = made.header.provenance.models
    assert set(models) == {'masks', 'features'}
    assert models['masks'].startswith('mask2former@sha256:')
    space = made.feature_spaces['objects']
    assert space.vectors.shape == (len(made.graph.nodes), 8)
    assert len(made.dense.points) == len(made.dense.instances) > 100
    assert {node.label for node in made.graph.nodes} <= {item.name for item in LABELS.classes}
    assert pack_map(made) == pack_map(mapper.semantic_map(final=True))


def test_detectors_name_the_objects(folders, frames):
    masks, detector = {'name': folders['sam']}, {'name': folders['owl']}
    mapper = objects_mapper(folders, masks=masks, detector=detector, prompts=['cup'])
    nodes = map_frames(mapper, frames).graph.nodes
    assert nodes
    assert {node.label for node in nodes} == {'cup'}


def test_a_network_with_fixed_classes_labels_points(folders, frames):
    names = {'couch': 'sofa'}
    options = {'segmentation': {'name': folders['segformer']}, 'names': names}
    mapper = make_mapper('open_vocabulary', label_set=LABELS, options=options)
    made = map_frames(mapper, frames)
    network = SemanticNetwork(source(folders['segformer']), LABELS, names, runtime())
    seen = [network.label(frame.color)[frame.valid] for frame in frames]
    assert set(made.dense.labels.tolist()) <= set(np.concatenate(seen).tolist())
    assert made.dense.instances is None
    assert not made.graph.nodes
    assert set(made.header.provenance.models) == {'segmentation'}


def test_options_that_do_nothing_are_refused():
    for options, text in (
        ({'prompts': ['cup']}, 'prompts need a detector'),
        ({'names': {'a': 'b'}}, 'names need segmentation'),
        ({'pictures': {'crop': 0.0}}, 'crop or masked_crop must be more than 0'),
        ({'mask': 1}, 'unknown key "mask".*"masks"'),
    ):
        with pytest.raises(ConfigError, match=text):
            make_mapper('open_vocabulary', label_set=LABELS, options=options)
