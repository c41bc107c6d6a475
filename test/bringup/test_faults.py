"""Faults of mappers, topics and folders in a live run, over real processes."""

import json
import re
import sys

import pytest
from support.fault_runs import COMMAND, failure, own_mounts, run_directory, start, success
from support.sizes import few
from support.world.runs import foreign, repeatable, small_config

from osmabench_ros.base.files import claim_folder

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

SLEEP = 'import time; time.sleep(1000)'
# Mischief, and words of the error that it must end with.
ROGUES = {
    'die': 'node "mapper" ended before the run: was killed by SIGABRT',
    'hang': 'no acknowledgement of frame 2 from mapper',
    'never_acknowledge': 'no acknowledgement of frame 2 from mapper',
    'wrong_labels': 'label ids [40000] are not in label set',
    'wrong_frame': 'the map is in frame "odom", the run in "world"',
    'nan': 'must be finite',
    'huge': 'topic "semantic_map": a message of 34603',
    'wrong_qos': 'QoS of publisher simulator_bridge (reliable, volatile) and subscriber mapper',
    'volatile_map': 'topic "semantic_map": QoS of publisher mapper',
    'intruder': 'topic "/semantic_map" has 2 publishers: /intruder and /mapper',
    'double': 'node "mapper" was started again after 3 frames, which it has forgotten, or another',
    'no_map': 'topic "semantic_map": the mapper published no map with is_final',
    'stop_nodes': 'no acknowledgement of frame 2 from',
    'stop_evaluator': 'no evaluation within 8 s',
    'no_chunks': 'map_recorder: 1 chunks of the announced map missing for',
}

ON_A_SMALL_DISK = (
    'mount -t tmpfs -o size=200m tmpfs "$0" && "$@"; code=$?; '
    'cp -r "$0"/small/*/bag "$0_kept"; exit $code'
)
ON_A_READ_ONLY_DISK = 'mount -t tmpfs -o ro tmpfs "$0" && exec "$@"'
IMPATIENT = """
from osmabench_ros.bringup.runner import one_run
from osmabench_ros.cli.main import main
one_run.STALL_MARGIN_S = 1.0
main()
"""


@pytest.fixture(scope='module')
def errors(request, prepared, tmp_path_factory):
    """Return the error of each rogue; one that fails does not keep the next from its run."""
    tests = [item for item in request.session.items if 'errors' in item.fixturenames]
    asked = {item.callspec.params['mischief'] for item in tests}
    folder = tmp_path_factory.mktemp('rogues')
    pacing = {'ack_timeout_s': 4.0, 'match_timeout_s': 60.0, 'evaluation_timeout_s': 8.0}
    config = small_config(mappers=[foreign(name) for name in sorted(asked)], pacing=pacing)
    prepared.put_into(folder / 'runs', config)
    failure(folder, start(folder, config), code=1)
    report = json.loads((folder / 'runs' / 'small' / 'report.json').read_text())
    runs = report['runs']
    return {run['run_id'].split('.foreign_')[1].split('.')[0]: run['error'] for run in runs}


# The first of these waits for a run of every rogue.
@pytest.mark.timeout(900)
@pytest.mark.parametrize('mischief', few(ROGUES, 'die'))
def test_a_mapper_that_misbehaves_is_told_by_name(mischief, errors):
    assert ROGUES[mischief] in ' '.join(errors[mischief].split())


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ('mischief', 'stopped'),
    [('stop_nodes', ['mapper', 'map_recorder', 'evaluator']), ('stop_evaluator', ['evaluator'])],
)
def test_nodes_that_are_stopped_for_long_are_named_and_ended(mischief, stopped, errors):
    _, _, reported = errors[mischief].partition('Stopped by a signal: ')
    assert re.findall(r'(\w+) \(process \d+\)', reported) == stopped
    assert reported.endswith('kill -CONT lets a process go on')


@pytest.mark.full
def test_two_runs_at_once_do_not_hear_each_other(prepared, tmp_path):
    """And a mapper may leave once its map is out."""
    folders = tmp_path / 'one', tmp_path / 'two'
    config = small_config(mappers=[foreign('leave')])
    for folder in folders:
        folder.mkdir()
        prepared.put_into(folder / 'runs', config)
    processes = [start(folder, config) for folder in folders]
    for process in processes:
        success(process)
    first, second = (repeatable(folder / 'runs' / 'small') for folder in folders)
    assert first == second != {}
    timings = json.loads((run_directory(folders[0], 'foreign_leave') / 'timings.json').read_text())
    mapper = next(item for item in timings['participants'] if item['name'] == 'mapper')
    assert (timings['frames'], mapper['mapped'], mapper['dropped']) == (5, 5, 0)


