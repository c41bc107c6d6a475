import pytest

from osmabench_ros.metrics.message_timing import Staleness
from osmabench_ros.runs.config import SweepConfig
from osmabench_ros.runs.report_model import RunReport, Status
from osmabench_ros.runs.sweep import SweepPoint, SweepSeries, point_of, search, tries_of
from osmabench_ros.runs.timings import Measurements, Participation


@pytest.mark.parametrize('length', [1, 2, 3, 4, 9, 13, 25])
def test_the_search_finds_the_edge_wherever_it_is(length):
    speeds = [1.5**i for i in range(length)]
    for edge in range(length + 1):
        tried = []

        def follows(speed, edge=edge, tried=tried):
            assert speed not in tried, 'a run is not made twice'
            tried.append(speed)
            return speeds.index(speed) < edge

        assert search(speeds, follows) == (speeds[edge - 1] if edge else None)
        assert len(tried) <= tries_of(speeds)
    assert search([], lambda _speed: True) is None


def test_the_grid_is_geometric_and_has_both_ends():
    grid = SweepConfig(lowest=0.5, highest=4.0).grid
    assert grid == (0.5, 0.707, 1.0, 1.41, 2.0, 2.83, 4.0)
    assert SweepConfig(lowest=1.0, highest=3.0).grid == (1.0, 1.41, 2.0, 2.83, 3.0)
    assert SweepConfig(lowest=2.0, highest=2.0).grid == (2.0,)


@pytest.mark.parametrize(
    'wrong', [{'lowest': 2.0, 'highest': 1.0}, {'speeds': [0]}, {'max_loss': 1.0}, {'speed': [1]}]
)
def test_a_sweep_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match='speed|highest|max_loss'):
        SweepConfig.model_validate(wrong)


def point(speed, loss, **parts):
    given = {'reached_speed_factor': speed, 'frames': 1000, **parts}
    return SweepPoint(run_id=str(speed), speed_factor=speed, loss=loss, **given)


def series(*points):
    return SweepSeries(
        dataset='d', scene='s', seed=0, condition='c', mapper='m', max_loss=0.05, points=points
    )


@pytest.mark.parametrize(
    ('points', 'fastest', 'words'),
    [
        ([point(1, 0.0), point(2, 0.05), point(4, 0.051)], 2, 'loss: 2 (4: 5.1 % loss)'),
        ([point(1, 0.0), point(2, 0.0)], 2, 'loss: 2, the fastest that was tried'),
        ([point(1, 0.5)], None, 'no speed with at most 5 % loss found; at 1: 50.0 % loss'),
        (
            [point(1, 0.0), point(8, 0.0, reached_speed_factor=5.25)],
            1,
            'loss: 1 (8: the simulator reached no more than 5.25)',
        ),
        # Frames lost below a speed would be lost at it.
        ([point(1, 0.0), point(8, 0.3, reached_speed_factor=5.25)], 1, 'loss: 1 (8: 30.0 % loss)'),
        # A faster speed may be followed by luck; what matters is that slower ones are not.
        ([point(1, 0.0), point(2, 0.2), point(4, 0.0)], 1, 'loss: 1 (2: 20.0 % loss)'),
        ([point(1, None)], None, 'unknown loss'),
        ([point(1, None, error='mapper died')], None, 'at 1: failed: mapper died'),
        ([], None, 'no speed with at most 5 % loss found'),
    ],
)
def test_the_verdict(points, fastest, words):
    made = series(*points)
    assert (made.fastest.speed_factor if made.fastest else None) == fastest
    assert words in made.verdict


def test_a_sweep_that_is_too_short_to_tell_says_so():
    assert series(point(1, 0.0)).remark == ''
    assert '200 frames or more' in series(point(1, 0.0, frames=60)).remark


def test_a_point_joins_report_and_measurements():
    measured = Measurements(
        'realtime',
        40,
        'mapper',
        participants=(Participation('mapper', 40, 38, 37, latency_p50_s=0.5),),
        staleness=Staleness(1.0, 2.0, 0.0, 1),
        speed_factor=1.9,
    )
    report = RunReport(run_id='r', status=Status.COMPLETE)
    found = point_of(2.0, report, measured)
    assert (found.loss, found.dropped, found.mapped) == (0.05, 2, 37)
    assert (found.latency_p50_s, found.staleness_mean_s) == (0.5, 1.0)
    assert found.follows(0.05)
    failed = RunReport(run_id='r', status=Status.FAILED, error='why')
    assert not point_of(2.0, failed, measured).follows(0.05)
    assert 'not timed' in point_of(2.0, report, None).error
