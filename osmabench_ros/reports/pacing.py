"""Loss, latency and staleness of the runs, from timings.json."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from osmabench_ros.reports.cells import Cell
from osmabench_ros.reports.tidy import Run
from osmabench_ros.runs.config import PacingMode
from osmabench_ros.runs.timings import TIMINGS, Measurements, read_measurements

UNKNOWN = Cell('unknown', note='the node does not say')


@dataclass(frozen=True)
class TimedRun:
    """The measurements of a run, its title, and its name with the scene."""

    title: str
    measured: Measurements
    mapper: str = ''
    condition: str = ''
    name: str = ''

    @property
    def is_realtime(self) -> bool:
        """Whether frames came whether or not the mapper kept up."""
        return self.measured.pacing == PacingMode.REALTIME.value


def read_timed_runs(runs: Sequence[Run]) -> list[TimedRun]:
    """Return the runs that have a timings.json; RunError on a malformed one."""
    several = len({run.scene for run in runs}) > 1
    timed = []
    for run in runs:
        measured = read_measurements(run.plan.directory / TIMINGS)
        if measured is not None:
            speed = run.plan.identity.speed_factor
            parts = (run.title, '' if speed is None else f'at {speed:g} x', run.scene * several)
            title, name = ' · '.join(filter(None, parts)), f'{run.title} · {run.scene}'
            timed.append(TimedRun(title, measured, run.mapper, run.condition, name))
    return timed


class PacingView:
    """Timed runs in realtime and in lockstep.

    Of the `lockstep_frames`, nodes did not acknowledge `lockstep_lost`. `company` is how many
    realtime runs may have shared the machine with how many others at most.
    """

    def __init__(self, timed: Sequence[TimedRun]) -> None:
        self.realtime = [item for item in timed if item.is_realtime]
        self.lockstep = [item for item in timed if not item.is_realtime]
        nodes = [node for item in self.lockstep for node in item.measured.participants]
        self.lockstep_frames = sum(item.measured.frames for item in self.lockstep)
        self.lockstep_lost = sum(node.dropped or 0 for node in nodes)
        counts = Counter(item.measured.runs_at_once - 1 for item in self.realtime)
        self.company = sorted(counts.items())
