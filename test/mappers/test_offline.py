import json
import os
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil
import pytest
import yaml

from osmabench_ros.base.configuration import described_names
from osmabench_ros.base.files import claim_folder, make_folder
from osmabench_ros.errors import ConfigError, MapError, RunError
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers import offline_method
from osmabench_ros.mappers.offline import OfflineMapper
from osmabench_ros.maps.storage import read_map, write_map
from osmabench_ros.semantics.labels import LabelSet

LABELS = LabelSet.from_names('small', ['chair', 'table', 'cup'])
CAMERA = Intrinsics(64, 48, 50.0, 51.0, 31.5, 23.5)
LIMITS = offline_method.Limits(60.0, 4 << 30)
STAND_IN = Path(__file__).with_name('stand_in_method.py')


def frame(index):
    color, depth_m = np.zeros((48, 64, 3), np.uint8), np.ones((48, 64), np.float32)
    return Frame(index, index * 40_000_000, Pose.from_yaw(0.1 * index), CAMERA, color, depth_m)


def stand_in(name, output, *configurations):
    """Return a method of config/methods with a command that runs the program next to this file."""
    command = (sys.executable, str(STAND_IN), name, '${sequence}', output, *configurations)
    update = {'commands': (command,), 'variables': {}, 'directory': '${work}'}
    return offline_method.load_method(name).model_copy(update=update)


def adapter(method, work, **limits):
    file = work.with_suffix('.yaml')
    file.write_text(yaml.safe_dump(method.model_dump(mode='json')))
    options = {'method': str(file), 'work': str(work), 'scene': 'apt_0', 'condition': 'baseline'}
    options['variables'] = {'weights': '/weights', 'openseg': '/openseg', 'gsa': '/gsa'}
    return OfflineMapper(label_set=LABELS, seed=7, options=options | limits)


@pytest.mark.parametrize(
    ('name', 'output', 'configurations', 'nodes'),
    [
        ('conceptgraphs', '${sequence}', ('${work}/dataset.yaml',), 5),
        ('bbq', '${output}', ('${work}/bbq.yaml',), 2),
        ('openscene', '${output}', (), 0),
        pytest.param(
            'hovsg', '${output}/replica', ('${dataset}/cam_params.json',), 2,
            marks=pytest.mark.full,
        ),
    ],
)  # fmt: skip
def test_a_method_maps_the_frames_it_is_given(tmp_path, name, output, configurations, nodes):
    if name == 'hovsg':
        pytest.importorskip('torch')
    mapper = adapter(stand_in(name, output, *configurations), tmp_path / 'work')
    for i in range(3):
        mapper.integrate(frame(i))
    early = mapper.semantic_map(final=False)
    assert not early.header.complete
    assert early.header.provenance.frames_used == 3
    made = mapper.semantic_map(final=True)
    assert mapper.semantic_map(final=True) is made
    assert len(made.graph.nodes) == nodes
    assert made.dense is not None
    assert made.header.complete
    assert made.header.stamp_ns == 80_000_000
    origin = made.header.provenance
    assert (origin.method, origin.frames_used) == (name, 3)
    assert (origin.scene, origin.condition) == ('apt_0', 'baseline')
    log = mapper.log.read_text()
    assert f'{name} reads 3 frames' in log
    assert log.count('configuration') == len(configurations)
    if configurations:
        assert '51.0' in log
        assert '6553.5' in log
    write_map(made, tmp_path / 'map')
    assert read_map(tmp_path / 'map').header == made.header


def test_a_method_that_finds_its_poses_begins_at_the_first_camera(tmp_path):
    mapper = adapter(stand_in('rtabmap', '${output}'), tmp_path / 'work')
    poses = [Pose.from_yaw(0.2 * i, (1.0, 0.1 * i, 1.4)) for i in range(4)]
    for i, pose in enumerate(poses):
        mapper.integrate(replace(frame(i), camera_pose=pose))
    made = mapper.semantic_map(final=True)
    for row, pose in enumerate(poses[:-1]):
        found = made.trajectory.pose(row)
        np.testing.assert_allclose(found.matrix, pose.matrix, atol=1e-6)
    lost, _, left_out = made.header.remark.partition('; ')
    assert lost == 'rtabmap found the poses of 3 of 4 frames'
    assert left_out.startswith('RTAB-Map lost track and began again (2 maps); 2 nodes')
    # Its calibration is where it looks: in the folder of the sequence.
    calibration = json.loads(mapper.log.read_text().partition('calibration ')[2].splitlines()[0])
    assert calibration['camera_matrix']['data'] == CAMERA.matrix.ravel().tolist()


