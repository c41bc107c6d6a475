"""The preflight check of a run names all errors at once, before any minute is spent."""

import resource
import shutil
import sys
import time
from collections import namedtuple

import pytest
from support.world.runs import matrix_config, small_config

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from osmabench_ros.bringup import isolation, preflight
from osmabench_ros.bringup.preflight import Severity, check_run, examine_run, examine_scene_files
from osmabench_ros.errors import ConfigError, MissingDependencyError, OsmabenchWarning
from osmabench_ros.scenes.loading import locate_scene

Usage = namedtuple('Usage', 'total used free')


@pytest.fixture(autouse=True)
def fine_machine(monkeypatch):
    monkeypatch.setattr(
        preflight, 'renderer', lambda: preflight.Finding('OpenGL', Severity.OK, 'fine')
    )


def config(**changes):
    return matrix_config(**small_config(**changes))


def found(part, tmp_path, **changes):
    [only] = [item for item in examine_run(config(**changes), tmp_path) if item.part == part]
    return only


def test_a_run_that_can_work_is_let_through_at_once(tmp_path):
    check_run(config(), tmp_path)
    start = time.process_time()
    check_run(config(), tmp_path / 'a' / 'b')
    assert time.process_time() - start < 1.0
    assert not (tmp_path / 'a').exists()


@pytest.mark.gl
def test_the_renderer_is_really_tried(tmp_path, monkeypatch):
    monkeypatch.undo()
    assert found('OpenGL', tmp_path).level is Severity.OK


def test_everything_that_is_wrong_is_named_at_once(tmp_path, monkeypatch):
    monkeypatch.delenv('OSMABENCH_HABITAT_PYTHON', raising=False)
    for name in ('GEMINI_API_KEY', 'GOOGLE_API_KEY'):
        monkeypatch.delenv(name, raising=False)
    wrong = config(
        scenes=[{'reference': str(tmp_path / 'none.scene_dataset_config.json')}],
        mappers=[
            {'name': 'lost', 'command': ['no_such_program_anywhere']},
            {'name': 'script', 'command': ['python3', 'no_such_mapper.py']},
            {'name': 'slam', 'command': ['python3'], 'publish_tf': 'world_to_base',
             'transforms': ['odom->base_link']},
        ],
        simulator={'name': 'habitat'},
        suites=[{'name': 'map_geometry', 'options': {'model': 'gemini:some-model'}}],
        text_features={'clip': str(tmp_path / 'clip.npy')},
    )  # fmt: skip
    with pytest.raises(ConfigError) as reported:
        check_run(wrong, tmp_path)
    for words in (
        'none.scene_dataset_config.json is not there',
        'mapper lost: "no_such_program_anywhere" is not a program',
        'mapper script: no_such_mapper.py is not there',
        'mapper slam: "publish_tf: world_to_base" contradicts "transforms: [odom->base_link]"',
        'no interpreter with Habitat-Sim',
        'GEMINI_API_KEY or GOOGLE_API_KEY is not set',
        'clip.npy of "clip"',
        'clip.json of "clip"',
    ):
        assert words in str(reported.value)


@pytest.mark.parametrize(
    ('options', 'needed'),
    [
        ({}, True),
        ({'base_url': 'https://api.openai.com/v1'}, True),
        ({'base_url': 'http://127.0.0.1:8000/v1'}, False),
    ],
)
def test_a_server_of_the_users_own_may_need_no_key(options, needed, tmp_path, monkeypatch):
    for name in ('OPENAI_API_KEY', 'OPENAI_BASE_URL'):
        monkeypatch.delenv(name, raising=False)
    suite = {'name': 'exact_questions', 'options': {'answerer': 'openai:some-model', **options}}
    findings = examine_run(config(suites=[suite]), tmp_path)
    assert ('language model' in {item.part for item in findings}) == needed


def test_a_missing_library_alone_is_a_missing_dependency(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, 'open3d', None)
    remedy = r'open3d: .*pip install -r .*beside_ros\.txt'
    with pytest.raises(MissingDependencyError, match=remedy):
        check_run(config(), tmp_path)


def test_who_publishes_tf_needs_tf(tmp_path, monkeypatch):
    mapper = {'name': 'slam', 'command': ['python3', '-m', 'slam']}
    edges = {'transforms': ['map->odom', 'odom->base_link']}
    monkeypatch.setattr(preflight, '_is_there', lambda name: name != 'tf2_ros')
    assert found('mapper slam', tmp_path, mappers=[mapper]).level is Severity.OK
    refused = found('mapper slam', tmp_path, mappers=[mapper | edges])
    assert refused.level is Severity.FAILED
    assert 'odom->base_link on TF, and tf2_ros is not installed' in refused.detail


