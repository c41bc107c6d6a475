"""Times and losses of mapping: timings.json, the one file of a run that differs in repeats."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from osmabench_ros.base.strict import read_model
from osmabench_ros.metrics.message_timing import Staleness
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.report_model import join_run

SUITE = 'timing'


@dataclass(frozen=True)
class Participation:
    """Frames and latencies of one node; None where they are unknown.

    `received` frames were acknowledged, mapped or not; `mapped` ones went into its map. Latency is
    the steady time from the publication of a frame to its acknowledgement; `processing_mean_s` is
    the time per frame, as the node says.
    """

    name: str
    published: int
    received: int | None = None
    mapped: int | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    latency_p99_s: float | None = None
    latency_max_s: float | None = None
    processing_mean_s: float | None = None

    @property
    def dropped(self) -> int | None:
        """Frames that it did not acknowledge; None if that is unknown."""
        return None if self.received is None else max(0, self.published - self.received)

    @property
    def loss(self) -> float | None:
        """Fraction of the published frames that were dropped, 0 to 1."""
        if self.dropped is None or not self.published:
            return None
        return self.dropped / self.published

    def to_json(self) -> dict[str, Any]:
        """Return a JSON-serialisable form with the derived values."""
        return {**asdict(self), 'dropped': self.dropped, 'loss': self.loss}

    def records(self) -> Iterator[MetricRecord]:
        """Yield the values as records with the node as class name."""
        counts = ('published', 'received', 'mapped', 'dropped')
        names = {f'frames_{name}': name for name in counts} | {'frame_loss': 'loss'}
        names |= {name: name for name in vars(self) if name.startswith('latency_')}
        names['processing_time_mean_s'] = 'processing_mean_s'
        for metric, name in names.items():
            value = getattr(self, name)
            better = metric.endswith(('published', 'received', 'mapped'))
            n = 0 if value is None else self.published
            yield MetricRecord(SUITE, '', metric, self.name, value, n=n, higher_is_better=better)


TIMINGS = 'timings.json'


@dataclass(frozen=True)
class Measurements:
    """Measurements of a run; memory is sampled, by node.

    `pacing` and `speed_factor`, stamp seconds per wall second, are as they really were;
    `mapping_s` is the time that the mapper spent on frames, `final_map_s` the wall time from the
    last of them to its final map, in which a method that runs offline does its work. The speed of
    one frame is None, an unknown time 0; GPU memory lacks nodes that used none. `runs_at_once` is
    how many runs may have shared the machine.
    """

    pacing: str
    frames: int
    mapper: str
    mapping_s: float = 0.0
    participants: tuple[Participation, ...] = ()
    peak_memory_bytes: Mapping[str, int] = field(default_factory=dict)
    staleness: Staleness | None = None
    speed_factor: float | None = None
    peak_gpu_memory_bytes: Mapping[str, int] = field(default_factory=dict)
    runs_at_once: int = 1
    final_map_s: float | None = None

    @property
    def mapping(self) -> Participation:
        """Participation of the mapper."""
        found = {item.name: item for item in self.participants}
        return found.get(self.mapper, Participation(self.mapper, self.frames))

    @property
    def frames_per_second(self) -> float | None:
        """Frames that the mapper maps a second, None if unknown."""
        mapped = self.mapping.mapped
        return mapped / self.mapping_s if mapped and self.mapping_s > 0 else None

    @property
    def mapper_memory_bytes(self) -> int | None:
        """Peak memory of the mapper, None if unknown."""
        return self.peak_memory_bytes.get(self.mapper) or None

    @property
    def mapper_gpu_memory_bytes(self) -> int | None:
        """Peak GPU memory of the mapper, None if unknown or if it used none."""
        return self.peak_gpu_memory_bytes.get(self.mapper) or None


_RECORDS = TypeAdapter(tuple[MetricRecord, ...])


def timings_of(identity: RunIdentity, measured: Measurements) -> dict[str, Any]:
    """Return the content of timings.json: measurements, and metrics as ``'records'``."""
    return {
        **asdict(measured),
        'run_id': identity.run_id,
        'participants': [item.to_json() for item in measured.participants],
        'records': _RECORDS.dump_python(join_run(identity, _records(measured)), mode='json'),
    }


def read_measurements(file: Path) -> Measurements | None:
    """Read frames and latencies from timings.json of a run; None if the file is missing."""
    return read_model(Measurements, file) if file.exists() else None


def _records(measured: Measurements) -> Iterator[MetricRecord]:
    rate, mapped = measured.frames_per_second, measured.mapping.mapped or 0
    yield MetricRecord(SUITE, '', 'mapping_frames_per_second', value=rate, n=mapped)
    for name in ('memory_bytes', 'gpu_memory_bytes'):
        memory = getattr(measured, f'mapper_{name}')
        yield _cost(f'mapper_peak_{name}', memory, 0 if memory is None else 1)
    if measured.pacing == 'realtime':
        speed = measured.speed_factor
        yield MetricRecord(SUITE, '', 'speed_factor', value=speed, n=measured.frames)
    if (stale := measured.staleness) is not None:
        for name in ('mean_s', 'max_s', 'final_s'):
            yield _cost(f'map_staleness_{name}', getattr(stale, name), stale.maps)
    for participant in measured.participants:
        yield from participant.records()


def _cost(metric: str, value: float | None, n: int) -> MetricRecord:
    return MetricRecord(SUITE, '', metric, value=value, n=n, higher_is_better=False)
