"""Whether memory stays flat and no frame is lost when a run goes on for long.

    python benchmarks/soak.py                  # 30 minutes
    python benchmarks/soak.py --minutes 5 --csv soak.csv

The nodes of a lockstep run (bridge, mapper, map recorder, bag recorder, evaluator) play the same
round again and again in the same processes: the run is reset by its service as soon as the map of
a round is recorded and scored, so that what a round needs is freed and what stays is a leak. The
memory of a process (resident set) counts by its peak of each round, after a warm-up of a third of
the rounds. Its slope is the median of all pairwise slopes (Theil-Sen) with a 95 % interval:

    flat       the whole interval lies below --limit MiB/h
    grows      the whole interval lies above it
    undecided  neither: the soak was too short to tell

Files stay open if every round of the last third has more open than any of the first. A frame is
lost if a participant did not acknowledge it, or if the bag does not hold it. The exit code is 0
if nothing was lost and everything is flat. The bag (on disk, deleted at the end) grows, of course.
It is split, because MCAP keeps the index of a file in memory until the file is closed.
"""

import os
import sys
import tempfile
import time
from collections.abc import Callable
from csv import writer as writer_of
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import psutil
import rclpy
import typer
from measuring import console
from osmabench_ros.msg import EvaluationReport, RecordedMap, RunState
from osmabench_ros.srv import ControlRun
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rich.table import Table
from scipy.stats import theilslopes

from osmabench_ros.base import contract
from osmabench_ros.base.files import atomic_write, check_file, claim_folder
from osmabench_ros.bringup.definition import NodeSpec, nodes_of_run
from osmabench_ros.bringup.isolation import make_isolated_environment, private_domain
from osmabench_ros.bringup.runner.node_processes import ManagedProcess
from osmabench_ros.ros.matched_client import LifecycleClient
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.sequences.bags.recording_report import read_report

MIB = 2**20
SAMPLE_S = 0.5
ROUND_TIMEOUT_S = 600.0
START_TIMEOUT_S = 120.0
MIN_ROUNDS = 6
FINISH_S = 600.0


@dataclass
class Series:
    """What one process needed in each round.

    Parameters
    ----------
    hours : list of float
        End of each round.
    peaks_mib : list of float
        Largest resident set of each round.
    descriptors : list of int
        Most open files of each round.
    """

    hours: list[float] = field(default_factory=list)
    peaks_mib: list[float] = field(default_factory=list)
    descriptors: list[int] = field(default_factory=list)
    _peak: float = 0.0
    _most: int = 0

    def sample(self, process: psutil.Process) -> None:
        """Look at the process now."""
        with process.oneshot():
            self._peak = max(self._peak, process.memory_info().rss / MIB)
            self._most = max(self._most, process.num_fds())

    def end_round(self, hours: float) -> None:
        """Keep the peaks since the last round."""
        self.hours.append(hours)
        self.peaks_mib.append(self._peak)
        self.descriptors.append(self._most)
        self._peak, self._most = 0.0, 0

    @property
    def warm(self) -> int:
        """Index of the first round that counts."""
        return len(self.hours) // 3

    def slope(self) -> tuple[float, float, float]:
        """Return growth in MiB/h with its 95 % interval."""
        found = theilslopes(self.peaks_mib[self.warm :], self.hours[self.warm :], 0.95)
        return float(found[0]), float(found[2]), float(found[3])

    def verdict(self, limit_mib_h: float) -> str:
        """Judge by the rule above."""
        _, low, high = self.slope()
        return 'flat' if high < limit_mib_h else 'grows' if low > limit_mib_h else 'undecided'

    @property
    def opens_more(self) -> bool:
        """Whether files stay open."""
        return min(self.descriptors[-self.warm :]) > max(self.descriptors[: self.warm])