@pytest.mark.full
@pytest.mark.parametrize(('mischief', 'frames'), [('restart', 3), ('restart_before_map', 5)])
def test_a_mapper_that_is_started_anew_ends_the_run(mischief, frames, prepared, tmp_path):
    pacing = {'ack_timeout_s': 120.0, 'match_timeout_s': 60.0}
    config = small_config(mappers=[foreign(mischief)], pacing=pacing)
    prepared.put_into(tmp_path / 'runs', config)
    text = failure(tmp_path, start(tmp_path, config))
    assert f'node "mapper" was started again after {frames} frames' in text


@pytest.mark.full
def test_a_simulator_whose_clock_stops_ends_the_run(prepared, tmp_path):
    """Though the mapper lives by that clock: watchdogs do not."""
    command = (sys.executable, '-c', IMPATIENT, 'run')
    config = small_config(mappers=[foreign('stop_clock')], pacing={'ack_timeout_s': 4.0})
    prepared.put_into(tmp_path / 'runs', config)
    text = failure(tmp_path, start(tmp_path, config, command=command))
    assert 'node "simulator_bridge" published nothing for 5 s' in text
    log = run_directory(tmp_path, 'foreign_stop_clock') / 'logs' / 'mapper.log'
    assert 'the clock stands' in log.read_text()


@pytest.mark.full
def test_a_disk_that_fills_up_ends_the_run_and_keeps_what_was_recorded(tmp_path):
    from osmabench_ros.sequences.bags.bag import open_bag

    runs = tmp_path / 'runs'
    runs.mkdir()
    config = small_config(mappers=[foreign('fill_disk')], recording={'enabled': True})
    command = (*own_mounts(), 'sh', '-c', ON_A_SMALL_DISK, str(runs), *COMMAND)
    text = failure(tmp_path, start(tmp_path, config, command=command, TEST_DISK=str(runs)), 1)
    # The bag or the pictures of frames fail, whichever is first.
    assert re.search('node "(bag|map)_recorder" ended before the run: .*[Nn]o space left', text)
    with open_bag(tmp_path / 'runs_kept') as bag:
        stamps = [item.log_ns for item in bag.messages(['/ground_truth/camera_pose'])]
        assert 'bag_0.mcap is damaged: it is cut off' in bag.cut_off
        assert len(stamps) >= 2


@pytest.mark.full
def test_results_on_a_disk_that_is_read_only_are_refused_at_once(tmp_path):
    runs = tmp_path / 'runs'
    runs.mkdir()
    command = (*own_mounts(), 'sh', '-c', ON_A_READ_ONLY_DISK, str(runs), *COMMAND)
    text = failure(tmp_path, start(tmp_path, small_config(), command=command), 2)
    assert f'disk: {runs} is not a folder that can be written to (choose another --out)' in text
    assert list(runs.iterdir()) == []


@pytest.mark.full
def test_a_mapper_that_never_comes_is_told(prepared, tmp_path):
    config = small_config(
        mappers=[{'name': 'absent', 'command': [sys.executable, '-c', SLEEP]}],
        pacing={'match_timeout_s': 3.0},
    )
    prepared.put_into(tmp_path / 'runs', config)
    assert 'node "mapper" is not running' in failure(tmp_path, start(tmp_path, config))


@pytest.mark.full
@pytest.mark.parametrize(
    'name', few(['shared', 'apartment.seed_3.baseline.oracle.opengl.3/logs'], 'shared')
)
def test_a_file_in_the_place_of_results_is_refused_and_kept(tmp_path, name):
    claim_folder(tmp_path / 'runs' / 'small')
    blocked = tmp_path / 'runs' / 'small' / name
    blocked.parent.mkdir(parents=True, exist_ok=True)
    blocked.write_text('not a folder')
    text = failure(tmp_path, start(tmp_path, small_config()))
    assert name.split('/')[0] in text.replace('\n', '')
    assert blocked.read_text() == 'not a folder'
    assert not (tmp_path / 'runs' / 'small' / 'report.json').exists()
