"""What report.json says of a recorded map."""

from __future__ import annotations

from collections.abc import Iterator

from osmabench_ros.metrics.message_timing import MessageTiming
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.staleness import Staleness
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.runs.report_model import RunReport

BAG_SCHEMA = 'osmabench.bag_report/1'
TIMING_SUITE = 'bag_timing'

REFERENCE_FREE = (
    'reference-free: nothing here says whether the map is right; give --scene, --run, '
    '--ground-truth or --reference to score it'
)


class BagReport(RunReport):
    """The result of the evaluation of a bag.

    `reference` is empty if there was none; `transform` is what took map coordinates to those of
    the reference for the suites that end with ``@aligned``: x y z, quaternion x y z w, scale.
    """

    schema_name: str = BAG_SCHEMA
    bag: str
    map_topic: str
    map_type: str
    frame_id: str
    stamp_ns: int
    reference: str = ''
    transform: tuple[float, ...] = ()


def timing_records(content: BagContent, map_topic: str) -> list[MetricRecord]:
    """Return when the messages of every topic came, and how far the map lagged behind.

    Latencies of topics whose stamps are not of the recorder's clock, and staleness without
    images, are not applicable.
    """
    timings = content.timings()
    records = [item for topic in timings for item in _of_topic(topic, timings[topic])]
    return [*_of_map(timings[map_topic], content.staleness(map_topic)), *records]


def _of_map(timing: MessageTiming, staleness: Staleness | None) -> Iterator[MetricRecord]:
    figures: tuple[tuple[str, float | None, bool], ...] = (
        ('map_updates', timing.count, True),
        ('map_rate_hz', timing.rate_hz, True),
        ('map_latency_p50_s', timing.latency_p50_s, False),
        ('map_latency_p95_s', timing.latency_p95_s, False),
        ('map_staleness_mean_s', None if staleness is None else staleness.mean_s, False),
        ('map_staleness_max_s', None if staleness is None else staleness.max_s, False),
    )
    for metric, value, better in figures:
        yield _record(metric, value, '', timing.count, better)


def _of_topic(topic: str, timing: MessageTiming) -> Iterator[MetricRecord]:
    for metric, value, better in (
        ('messages', timing.count, True),
        ('rate_hz', timing.rate_hz, True),
        ('longest_interval_s', timing.longest_interval_s, False),
        ('gaps', timing.gaps, False),
        ('latency_p50_s', timing.latency_p50_s, False),
        ('latency_p95_s', timing.latency_p95_s, False),
        ('latency_max_s', timing.latency_max_s, False),
    ):
        yield _record(metric, value, topic, timing.count, better)


def _record(metric: str, value: float | None, name: str, count: int, better: bool) -> MetricRecord:
    return MetricRecord(TIMING_SUITE, '', metric, name, value, n=count, higher_is_better=better)