class Conductor(Node):
    """Follows a run and starts it over."""

    def __init__(self, executor: SingleThreadedExecutor, context: rclpy.Context) -> None:
        super().__init__('soak', context=context)
        self.executor_ = executor
        executor.add_node(self)
        self.state = RunState()
        self.maps = self.reports = 0
        latched = latched_profile()
        self.create_subscription(RunState, contract.RUN_STATE, self._on_state, latched)
        self.create_subscription(RecordedMap, contract.RECORDED_MAP, self._on_map, latched)
        self.create_subscription(EvaluationReport, contract.EVALUATION, self._on_report, latched)
        self._reset = self.create_client(ControlRun, contract.RESET_RUN)

    def _on_state(self, message: RunState) -> None:
        self.state = message

    def _on_map(self, _message: RecordedMap) -> None:
        self.maps += 1

    def _on_report(self, message: EvaluationReport) -> None:
        if message.error:
            raise SystemExit(f'the evaluation failed: {message.error}')
        self.reports += 1

    def has_scored(self, rounds: int) -> bool:
        """Tell whether the maps of so many rounds are recorded and scored."""
        return min(self.maps, self.reports) >= rounds

    def wait(self, condition: Callable[[], bool], look: Callable[[], None]) -> None:
        """Spin until a condition holds."""
        deadline_s = time.monotonic() + ROUND_TIMEOUT_S
        while not condition():
            if time.monotonic() > deadline_s:
                raise SystemExit(f'no end of the round within {ROUND_TIMEOUT_S:g} s')
            look()
            self.executor_.spin_once(timeout_sec=0.1)

    def start_over(self, look: Callable[[], None]) -> None:
        """Reset the run."""
        future = self._reset.call_async(ControlRun.Request())
        self.wait(future.done, look)
        if future.result().error_code:
            raise SystemExit(f'reset_run: {future.result().error_msg}')
        self.wait(lambda: self.state.state != RunState.STATE_FINISHED, look)

    def lost(self) -> int:
        """Return the frames of this round that a participant did not acknowledge."""
        published = self.state.frames_published
        return sum(published - item.frames_acknowledged for item in self.state.participants)


class Soak:
    """The processes, their series, and the frames so far."""

    def __init__(self, specs: list[NodeSpec], folder: Path, domain: int) -> None:
        environment = make_isolated_environment(domain)
        self.processes = {}
        for spec in specs:
            self.processes[spec.name] = ManagedProcess(
                spec.name, spec.command_line(folder), folder / f'{spec.name}.log', environment
            )
        self._watched = {name: psutil.Process(item.pid) for name, item in self.processes.items()}
        self._watched['(this script)'] = psutil.Process()
        self.series = {name: Series() for name in self._watched}
        self.frames = self.lost = 0
        self._start_s = time.monotonic()
        self._looked_s = 0.0

    @property
    def minutes(self) -> float:
        """Since the first round began."""
        return (time.monotonic() - self._start_s) / 60

    def check(self) -> None:
        """Raise SystemExit if a process has ended."""
        for name, process in self.processes.items():
            if process.poll() is not None:
                raise SystemExit(f'{name} ended: {process.reason()}')

    def look(self) -> None:
        """Sample all processes, unless that was done a moment ago."""
        self.check()
        if time.monotonic() - self._looked_s > SAMPLE_S:
            self._looked_s = time.monotonic()
            for name, process in self._watched.items():
                self.series[name].sample(process)

    def play(self, conductor: Conductor, minutes: float) -> None:
        """Play rounds until the time is up."""
        rounds, self._start_s = 0, time.monotonic()
        while self.minutes < minutes or rounds < MIN_ROUNDS:
            if rounds:
                conductor.start_over(self.look)
            rounds += 1
            conductor.wait(lambda: conductor.state.state == RunState.STATE_FINISHED, self.look)
            conductor.wait(partial(conductor.has_scored, rounds), self.look)
            self.frames += conductor.state.frames_published
            self.lost += conductor.lost()
            for series in self.series.values():
                series.end_round(self.minutes / 60)
            self._tell(rounds)

    def _tell(self, rounds: int) -> None:
        peaks = (f'{name} {item.peaks_mib[-1]:.0f}' for name, item in self.series.items())
        console.print(
            f'{self.minutes:5.1f} min, round {rounds}, {self.frames} frames, {self.lost} lost; '
            f'MiB: {", ".join(peaks)}',
            highlight=False, soft_wrap=True,
        )  # fmt: skip


def planned(folder: Path, frames: int) -> RunPlan:
    """Return a run of the apartment, with its ground truth."""
    data = {
        'name': 'soak',
        'scenes': [{'reference': 'apartment', 'seed': 3}],
        'mappers': [{'name': 'appearance'}],
        'camera': {'width': 320, 'height': 240},
        'trajectory': {'goals': 4, 'frame_rate_hz': 4.0, 'max_frames': frames},
        'suites': [{'name': 'map_geometry'}],
        'recording': {'enabled': True, 'split_size_mb': 50},
    }
    config = parse_config(data, 'soak')
    preparation = Preparation()
    [plan] = preparation.plans(config, folder)
    preparation.prepare(plan, lambda text, _fraction: console.print(text))
    claim_folder(plan.directory)
    return plan


