import numpy as np
import pytest
from support.sizes import few
from support.world import box_room

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.oracle import NoisyOracleMapper
from osmabench_ros.maps.storage import pack_map
from osmabench_ros.semantics.labels import UNLABELLED

SILENT = {
    'label_confusion': 0.0,
    'frame_label_confusion': 0.0,
    'dropped_objects': 0.0,
    'missed_detections': 0.0,
    'mask_error_px': 0,
    'pose_noise_m': 0.0,
    'pose_noise_rad': 0.0,
}


@pytest.fixture(scope='module')
def frames():
    return box_room.frames(size=(80, 60))


def mapped(frames, seed=0, **options):
    given = {**SILENT, 'voxel_m': 0.05, 'rooms': False, **options}
    return box_room.map_room(NoisyOracleMapper, frames, seed=seed, **given)


def accuracy(frames, seed=0, **options):
    dense = mapped(frames, seed, **options).dense
    return box_room.share_labelled(dense, box_room.visible_cloud(frames))


def model(**options):
    return NoisyOracleMapper(label_set=box_room.LABELS, seed=0, options={**SILENT, **options})


def test_without_noise_frames_are_untouched(frames):
    noisy = model().apply(frames[0])
    np.testing.assert_array_equal(noisy.semantic, frames[0].semantic)
    np.testing.assert_array_equal(noisy.instance, frames[0].instance)
    np.testing.assert_allclose(noisy.camera_pose.matrix, frames[0].camera_pose.matrix, atol=1e-12)


@pytest.mark.parametrize(
    ('option', 'doses'),
    few(
        [
            ('label_confusion', (0.0, 0.4, 1.0)),
            ('frame_label_confusion', (0.0, 0.6, 1.0)),
            ('dropped_objects', (0.0, 0.5, 1.0)),
            ('pose_noise_m', (0.0, 0.1, 0.5)),
            ('pose_noise_rad', (0.0, 0.05, 0.3)),
        ],
        ('label_confusion', (0.0, 0.4, 1.0)),
    ),
)
def test_more_noise_makes_a_worse_map(frames, option, doses):
    scores = [
        np.mean([accuracy(frames, seed, **{option: dose}) for seed in (0, 1)]) for dose in doses
    ]
    assert scores[0] > 0.98
    assert scores[0] > scores[1] > scores[2]


def test_errors_of_less_noise_are_kept_by_more(frames):
    mild, strong = model(label_confusion=0.3), model(label_confusion=0.6)
    wrong = [
        {i for i in range(1, 200) if noise.detect(i, 1, 0).class_id != 1}
        for noise in (mild, strong)
    ]
    assert wrong[0] < wrong[1]
    assert 0.2 < len(wrong[0]) / 199 < 0.4


def test_a_confused_object_stays_confused_and_structure_stays_structure():
    noise = model(label_confusion=1.0)
    floor, wall, cup = (box_room.LABELS.id_of(name) for name in ('floor', 'wall', 'cup'))
    assert {noise.detect(1, floor, frame).class_id for frame in range(9)} == {wall}
    assert len({noise.detect(5, cup, frame).class_id for frame in range(9)}) == 1
    assert noise.detect(5, cup, 0).class_id not in (cup, floor, wall)


def test_masks_grow_and_shrink(frames):
    noise = model(mask_error_px=3)
    sizes = {}
    for frame in frames:
        noisy = noise.apply(frame)
        for instance_id in range(6, 10):
            before = frame.instance == instance_id
            growth = noise.detect(instance_id, 1, frame.index).growth_px
            if 25 < before.sum() < 2000:
                after = noisy.instance == instance_id
                sizes.setdefault(np.sign(growth), []).append(after.sum() / before.sum())
        lost = (noisy.instance == 0) & (frame.instance > 0)
        assert (noisy.semantic[lost] == UNLABELLED).all()
    assert np.mean(sizes[1]) > 1.02
    assert np.mean(sizes[-1]) < 0.98


def test_a_dropped_object_has_no_node_but_walls_stay(frames):
    result = mapped(frames, dropped_objects=1.0)
    assert {node.label for node in result.graph.nodes} == {'floor', 'wall'}


def test_votes_outweigh_passing_errors(frames):
    result = mapped(frames, frame_label_confusion=0.2)
    assert [node.label for node in result.graph.nodes][5:] == ['table', 'cup', 'sofa', 'shelf']
    assert min(node.labels[0].score for node in result.graph.nodes) < 1.0


def test_the_seed_decides(frames):
    options = {'label_confusion': 0.5, 'pose_noise_m': 0.01, 'mask_error_px': 2}
    first, again, other = (pack_map(mapped(frames, seed, **options)) for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_map_names_the_method(frames):
    assert mapped(frames[:1]).header.provenance.method == 'noisy_oracle'


def test_a_rate_above_one_is_refused():
    with pytest.raises(ConfigError, match=r'"noisy_oracle": label_confusion: .*\(it is 1\.5'):
        mapped([], label_confusion=1.5)
