import pytest
from support.libraries import needs

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.mapper import make_mapper, mapper_class
from osmabench_ros.semantics.labels import LabelSet

LABELS = LabelSet.from_names('test', ['cup'], ['floor'])


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
