import math

import pytest
import yaml

from osmabench_ros.base.configuration import SUITES, extension_names
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs import config as settings
from osmabench_ros.runs.evaluation import make_suites
from osmabench_ros.runs.plan import config_digest
from osmabench_ros.suites.suite import models_asked_by

TWICE = [{'name': name} for name in ('instances', 'map_geometry', 'instances')]
SMALLEST = {'name': 'small', 'mappers': [{'name': 'oracle'}], 'suites': [{'name': 'map_geometry'}]}


def parsed(**parts):
    return settings.parse_config({**SMALLEST, **parts}, 'test.yaml')


def test_what_is_left_out_has_a_default():
    config = parsed()
    assert config.scenes == (settings.SceneConfig(reference='apartment', scene='', seed=0),)
    assert config.conditions == ('baseline',)
    assert config.simulator.name == 'opengl'
    assert config.pacing.mode is settings.PacingMode.LOCKSTEP
    assert config.requirements == ()
    assert config.text_features == {}


@pytest.mark.parametrize(
    ('parts', 'message'),
    [
        ({'mapers': []}, r'unknown key "mapers"\. Did you mean "mappers"\?'),
        ({'suites': TWICE}, r'suites: .*suite "instances" is there twice'),
        ({'camera': {'widht': 64}}, r'camera: unknown key "widht"\. Did you mean "width"\?'),
        ({'camera': {'hfov_deg': 180}}, r'camera\.hfov_deg: .*less than '),
        ({'camera': {'width': 'wide'}}, r'camera\.width: '),
        ({'camera': {'near_m': math.nan}}, r'camera\.near_m: '),
        ({'trajectory': {'max_frames': 1}}, r'trajectory\.max_frames: .*greater than or equal'),
        ({'pacing': {'mode': 'warp'}}, r"pacing\.mode: .*'lockstep' or 'realtime'"),
        ({'scenes': [{'seed': -1}]}, r'scenes\.0\.seed: '),
        ({'mappers': []}, r'mappers: must not be empty'),
        ({'conditions': []}, r'conditions: must not be empty'),
        ({'suites': []}, r'suites: must not be empty'),
        ({'mappers': [{'name': '../x'}]}, r'mappers\.0\.name: a name consists of'),
    ],
)
def test_what_is_wrong_is_named_with_file_and_key(parts, message):
    with pytest.raises(ConfigError, match=rf'^configuration test\.yaml: .*{message}'):
        parsed(**parts)


def test_suites_may_be_left_out_and_those_that_ask_no_model_are_run():
    smallest = {key: SMALLEST[key] for key in ('name', 'mappers')}
    config = settings.parse_config(smallest, 'test.yaml')
    names = {item.name for item in config.suites}
    not_run = {'openlex3d', 'map_trajectory', 'cospace', 'grounding', 'hypo3d', 'promptgt',
               'scene_changes', 'space3d'}  # fmt: skip
    assert names == set(extension_names(SUITES)) - not_run
    assert not any(models_asked_by(suite) for suite in make_suites(config.suites))
    listed = parsed(suites=[{'name': item.name} for item in config.suites])
    assert config_digest(listed) == config_digest(config)


def test_a_name_and_mappers_are_needed():
    for key in ('name', 'mappers'):
        data = {name: value for name, value in SMALLEST.items() if name != key}
        with pytest.raises(ConfigError, match=f'test.yaml: {key}: Field required'):
            settings.parse_config(data, 'test.yaml')


def test_a_file_is_read_and_a_bundled_one_is_found_by_name(tmp_path, monkeypatch):
    path = tmp_path / 'small.yaml'
    path.write_text(yaml.safe_dump(SMALLEST))
    assert settings.load_config(str(path)) == parsed()
    assert settings.load_config('demo').name == 'demo'
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'demo').mkdir()
    assert settings.load_config('demo').name == 'demo', 'a results folder is not a configuration'


def test_configurations_that_do_not_exist_are_named(tmp_path):
    with pytest.raises(ConfigError, match=r'absent\.yaml does not exist'):
        settings.load_config(str(tmp_path / 'absent.yaml'))
    with pytest.raises(ConfigError, match=r'configuration "deno"\. Did you mean "demo"\?'):
        settings.load_config('deno')


def test_another_scene_gives_the_matrix_another_name():
    config = parsed()
    other = settings.with_scene(config, 'data/house.scene_dataset_config.json', 4)
    assert other.name == 'small_house_4'
    [scene] = other.scenes
    assert (scene.reference, scene.seed) == ('data/house.scene_dataset_config.json', 4)
    assert settings.with_scene(config, 'apartment', 0) is config
    assert config.name == 'small'


def test_a_camera_knows_its_intrinsics():
    camera = settings.CameraConfig(width=640, height=480, hfov_deg=90.0, pitch_deg=30.0)
    assert camera.intrinsics.fx == pytest.approx(320.0)
    assert camera.intrinsics.fy == pytest.approx(320.0)
    assert camera.mount.pitch_rad == pytest.approx(math.pi / 6)


def test_maps_that_exist_are_scored_by_a_configuration_of_suites_only(tmp_path):
    path = tmp_path / 'suites.yaml'
    path.write_text('suites: [{name: map_geometry}]\n')
    assert [item.name for item in settings.load_scoring(str(path)).suites] == ['map_geometry']
    assert isinstance(settings.load_scoring('demo'), settings.MatrixConfig)
    path.write_text('suites: [{name: map_geometry}]\nconditions: [baseline]\n')
    with pytest.raises(ConfigError, match='mappers'):
        settings.load_scoring(str(path))


def made(**data):
    return validated(settings.MapperConfig, {'name': 'mine', **data}, 'test')


def test_a_bundled_mapper_may_take_part_under_another_name():
    assert made().bundled == 'mine'
    assert made(implementation='noisy_oracle', options={'label_noise': 0.1}).bundled == (
        'noisy_oracle'
    )


def test_a_stack_cannot_acknowledge_frames_whatever_is_said():
    assert made(stack='rtabmap', acks=True).acks is False
    assert made(stack='rtabmap').bundled == ''


def test_a_command_may_publish_another_kind_of_map():
    mapper = made(command=['node'], map_topic='/cloud')
    assert (mapper.map_type, mapper.acks, mapper.bundled) == (
        'sensor_msgs/msg/PointCloud2', False, ''
    )  # fmt: skip


def test_of_nodes_with_a_map_topic_acknowledges_only_one_that_is_said_to():
    assert made(command=['node']).acks
    assert made(command=['node'], map_topic='/cloud', acks=True).acks


@pytest.mark.parametrize(
    ('data', 'message'),
    [
        ({'command': ['a'], 'stack': 'b'}, 'leave out one of command and stack'),
        ({'command': ['a'], 'options': {'b': 1}}, 'leave out one of command and implementation'),
        ({'map_topic': '/cloud'}, 'map_topic says where the node of a command publishes'),
        ({'variables': {'root': '/x'}}, 'variables belong to a stack'),
        (
            {'command': ['a'], 'map_type': 'std_msgs/msg/String'},
            "PointCloud2'.*it is 'std_msgs/msg/String'",
        ),
        ({'command': ['a'], 'settle_s': 9}, 'settle_s is about the map of a map_topic or stack'),
        ({'map_topik': '/cloud'}, 'map_topic'),
    ],
)
def test_contradictions_are_named(data, message):
    with pytest.raises(ConfigError, match=message):
        made(**data)