def test_a_variable_may_stand_in_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv('OSMABENCH_HOVSG_PYTHON', sys.executable)
    monkeypatch.setenv('OSMABENCH_HOVSG_ROOT', '/elsewhere')
    found = offline_method.variables_of(offline_method.load_method('hovsg'), {'root': '/here'})
    assert found == {'python': sys.executable, 'root': '/here'}
    monkeypatch.delenv('OSMABENCH_HOVSG_PYTHON')
    with pytest.raises(ConfigError, match='"python": .* or set OSMABENCH_HOVSG_PYTHON'):
        offline_method.variables_of(offline_method.load_method('hovsg'), {'root': '/here'})


def python(code):
    return (sys.executable, '-c', code)


def failing(tmp_path, *commands, **limits):
    method = stand_in('bbq', '${output}').model_copy(update={'commands': commands})
    mapper = adapter(method, tmp_path / 'work', **limits)
    mapper.integrate(frame(0))
    return mapper


def test_a_method_that_fails_is_named_with_the_end_of_its_log(tmp_path):
    mapper = failing(tmp_path, python('print("no GPU"); raise SystemExit(3)'))
    with pytest.raises(RunError, match=r'(?s)ended with code 3.*bbq\.log.*no GPU'):
        mapper.semantic_map(final=True)


def test_a_command_after_one_that_failed_is_not_run(tmp_path):
    marker = tmp_path / 'ran'
    commands = 'raise SystemExit(1)', f'open({str(marker)!r}, "w")'
    mapper = failing(tmp_path, *map(python, commands))
    with pytest.raises(RunError, match='ended with code 1'):
        mapper.semantic_map(final=True)
    assert not marker.exists()


def test_a_method_that_leaves_no_map_is_named(tmp_path):
    with pytest.raises(MapError, match=r'bbq ran, but left no usable map: .*\*\.pkl\.gz'):
        failing(tmp_path, python('pass')).semantic_map(final=True)


def test_a_program_that_does_not_exist_is_named(tmp_path):
    with pytest.raises(RunError, match=r'cannot start the method \("/no/such/program"'):
        failing(tmp_path, ('/no/such/program',)).semantic_map(final=True)


def children_of(log):
    return [int(line) for line in log.read_text().splitlines() if line.isdigit()]


FAMILY = (
    'import subprocess, sys, time\n'
    'child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])\n'
    'print(child.pid, flush=True)\n'
)


def test_the_time_limit_ends_the_method_and_its_children(tmp_path):
    mapper = failing(tmp_path, python(FAMILY + 'time.sleep(600)'), time_limit_s=2.0)
    with pytest.raises(RunError, match='ran longer than allowed'):
        mapper.semantic_map(final=True)
    (child,) = children_of(mapper.log)
    assert not psutil.pid_exists(child)


def test_the_memory_limit_counts_children(tmp_path):
    child = 'import time; b = bytearray(400 << 20); time.sleep(600)'
    code = f'import subprocess, sys\nsubprocess.run([sys.executable, "-c", "{child}"])'
    mapper = failing(tmp_path, python(code), memory_limit_gib=0.2)
    with pytest.raises(RunError, match=r'GiB of memory, 0\.20 GiB are allowed'):
        mapper.semantic_map(final=True)


def test_what_a_method_leaves_running_is_ended(tmp_path):
    log = tmp_path / 'log'
    start = time.monotonic()
    offline_method.run_limited([python(FAMILY + 'time.sleep(0.5)')], tmp_path, {}, log, LIMITS)
    (child,) = children_of(log)
    assert not psutil.pid_exists(child)
    assert 0.5 <= time.monotonic() - start < 60


def test_the_environment_reaches_the_method(tmp_path):
    log = tmp_path / 'log'
    code = 'import os; print(os.environ["GSA_PATH"], "HOME" in os.environ, os.getcwd())'
    offline_method.run_limited([python(code)], tmp_path, {'GSA_PATH': '/gsa'}, log, LIMITS)
    assert f'/gsa {"HOME" in os.environ} {tmp_path}' in log.read_text()