def test_a_mapper_finds_the_python_of_the_run(tmp_path):
    mappers = [{'name': 'mine', 'command': ['python3', '-m', 'my_mapper']}]
    assert found('mapper mine', tmp_path, mappers=mappers).level is Severity.OK
    program = tmp_path / 'mapper'
    program.write_text('')
    mappers[0]['command'] = [str(program)]
    assert found('mapper mine', tmp_path, mappers=mappers).level is Severity.FAILED
    program.chmod(0o755)
    assert found('mapper mine', tmp_path, mappers=mappers).level is Severity.OK


def test_a_stack_needs_ros2_and_its_package(tmp_path, monkeypatch):
    mappers = [{'name': 'rtabmap', 'stack': 'rtabmap'}]
    programs = {'ros2': None}
    monkeypatch.setattr(shutil, 'which', lambda name, path: programs.get(name))
    assert 'there is no ros2' in found('mapper rtabmap', tmp_path, mappers=mappers).detail
    programs['ros2'] = '/opt/ros/bin/ros2'
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    finding = found('mapper rtabmap', tmp_path, mappers=mappers)
    assert finding.level is Severity.FAILED
    assert 'rtabmap_launch is not installed' in finding.detail
    assert 'apt install' in finding.remedy
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    (index / 'rtabmap_launch').write_text('')
    monkeypatch.setattr(preflight, '_is_there', lambda _name: True)
    assert found('mapper rtabmap', tmp_path, mappers=mappers).level is Severity.OK


def test_a_full_disk_is_told_with_what_is_needed(tmp_path, monkeypatch):
    monkeypatch.setattr(shutil, 'disk_usage', lambda _path: Usage(10**9, 0, 120 * 2**20))
    disk = found('disk', tmp_path)
    assert disk.level is Severity.FAILED
    assert '1 runs take about 150 MiB' in disk.detail
    many = config(seeds={'path': [1, 2, 3], 'method': [1, 2]})
    assert '6 runs take about 600 MiB' in preflight._check_disk(many, tmp_path).detail
    blocker = tmp_path / 'file'
    blocker.write_text('')
    assert 'not a folder' in found('disk', blocker).detail


def test_little_shared_memory_is_a_warning(tmp_path, monkeypatch):
    small, real = tmp_path / 'shm', shutil.disk_usage
    small.mkdir()
    monkeypatch.setattr(isolation, 'FOLDER', small)
    monkeypatch.setattr(
        shutil, 'disk_usage', lambda path: Usage(2**26, 0, 2**26) if path == small else real(path)
    )
    vga, hd = {'width': 640, 'height': 480}, {'width': 1280, 'height': 720}
    assert found('shared memory', tmp_path, camera=vga).level is Severity.OK
    words = '7.0 MiB for each process, 11.4 MiB per frame'
    with pytest.warns(OsmabenchWarning, match=words) as reported:
        check_run(config(camera=hd), tmp_path)
    assert '--shm-size' in str(reported[0].message)


def test_a_low_limit_of_open_files_is_told(tmp_path, monkeypatch):
    monkeypatch.setattr(resource, 'getrlimit', lambda _what: (64, 4096))
    assert found('open files', tmp_path).level is Severity.FAILED


def data_set(folder):
    reference = folder / 'house.scene_dataset_config.json'
    reference.write_text('{}')
    (folder / 'objects').mkdir()
    (folder / 'objects' / 'chair.glb').write_bytes(b'glTF' + bytes(100))
    return reference


@pytest.mark.parametrize(
    ('file', 'content', 'words'),
    [
        ('objects/table.glb', b'version https://git-lfs.github.com/spec/v1\n', 'git lfs pull'),
        ('objects/table.glb', b'', 'table.glb is damaged'),
        ('objects/table.glb', b'<html>', 'table.glb is damaged'),
        ('house.scene_dataset_config.json', b'{', 'is not JSON'),
    ],
    ids=range(4),
)
def test_broken_scene_files_are_named(file, content, words, tmp_path):
    reference = data_set(tmp_path)
    (tmp_path / file).write_bytes(content)
    finding = examine_scene_files(reference)
    assert finding.level is Severity.FAILED
    assert words in finding.detail


def test_scenes_that_can_be_loaded_pass(tmp_path):
    info = tmp_path / 'room_0' / 'habitat' / 'info_semantic.json'
    info.parent.mkdir(parents=True)
    info.write_text('{}')
    den = '{name: den, rooms: [{room: den, objects: [{class: bed}]}]}'
    (tmp_path / 'den.yaml').write_text(den)
    references = (tmp_path / 'room_0', tmp_path / 'den.yaml', locate_scene('office'))
    for reference in (data_set(tmp_path), *references):
        assert examine_scene_files(reference).level is Severity.OK
    (tmp_path / 'den.yaml').write_text(den.replace('class', 'clas'))
    finding = examine_scene_files(tmp_path / 'den.yaml')
    assert finding.level is Severity.FAILED
    assert 'clas' in finding.detail
