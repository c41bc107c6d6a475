import json

import pytest
from pydantic import TypeAdapter

from osmabench_ros.errors import RunError
from osmabench_ros.metrics.message_timing import Staleness
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.timings import Measurements, Participation, read_measurements, timings_of

IDENTITY = RunIdentity(SceneKey('d', 's', 3), 'camera', 'oracle', 'opengl')


MAPPER = Participation('mapper', 33, 31, 30, 0.01, 0.02, 0.03, 0.04, 0.005)


def measurements(**changes):
    given = {
        'frames': 33,
        'pacing': 'realtime',
        'mapping_s': 12.0,
        'participants': (MAPPER, Participation('map_recorder', 33, 33, 33)),
        'peak_memory_bytes': {'mapper': 2**30, 'evaluator': 5},
        'mapper': 'mapper',
        'staleness': Staleness(1.5, 4.0, 0.25, 3),
        'speed_factor': 1.99,
    }
    return Measurements(**{**given, **changes})


def timings(**changes):
    return timings_of(IDENTITY, measurements(**changes))


def by_name(found):
    records = TypeAdapter(list[MetricRecord]).validate_python(found['records'])
    assert {item.suite for item in records} == {'timing'}
    assert {item.run_id for item in records} == {IDENTITY.run_id}
    return {(item.metric, item.class_name): item for item in records}


def test_records_have_the_form_of_those_in_a_report():
    records = by_name(timings())
    names = 'mapping_frames_per_second', 'mapper_peak_memory_bytes'
    speed, memory = (records[name, ''] for name in names)
    assert (speed.value, speed.n) == (2.5, 30)
    assert memory.value == 2**30
    assert (speed.higher_is_better, memory.higher_is_better) == (True, False)


def test_the_time_to_the_final_map_is_told_and_read(tmp_path):
    file = tmp_path / 'timings.json'
    for seconds in (41.5, None):
        file.write_text(json.dumps(timings(final_map_s=seconds)))
        assert read_measurements(file).final_map_s == seconds
    # Runs of before have none.
    file.write_text(json.dumps({k: v for k, v in timings().items() if k != 'final_map_s'}))
    assert read_measurements(file).final_map_s is None


def test_memory_of_gpus_is_a_record_and_not_applicable_without_one():
    assert not by_name(timings())['mapper_peak_gpu_memory_bytes', ''].applicable
    found = timings(peak_gpu_memory_bytes={'mapper': 7 * 2**20})
    record = by_name(found)['mapper_peak_gpu_memory_bytes', '']
    assert (record.value, record.higher_is_better) == (7 * 2**20, False)
    assert found['peak_gpu_memory_bytes'] == {'mapper': 7 * 2**20}


def test_frames_and_latencies_are_told_node_by_node():
    records = by_name(timings())
    for node, expected in (('mapper', [33, 31, 30, 2]), ('map_recorder', [33, 33, 33, 0])):
        names = ('published', 'received', 'mapped', 'dropped')
        assert [records[f'frames_{name}', node].value for name in names] == expected
    assert records['frame_loss', 'mapper'].value == pytest.approx(2 / 33)
    assert records['latency_p99_s', 'mapper'].value == 0.03
    assert not records['latency_p99_s', 'map_recorder'].applicable
    assert timings()['participants'][0]['latency_max_s'] == 0.04


def test_staleness_is_told_in_seconds():
    records = by_name(timings())
    values = [records[f'map_staleness_{name}_s', ''].value for name in ('mean', 'max', 'final')]
    assert values == [1.5, 4.0, 0.25]
    assert timings()['staleness'] == {'mean_s': 1.5, 'max_s': 4.0, 'final_s': 0.25, 'maps': 3}
    assert timings(staleness=None)['staleness'] is None


@pytest.mark.parametrize(
    'changes',
    [
        {'mapping_s': 0.0, 'peak_memory_bytes': {'mapper': 0}},
        {'participants': (), 'peak_memory_bytes': {}},
    ],
)
def test_what_was_not_measured_is_not_zero(changes):
    found = timings(**changes)
    records = by_name(found)
    for name in ('mapping_frames_per_second', 'mapper_peak_memory_bytes'):
        assert (records[name, ''].value, records[name, ''].applicable) == (None, False)
    json.dumps(found, allow_nan=False)


def test_a_mapper_that_says_nothing_lost_an_unknown_number_of_frames():
    found = timings(participants=())
    assert measurements(participants=()).mapping == Participation('mapper', 33)
    assert found['records'][0]['value'] is None


@pytest.mark.parametrize('changes', [{}, {'staleness': None, 'participants': ()}])
def test_measurements_come_back_from_the_file(tmp_path, changes):
    file = tmp_path / 'timings.json'
    assert read_measurements(file) is None
    file.write_text(json.dumps(timings(**changes)))
    assert read_measurements(file) == measurements(**changes)
    file.write_text('{"frames": 3}')
    with pytest.raises(RunError, match=r'timings\.json is malformed: .*start over with --fresh'):
        read_measurements(file)
