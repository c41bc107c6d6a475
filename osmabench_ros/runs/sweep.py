"""Search for the fastest speed that a mapper can keep up with."""

from bisect import bisect_left
from collections.abc import Callable, Sequence

from pydantic import Field

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import RequirementError, RunError
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.report_model import RunReport, Status
from osmabench_ros.runs.timings import Measurements

SCHEMA = 'osmabench.sweep/1'
# A run at less than this share of the speed asked for says nothing about that speed.
REACHED_SHARE = 0.9

# Frames that wait in the queues of a realtime subscriber before any is lost.
QUEUE_FRAMES = 10


_OF_MAPPING = ('received', 'mapped', 'dropped', 'loss', 'latency_p50_s', 'latency_p95_s')


class SweepPoint(Strict):
    """A run at one speed; null where a value is unknown."""

    run_id: str
    speed_factor: float
    reached_speed_factor: float | None = None
    frames: int = 0
    received: int | None = None
    mapped: int | None = None
    dropped: int | None = None
    loss: float | None = None
    latency_p50_s: float | None = None
    latency_p95_s: float | None = None
    staleness_mean_s: float | None = None
    error: str = ''
    metrics: tuple[MetricRecord, ...] = ()

    @property
    def reached(self) -> bool:
        """Whether the frames were really published that fast."""
        speed = self.reached_speed_factor
        return speed is None or speed >= REACHED_SHARE * self.speed_factor

    def loses(self, max_loss: float) -> bool:
        """Return whether the mapper is known not to keep up, at this speed or one below it."""
        return not self.error and self.loss is not None and self.loss > max_loss

    def follows(self, max_loss: float) -> bool:
        """Return whether the mapper is known to keep up at this speed."""
        return not self.error and self.reached and self.loss is not None and self.loss <= max_loss


class SweepSeries(Strict):
    """One mapper on one scene under one condition, at several speeds."""

    dataset: str
    scene: str
    seed: int
    path_seed: int | None = None
    method_seed: int | None = None
    condition: str
    mapper: str
    max_loss: float
    points: tuple[SweepPoint, ...]

    @property
    def title(self) -> str:
        """Mapper, condition and scene."""
        given = (('path', self.path_seed), ('method', self.method_seed))
        seeds = ''.join(f', {name} seed {seed}' for name, seed in given if seed is not None)
        return f'{self.mapper} · {self.condition} · {self.dataset} {self.scene}{seeds}'

    @property
    def fastest(self) -> SweepPoint | None:
        """The fastest speed that the mapper kept up with, as with all slower ones tried."""
        found = None
        for point in self.points:
            if not point.follows(self.max_loss):
                break
            found = point
        return found

    @property
    def verdict(self) -> str:
        """One sentence."""
        loss, best = f'{100 * self.max_loss:g} % loss', self.fastest
        if best is None:
            first = self.points[0] if self.points else None
            reached = f'; at {first.speed_factor:g}: {self._outcome(first)}' if first else ''
            return f'no speed with at most {loss} found{reached}'
        rest = [point for point in self.points if point.speed_factor > best.speed_factor]
        text = f'fastest speed with at most {loss}: {best.speed_factor:g}'
        if not rest:
            return f'{text}, the fastest that was tried'
        return f'{text} ({rest[0].speed_factor:g}: {self._outcome(rest[0])})'

    def _outcome(self, point: SweepPoint) -> str:
        if point.error:
            return f'failed: {point.error}'
        if point.loss is None:
            return 'unknown loss; the mapper neither acknowledges frames nor counts them'
        if point.reached or point.loses(self.max_loss):
            return f'{100 * point.loss:.1f} % loss'
        return f'the simulator reached no more than {point.reached_speed_factor:.3g}'

    @property
    def remark(self) -> str:
        """Why the verdict is doubtful; '' if it is not."""
        frames = max((point.frames for point in self.points), default=0)
        if frames and frames * self.max_loss < QUEUE_FRAMES:
            needed = round(QUEUE_FRAMES / self.max_loss) if self.max_loss else 0
            more = f'; {needed} frames or more would decide' if needed else ''
            return (
                f'with {frames} frames the queues of {QUEUE_FRAMES} frames can hide that a mapper '
                f'falls behind{more}'
            )
        return ''


class SweepReport(Strict):
    """Results of `osmabench run --speeds`."""

    schema_name: str = SCHEMA
    name: str
    max_loss: float
    series: tuple[SweepSeries, ...]
    verdicts: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    hashes: dict[str, str] = Field(default_factory=dict)

    def check_verdict(self) -> None:
        """Raise RunError if a run failed, RequirementError if a mapper followed at no speed."""
        points = [point for series in self.series for point in series.points if point.error]
        if points:
            failed = '; '.join(f'{point.run_id}: {point.error}' for point in points)
            raise RunError(f'{len(points)} runs failed. {failed}')
        lost = [f'{item.title}: {item.verdict}' for item in self.series if item.fastest is None]
        if lost:
            raise RequirementError('; '.join(lost))


def point_of(speed_factor: float, report: RunReport, measured: Measurements | None) -> SweepPoint:
    """Join the report of a run with its measurements."""
    if report.status is not Status.COMPLETE or measured is None:
        error = report.error or 'it was not timed; start over with --fresh'
        return SweepPoint(run_id=report.run_id, speed_factor=speed_factor, error=error)
    mapping = measured.mapping
    stale = measured.staleness
    return SweepPoint(
        run_id=report.run_id,
        speed_factor=speed_factor,
        reached_speed_factor=measured.speed_factor,
        frames=measured.frames,
        **{name: getattr(mapping, name) for name in _OF_MAPPING},
        staleness_mean_s=None if stale is None else stale.mean_s,
        metrics=tuple(record for record in report.metrics if not record.class_name),
    )


def search(speeds: Sequence[float], follows: Callable[[float], bool]) -> float | None:
    """Return the fastest of ascending speeds that is kept up with, by bisection, or None."""
    if not speeds or not follows(speeds[0]):
        return None
    if len(speeds) == 1 or follows(speeds[-1]):
        return speeds[-1]
    last = len(speeds) - 1
    return speeds[bisect_left(speeds, True, 1, last, key=lambda speed: not follows(speed)) - 1]


def tries_of(speeds: Sequence[float]) -> int:
    """Return the largest number of speeds that a search tries."""
    return min(len(speeds), 2 + max(0, len(speeds) - 2).bit_length())
