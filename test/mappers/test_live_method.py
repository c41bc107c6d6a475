"""The stacks in config/methods/live, and the errors of wrong files."""

import json
from pathlib import Path

import pytest
import yaml

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.live_method import (
    hydra_label_space,
    live_method_names,
    load_live_method,
)
from osmabench_ros.maps.importer import list_importers
from osmabench_ros.semantics.labels import LabelClass, LabelSet

VALUES = {
    'color': '/camera/color/image_raw',
    'depth': '/camera/depth/image_rect',
    'semantic': '/camera/semantic/image_raw',
    'instance': '/camera/instance/image_raw',
    'color_info': '/camera/color/camera_info',
    'depth_info': '/camera/depth/camera_info',
    'camera_pose': '/ground_truth/camera_pose',
    'odometry': '/ground_truth/odometry',
    'world_frame': 'world',
    'base_frame': 'base_link',
    'camera_frame': 'camera_color_optical_frame',
    'base_to_camera': '[[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]]',
    'work': '/tmp/work',
}

MINIMAL = {
    'name': 'mine',
    'source': 'https://example.org',
    'install': [],
    'program': {'command': ['mine']},
    'map': {'topic': '/map', 'type': 'sensor_msgs/msg/PointCloud2'},
}


def written(path, **changes):
    path.write_text(yaml.safe_dump({**MINIMAL, **changes}))
    return str(path)


@pytest.mark.parametrize('name', live_method_names())
def test_each_bundled_stack_needs_nothing_but_what_it_says(name):
    method = load_live_method(name)
    assert method.name == name
    filled = method.filled({**VALUES, **dict.fromkeys(method.variables, '/somewhere')})
    text = yaml.safe_dump(filled.model_dump(mode='json', exclude={'install', 'variables'}))
    assert '${' not in text
    # It would receive nothing without our names.
    assert VALUES['depth'] in text


def test_the_issue_names_these_stacks():
    assert {'rtabmap', 'hydra', 'khronos', 'dualmap', 'nvblox'} <= set(live_method_names())


def test_files_that_are_written_for_a_stack_are_yaml_of_its_own():
    method = load_live_method('dualmap').filled({**VALUES, 'python': 'python3', 'root': '/dm'})
    topics = yaml.safe_load(method.files['topics.yaml'])
    assert topics['ros_topics']['rgb'] == VALUES['color']
    assert topics['extrinsics'][3] == [0, 0, 0, 1]


def test_a_map_in_a_file_names_an_importer_that_exists():
    method = load_live_method('nvblox')
    assert method.map.importer in list_importers()
    assert method.finish.request['file_path'] == method.map.path


def test_an_unset_variable_is_named_with_its_meaning():
    with pytest.raises(ConfigError, match='needs the variable "python": Python interpreter'):
        load_live_method('dualmap').filled(VALUES)


def test_an_unknown_placeholder_is_named(tmp_path):
    path = written(tmp_path / 'x.yaml', program={'command': ['mine', '${colour}']})
    with pytest.raises(ConfigError, match=r'\$\{colour\} is unknown'):
        load_live_method(path).filled(VALUES)


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'program': None}, 'one of launch, nodes and program'),
        ({'nodes': [{'package': 'p', 'executable': 'e', 'name': 'n'}]}, 'one of launch'),
        ({'programm': {}}, 'unknown key "programm"'),
        ({'map': {'path': '/m.ply', 'importer': 'pointcloud'}}, 'needs the service'),
        ({'program': {'command': []}}, 'program.command'),
    ],
)
def test_a_wrong_file_is_named_with_the_fault(tmp_path, changes, message):
    path = written(tmp_path / 'wrong.yaml', **changes)
    with pytest.raises(ConfigError, match=message) as caught:
        load_live_method(path)
    assert 'wrong.yaml' in str(caught.value)


def test_an_unknown_stack_gets_a_suggestion():
    with pytest.raises(ConfigError, match='rtabmap'):
        load_live_method('rtabmapp')


def test_hydra_learns_our_classes():
    classes = (LabelClass(0, 'floor', True), LabelClass(1, 'sofa'), LabelClass(4, 'wall', True))
    space = yaml.safe_load(hydra_label_space(LabelSet('home', classes)))
    assert space['total_semantic_labels'] == 5
    assert space['object_labels'] == [1]
    assert space['surface_places_labels'] == [0]
    assert {'label': 4, 'name': 'wall'} in space['label_names']


UPSTREAM = Path(__file__).resolve().parents[1] / 'data' / 'upstream' / 'rtabmap_launch.json'


def test_the_live_file_gives_arguments_that_the_launch_file_declares():
    upstream = json.loads(UPSTREAM.read_text())
    method = load_live_method('rtabmap')
    assert (method.launch.package, method.launch.file) == ('rtabmap_launch', 'rtabmap.launch.py')
    assert set(method.launch.arguments) <= set(upstream['arguments'])
    # Its nodes and topics are in a namespace that the file leaves as it is.
    assert upstream['arguments']['namespace'] == method.map.topic.split('/')[1]
    assert set(method.participants) <= set(upstream['executables'])
