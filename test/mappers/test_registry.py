from dataclasses import replace

import pytest
from support.libraries import needs
from support.world.frames import FRAMES, LABELS

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.mapper import make_mapper, mapper_class
from osmabench_ros.maps.storage import pack_map


def test_an_unknown_mapper_is_named_with_the_nearest_one():
    with pytest.raises(ConfigError, match=r'no mapper "orcale".*Did you mean "oracle"\?'):
        make_mapper('orcale', label_set=LABELS)


def test_whether_ground_truth_is_read_is_known_before_a_mapper_is_made():
    assert mapper_class('oracle').uses_ground_truth is True


@needs('open3d')
@pytest.mark.parametrize('name', ['oracle', 'tsdf', 'open3d_slam'])
def test_an_unknown_option_is_named(name):
    with pytest.raises(ConfigError, match=f'"{name}": unknown key "voxel".*"voxel_m"'):
        make_mapper(name, label_set=LABELS, options={'voxel': 0.1})


FEW_OBJECTS = [replace(frame, instance=frame.instance % 12) for frame in FRAMES]


@pytest.mark.parametrize('name', ['oracle', 'noisy_oracle', 'appearance'])
def test_looking_at_the_map_meanwhile_does_not_change_it(name):
    maps = []
    for look in (False, True):
        mapper = make_mapper(name, label_set=LABELS, seed=3, options={})
        for frame in FEW_OBJECTS:
            mapper.integrate(frame)
            if look:
                pack_map(mapper.semantic_map(final=False))
        maps.append(pack_map(mapper.semantic_map(final=True)))
    assert maps[0] == maps[1]


@pytest.mark.parametrize('name', ['oracle', 'noisy_oracle', 'appearance'])
def test_no_frames_give_an_empty_map(name):
    made = make_mapper(name, label_set=LABELS, options={}).semantic_map(final=True)
    assert len(made.dense.points) == 0
    assert made.graph.nodes == ()