def test_a_method_without_frames_says_so(tmp_path):
    mapper = adapter(stand_in('bbq', '${output}'), tmp_path / 'work')
    with pytest.raises(RunError, match='got no frame'):
        mapper.semantic_map(final=True)


def test_a_method_that_has_run_takes_no_frames(tmp_path):
    mapper = adapter(stand_in('bbq', '${output}'), tmp_path / 'work')
    mapper.integrate(frame(0))
    mapper.semantic_map(final=True)
    with pytest.raises(RunError, match='takes no further frames'):
        mapper.integrate(frame(1))


def test_a_variable_that_is_not_set_is_named(tmp_path):
    with pytest.raises(ConfigError, match='needs the variable "python": Python interpreter'):
        adapter(offline_method.load_method('conceptgraphs'), tmp_path / 'work')


def test_an_existing_sequence_is_not_overwritten(tmp_path):
    claim_folder(tmp_path / 'work')
    make_folder(tmp_path / 'work' / 'sequences' / 'apt_0')
    with pytest.raises(ConfigError, match='exists'):
        adapter(stand_in('bbq', '${output}'), tmp_path / 'work')


def test_every_method_has_a_file_that_can_be_filled():
    known = set(described_names('methods'))
    assert {'bbq', 'conceptgraphs', 'hovsg', 'openscene', 'rtabmap'} <= known
    names = ('sequence', 'dataset', 'scene', 'output', 'work', 'seed', 'frames', 'width',
             'pixels', 'height', 'fx', 'fy', 'cx', 'cy', 'depth_scale')  # fmt: skip
    for name in known:
        method = offline_method.load_method(name)
        assert method.name == name
        assert method.install
        if method.text_encoder is not None:
            assert all('{}' in template for template in method.text_encoder.templates)
        values = dict.fromkeys((*names, *method.variables), '1')
        kept = {'install', 'variables', 'text_encoder', 'sequence'}
        offline_method.filled(method.model_dump(exclude=kept), values, name)


def test_a_run_s_options_make_the_mapper(tmp_path):
    make = OfflineMapper
    variables = {'python': sys.executable, 'root': str(tmp_path)}
    options = {'method': 'hovsg', 'work': str(tmp_path / 'work'), 'variables': variables,
               'scene': 'apt_0', 'time_limit_s': 60.0}  # fmt: skip
    mapper = make(label_set=LABELS, seed=1, options=options)
    mapper.integrate(frame(0))
    assert not mapper.semantic_map(final=False).header.complete
    assert mapper.sequence.is_dir()
    with pytest.raises(RunError, match=r'semantic_segmentation\.py'):
        mapper.semantic_map(final=True)
    assert (tmp_path / 'work' / 'sequences' / 'apt_0' / 'traj.txt').is_file()
    assert mapper.log == tmp_path / 'work' / 'hovsg.log'


@pytest.mark.parametrize(
    ('change', 'message'),
    [({'scene': '../x'}, 'scene'), ({'speed': 1}, 'speed'), ({'time_limit_s': 0}, 'time_limit_s')],
)
def test_a_wrong_option_is_named(tmp_path, change, message):
    options = {'method': 'hovsg', 'work': str(tmp_path)} | change
    with pytest.raises(ConfigError, match=message):
        OfflineMapper(label_set=LABELS, seed=1, options=options)


def test_an_unknown_method_gets_a_suggestion():
    with pytest.raises(ConfigError, match='Did you mean "hovsg"'):
        offline_method.load_method('hov-sg')


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        ('name: x\n', r'm\.yaml: importer: Field required'),
        ('{', r'm\.yaml, line 2, column 1: is not YAML'),
        ('- 1', r'm\.yaml: '),
    ],
)
def test_a_malformed_file_is_named(tmp_path, text, message):
    (tmp_path / 'm.yaml').write_text(text)
    with pytest.raises(ConfigError, match=message):
        offline_method.load_method(str(tmp_path / 'm.yaml'))


@pytest.mark.parametrize('text', ['${weigths}', '$'])
def test_a_placeholder_that_does_not_exist_is_named(text):
    with pytest.raises(ConfigError, match=r'"bbq", commands\.0\.1: '):
        offline_method.filled([['${weights}', text]], {'weights': 'x'}, 'method "bbq", commands')
