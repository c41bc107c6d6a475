import math

import numpy as np
import pytest

from osmabench_ros.nodes.ack_listener import Acknowledgement, ParticipantStatistics


def test_percentiles_are_those_of_numpy():
    rng = np.random.default_rng(4)
    latencies, processing = rng.gamma(2.0, 0.1, 157), rng.uniform(0.01, 0.2, 157)
    statistics = ParticipantStatistics(['mapper'])
    for frame, (latency_s, spent_s) in enumerate(zip(latencies, processing, strict=True)):
        statistics.publish(frame, 10.0 * frame)
        word = Acknowledgement('mapper', frame, float(spent_s))
        assert statistics.receive(word, 10.0 * frame + float(latency_s))
        statistics.states()
    (summary,) = statistics.states()
    expected = [float(np.quantile(latencies, level)) for level in (0.5, 0.95, 0.99)]
    found = [summary.latency_p50, summary.latency_p95, summary.latency_p99, summary.latency_max]
    assert found == pytest.approx([*expected, latencies.max()], rel=1e-9)
    assert summary.processing_time_mean == pytest.approx(processing.mean())
    assert (summary.frames_acknowledged, summary.frames_mapped, summary.frames_dropped) == (
        157,
        157,
        0,
    )


def test_drops_are_the_gaps_before_the_newest_acknowledgement():
    statistics = ParticipantStatistics(['mapper', 'recorder'])
    for stamp in (100, 200, 300, 400, 500):
        statistics.publish(stamp, 0.0)
    for stamp in (100, 400):
        statistics.receive(Acknowledgement('mapper', stamp, mapped=stamp == 400), 1.0)
    mapper, recorder = statistics.states()
    assert (mapper.frames_acknowledged, mapper.frames_mapped, mapper.frames_dropped) == (2, 1, 2)
    assert (recorder.frames_acknowledged, recorder.frames_dropped) == (0, 0)
    # A mapper with several threads may acknowledge out of order.
    statistics.receive(Acknowledgement('mapper', 300), 1.0)
    assert statistics.states()[0].frames_dropped == 1


def test_repeated_foreign_and_unpublished_acknowledgements_say_nothing():
    statistics = ParticipantStatistics(['mapper'])
    statistics.publish(100, 0.0)
    assert not statistics.receive(Acknowledgement('undeclared', 100), 1.0)
    assert not statistics.receive(Acknowledgement('mapper', 999), 1.0)
    assert statistics.receive(Acknowledgement('mapper', 100), 1.0)
    assert not statistics.receive(Acknowledgement('mapper', 100), 2.0)
    assert statistics.states()[0].frames_acknowledged == 1


def test_the_latency_of_a_repeated_frame_counts_from_the_repetition():
    statistics = ParticipantStatistics(['mapper'])
    statistics.publish(100, 0.0)
    statistics.publish(100, 3.0)
    statistics.receive(Acknowledgement('mapper', 100), 3.25)
    summary = statistics.states()[0]
    assert summary.latency_p50 == summary.latency_max == pytest.approx(0.25)
    assert summary.frames_dropped == 0


def test_what_is_unknown_is_not_zero():
    statistics = ParticipantStatistics(['mapper'])
    summary = statistics.states()[0]
    assert math.isnan(summary.latency_p50)
    assert math.isnan(summary.latency_max)
    statistics.publish(1, 0.0)
    statistics.receive(Acknowledgement('mapper', 1, processing_time_s=0.0), 0.5)
    assert math.isnan(statistics.states()[0].processing_time_mean)
