import json

import pytest

from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.report_model import Record
from osmabench_ros.runs.timings import timings_of

IDENTITY = RunIdentity(SceneKey('d', 's', 3), 'camera', 'oracle', 'opengl')


def timings(**changes: object) -> dict:
    given = {
        'frames': 33,
        'frames_mapped': 30,
        'pacing': 'realtime',
        'mapping_s': 12.0,
        'peak_memory_bytes': {'mapper': 2**30, 'evaluator': 5},
        'mapper': 'mapper',
    }
    return timings_of(IDENTITY, **{**given, **changes})


def test_records_have_the_form_of_those_in_a_report() -> None:
    speed, memory = (Record.model_validate(item) for item in timings()['records'])
    assert {speed.run_id, memory.run_id} == {IDENTITY.run_id}
    assert {speed.suite, memory.suite} == {'timing'}
    assert (speed.metric, speed.value, speed.n) == ('mapping_frames_per_second', 2.5, 30)
    assert (memory.metric, memory.value) == ('mapper_peak_memory_bytes', 2**30)
    assert (speed.higher_is_better, memory.higher_is_better) == (True, False)


def test_the_figures_are_also_there_by_name() -> None:
    found = timings()
    assert found['mapping_frames_per_second'] == pytest.approx(2.5)
    assert found['mapper_peak_memory_bytes'] == 2**30
    assert (found['frames'], found['frames_mapped'], found['frames_dropped']) == (33, 30, 3)
    assert found['pacing'] == 'realtime'
    assert list(found['peak_memory_bytes']) == ['evaluator', 'mapper']


@pytest.mark.parametrize(
    'changes',
    [
        {'mapping_s': 0.0, 'peak_memory_bytes': {'mapper': 0}},
        {'frames_mapped': 0, 'peak_memory_bytes': {}},
    ],
)
def test_what_was_not_measured_is_not_zero(changes: dict) -> None:
    found = timings(**changes)
    for item in found['records']:
        record = MetricRecord.from_json({**item, 'mode': item['mode'] or ''})
        assert (record.value, record.applicable) == (None, False)
    assert found['mapping_frames_per_second'] is None
    json.dumps(found, allow_nan=False)
