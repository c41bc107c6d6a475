"""Which edges of TF are ours next to a stack, and which settings contradict each other."""

import pytest

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import TfMode
from osmabench_ros.ros.node.settings import TfSettings

CAMERA = ('camera_link', 'camera_color_optical_frame')
SLAM = ('map->odom', 'odom->base_link')


@pytest.mark.parametrize(
    ('mode', 'theirs', 'below_world', 'of_camera'),
    [
        ('auto', (), 'base_link', CAMERA),
        ('auto', SLAM, 'map', CAMERA),
        ('auto', ('/odom -> /base_link',), 'odom', CAMERA),
        ('auto', ('world->map', *SLAM), '', CAMERA),
        ('auto', ('map->world',), 'base_link', CAMERA),
        ('auto', ('base_link->camera_link',), 'base_link', CAMERA[1:]),
        ('world_to_map', (), 'map', CAMERA),
        ('world_to_map', ('odom->base_link',), 'odom', CAMERA),
        ('none', SLAM, '', ()),
    ],
)
def test_ours_is_what_the_stack_leaves_free(mode, theirs, below_world, of_camera):
    settings = TfSettings(publish_tf=TfMode(mode), transforms=theirs)
    assert (settings.below_world, settings.of_camera) == (below_world, of_camera)
    assert TfSettings.model_validate(settings.model_dump(mode='json')) == settings


@pytest.mark.parametrize(
    ('mode', 'theirs'),
    [
        ('world_to_base', SLAM),
        ('world_to_map', ('world->map', *SLAM)),
        ('world_to_map', ('odom->map',)),
    ],
)
def test_two_words_on_one_edge_are_refused_by_both_keys(mode, theirs):
    with pytest.raises(ConfigError, match=f'"publish_tf: {mode}" contradicts "transforms: '):
        TfSettings(publish_tf=TfMode(mode), transforms=theirs)
