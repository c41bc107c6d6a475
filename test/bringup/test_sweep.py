"""Speeds that a mapper follows, with real processes over DDS."""

import json

import pytest
from support.world.runs import foreign, small_config

from osmabench_ros.base.progress import silent
from osmabench_ros.runs.config import SweepConfig, parse_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

SLOW, TOO_FAST = 1.0, 8.0
CONFIG = small_config(
    # Ten frames per second at most; the path has five per second of its time.
    mappers=[foreign('slow')],
    trajectory={'goals': 3, 'frame_rate_hz': 5.0, 'max_frames': 40},
    pacing={'ack_timeout_s': 30.0},
    # No run at twice the speed could hold this, but requirements are for the pacing they say.
    requirements=[{'suite': 'map_geometry', 'metric': 'coverage', 'at_least': 1.0}],
)


def sweep(out, *speeds):
    from osmabench_ros.bringup.runner.matrix_runner import run_sweep

    return run_sweep(
        parse_config(CONFIG, 'test'), out, SweepConfig(speeds=speeds), progress=silent
    )


@pytest.mark.full
@pytest.mark.alone
def test_a_slow_mapper_is_followed_to_its_limit_and_runs_are_kept(tmp_path):
    slow = sweep(tmp_path, SLOW)
    root = tmp_path / 'small_sweep'
    [first] = root.glob('*.x1/timings.json')
    written = first.read_bytes()
    report = sweep(tmp_path, TOO_FAST, SLOW)
    assert first.read_bytes() == written
    [series] = report.series
    followed, lost = series.points
    assert slow.series[0].points == (followed,)
    assert [point.error for point in series.points] == ['', '']
    assert (followed.speed_factor, followed.dropped, followed.loss) == (SLOW, 0, 0.0)
    assert lost.dropped is not None
    assert lost.dropped > 5
    assert lost.latency_p95_s is not None
    assert followed.latency_p95_s is not None
    assert lost.latency_p95_s > followed.latency_p95_s > 0.1
    assert series.fastest is followed
    assert series.verdict.startswith('fastest speed with at most 5 % loss: 1 (8: ')
    assert {record.speed_factor for record in lost.metrics} == {TOO_FAST}
    assert json.loads((root / 'report.json').read_text()) == report.model_dump(mode='json')
    assert 'loses too many' in (root / 'report.html').read_text()