def lasting(spec: NodeSpec) -> NodeSpec:
    """Return a node that does not end with the first map."""
    if spec.name != contract.EVALUATOR:
        return spec
    assert spec.settings is not None
    settings = spec.settings.model_copy(update={'exit_when_done': False})
    return replace(spec, settings=settings)


def soak(folder: Path, frames: int, minutes: float) -> tuple[Soak, Any]:
    """Play rounds; return what was seen, and what the recorder says of its bag."""
    plan = planned(folder, frames)
    with private_domain() as domain:
        os.environ.update(make_isolated_environment(domain))
        context = rclpy.Context()
        rclpy.init(context=context, args=[], domain_id=domain)
        executor = SingleThreadedExecutor(context=context)
        conductor = Conductor(executor, context)
        specs = [lasting(spec) for spec in nodes_of_run(plan)]
        running = Soak(specs, plan.directory, domain)
        try:
            client = LifecycleClient(conductor, executor, START_TIMEOUT_S)
            client.bring_up([spec.name for spec in specs], running.check)
            running.play(conductor, minutes)
        finally:
            for process in running.processes.values():
                process.stop(FINISH_S)
            executor.shutdown()
            context.try_shutdown()
    return running, read_report(plan.bag_directory)


def missing_in_bag(report: Any, frames: int) -> int:
    """Return how many images a bag lacks; a first frame that was sent again is in it twice."""
    images = (contract.COLOR, contract.DEPTH, contract.SEMANTIC, contract.INSTANCE)
    written = {item.topic: item.written for item in report.topics}
    absent = sum(max(frames - written.get(f'/{name}', 0), 0) for name in images)
    return absent + sum(item.dropped + item.lost_by_middleware for item in report.topics)


def printed_verdict(running: Soak, missing: int, limit_mib_h: float) -> bool:
    """Print the verdicts; return whether all are good."""
    table = Table('process', 'MiB warm', 'MiB end', 'MiB/h', '95 % interval', 'memory', 'files')
    good = not running.lost and not missing
    for name, series in running.series.items():
        slope, low, high = series.slope()
        verdict = series.verdict(limit_mib_h)
        files = f'{min(series.descriptors)} to {max(series.descriptors)}'
        good &= verdict == 'flat' and not series.opens_more
        table.add_row(
            name, f'{series.peaks_mib[series.warm]:.1f}', f'{series.peaks_mib[-1]:.1f}',
            f'{slope:+.1f}', f'{low:+.1f} to {high:+.1f}', verdict,
            f'{files}{", more and more" if series.opens_more else ""}',
        )  # fmt: skip
    console.print(table)
    rounds = len(next(iter(running.series.values())).hours)
    console.print(
        f'{running.frames} frames in {rounds} rounds and {running.minutes:.1f} min: '
        f'{running.lost} not acknowledged, {missing} messages missing in the bag; '
        f'load average {os.getloadavg()[0]:.1f}'
    )
    return bool(good)


def write_csv(file: Path, series: dict[str, Series]) -> None:
    """Write the peaks of every round."""
    with atomic_write(file) as draft, draft.open('w', newline='') as stream:
        writer = writer_of(stream)
        writer.writerow(['process', 'hours', 'peak_mib', 'descriptors'])
        for name, item in series.items():
            rows = zip(item.hours, item.peaks_mib, item.descriptors, strict=True)
            writer.writerows((name, *row) for row in rows)


def main(
    minutes: Annotated[float, typer.Option(help='how long')] = 30.0,
    frames: Annotated[int, typer.Option(help='of a round')] = 100,
    limit: Annotated[float, typer.Option(help='MiB/h')] = 20.0,
    csv: Annotated[Path | None, typer.Option(help='gets the peaks of every round')] = None,
    folder: Annotated[Path | None, typer.Option(help='gets the bag while it grows')] = None,
) -> None:
    """Soak, print, and judge."""
    if csv:
        check_file(csv)  # before any time is spent
    with tempfile.TemporaryDirectory(prefix='osmabench_soak_', dir=folder) as name:
        running, report = soak(Path(name), frames, minutes)
    if csv:
        write_csv(csv, running.series)
    sys.exit(not printed_verdict(running, missing_in_bag(report, running.frames), limit))


if __name__ == '__main__':
    typer.run(main)
