"""The settings of the evaluation of a bag, and the model of its report.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.metrics.message_timing import MessageTiming, Staleness
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import TrajectorySettings
from osmabench_ros.runs.bag.map_alignment import MapAlignment
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.results.report_model import RunReport
from osmabench_ros.semantics.labels import LabelSet

BAG_SCHEMA = 'osmabench.bag_report/1'
TIMING_SUITE = 'bag_timing'

REFERENCE_FREE = (
    'reference-free: nothing here says whether the map is right; give --scene, --run, '
    '--ground-truth or --reference to score it'
)


class BagReport(RunReport):
    """The result of the evaluation of a bag; `transform` is that of the suites ``@aligned``.

    It takes map coordinates to those of the reference: x y z, quaternion x y z w, scale.
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
    """Return the timing records of every topic, and the staleness of the map."""
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


@dataclass(frozen=True)
class ReferenceChoice:
    """What a map is compared with: one of a scene, a run or a cloud, or none; else ConfigError."""

    scene: str = ''
    run: Path | None = None
    cloud: Path | None = None
    frame_id: str | None = None

    def __post_init__(self) -> None:
        given = [item for item in (self.scene, self.run, self.cloud) if item]
        if len(given) > 1:
            raise ConfigError(
                f'a map has one reference, not {len(given)}: '
                f'{", ".join(str(item) for item in given)}'
            )

    @property
    def exists(self) -> bool:
        """Whether there is a reference."""
        return bool(self.scene or self.run or self.cloud)


@dataclass(frozen=True)
class TrajectoryChoice:
    """Which trajectory to compare with which, by topic, ``/tf:PARENT.CHILD`` or TUM file."""

    estimate: str = ''
    reference: str = ''
    reference_file: Path | None = None
    settings: TrajectorySettings = field(default_factory=TrajectorySettings)

    def __post_init__(self) -> None:
        if self.reference and self.reference_file:
            raise ConfigError('give true poses by topic or by file, not both')
        if (self.reference or self.reference_file) and not self.estimate:
            raise ConfigError("true poses are given, but not the stack's own: add --pose-topic")


@dataclass(frozen=True)
class AlignmentChoice:
    """How the map is aligned; `transform` is that of `known`, or the first guess of `icp`."""

    kind: MapAlignment | None = None
    transform: Similarity | None = None


@dataclass(frozen=True)
class BagSource:
    """A bag, as `open_bag` takes it, and how to read and score it."""

    path: Path
    config: MatrixConfig
    msg_paths: tuple[Path, ...] = ()
    map_topic: str = ''
    at_s: float | None = None
    method: str = ''
    label_set: LabelSet | None = None
    reference: ReferenceChoice = field(default_factory=ReferenceChoice)
    alignment: AlignmentChoice = field(default_factory=AlignmentChoice)
    trajectory: TrajectoryChoice = field(default_factory=TrajectoryChoice)
    questions_file: Path | None = None
    text_features: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    device: str = 'auto'
    seed: int = 0
