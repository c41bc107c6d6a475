"""One run over ROS 2: starts its nodes as processes, watches them, and ends all of them."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.attentive_clock import AttentiveClock
from osmabench_ros.base.progress import FRAME_OF, Progress
from osmabench_ros.bringup.runner.node_processes import RUN_VARIABLE, NodeProcesses
from osmabench_ros.bringup.runner.observer import RunObserver
from osmabench_ros.bringup.runner.processes import ManagedProcess
from osmabench_ros.bringup.spec.definition import BRIDGE
from osmabench_ros.bringup.spec.isolation import environment, isolated_environment, private_domain
from osmabench_ros.bringup.spec.node_spec import MAPPER, METHOD, NodeSpec
from osmabench_ros.errors import ParticipantError
from osmabench_ros.ros.wire.run_token import VARIABLE, new_token
from osmabench_ros.runs.results.timings import Measurements, Participation

START_TIMEOUT_S = 120.0
"""For a process to start and one lifecycle transition; Habitat-Sim needs half a minute."""
LAST_WORDS_S = 2.0
"""How long /diagnostics may be on the way from a node that has ended."""


@dataclass(frozen=True)
class LiveRunResult:
    """What a live run leaves besides its files; the exit code is of the node that ends it."""

    exit_code: int
    reason: str
    measured: Measurements


def run_live(
    specs: list[NodeSpec],
    log_directory: Path,
    nodes: NodeProcesses,
    *,
    pacing: str,
    stall_timeout_s: float,
    timeout_after_frames_s: float,
    runs_at_once: int,
    progress: Progress,
) -> LiveRunResult:
    """Run nodes until the one that ends the run exits; ParticipantError if one dies or hangs."""
    with ExitStack() as stack:
        domain = stack.enter_context(private_domain())
        token = new_token()
        isolated = isolated_environment(domain, runs_at_once)
        processes: dict[str, ManagedProcess] = {}
        stack.callback(_stop_all, processes)
        variables = {**isolated, RUN_VARIABLE: log_directory.parent.name, VARIABLE: token}
        progress(f'starting nodes in ROS domain {domain}', 0.0)
        for spec in specs:
            processes[spec.name] = nodes.start(spec, log_directory, variables)
        # While they start: what they say before they are brought up is latched.
        watch = stack.enter_context(_observer(domain, isolated, specs, token))
        run = _LiveRun(specs, processes, watch, stall_timeout_s, timeout_after_frames_s, progress)
        try:
            result = run.supervise(pacing, runs_at_once)
        except ParticipantError as error:
            # To be looked at before they are ended.
            raise ParticipantError(f'{error}{_stopped(processes.values())}') from error
        nodes.end(processes)
        return result


def _stopped(processes: Iterable[ManagedProcess]) -> str:
    names = ', '.join(f'{item.name} (process {item.pid})' for item in processes if item.stopped)
    return f'. Stopped by a signal: {names}; kill -CONT lets a process go on' if names else ''


def _stop_all(processes: dict[str, ManagedProcess]) -> None:
    for process in processes.values():
        process.stop()


@contextmanager
def _observer(
    domain: int, isolated: Mapping[str, str], specs: list[NodeSpec], token: str
) -> Iterator[RunObserver]:
    # DDS reads its settings when a participant is made, and from this process' environment alone.
    with environment(isolated):
        observer = RunObserver(
            domain,
            START_TIMEOUT_S,
            token=token,
            unsigned=[spec.name for spec in specs if not spec.signs],
        )
    try:
        yield observer
    finally:
        observer.close()


class _LiveRun:
    """Supervision of one run."""

    def __init__(
        self,
        specs: list[NodeSpec],
        processes: dict[str, ManagedProcess],
        observer: RunObserver,
        stall_timeout_s: float,
        timeout_after_frames_s: float,
        progress: Progress,
    ) -> None:
        self._processes = processes
        self._observer = observer
        self._stall_timeout_s = stall_timeout_s
        self._timeout_s = timeout_after_frames_s
        self._watch = AttentiveClock()
        self._changed_s = 0.0
        self._seen: tuple[int, int, str] = (-1, -1, '')
        self._progress = progress
        self._managed = [spec.name for spec in specs if spec.managed]
        self._foreign = {spec.name for spec in specs if not spec.managed}
        self._last = next(spec.name for spec in specs if spec.ends_run)
        self._first_frame_s: float | None = None
        self._finished_s: float | None = None

    def supervise(self, pacing: str, runs_at_once: int) -> LiveRunResult:
        self._observer.lifecycle.bring_up(self._managed, self._check)
        while self._processes[self._last].poll() is None:
            self._check()
            self._observer.executor.spin_once(timeout_sec=0.05)
            self._follow()
        return self._result(pacing, runs_at_once)

    def _check(self) -> None:
        for name, process in self._processes.items():
            code = process.poll()
            # Somebody else's node may leave once it has said its map.
            gone = code == 0 and name in self._foreign and self._finished_s is not None
            if code is not None and name != self._last and not gone:
                raise ParticipantError(f'node "{name}" ended before the run: {self._reason(name)}')
        if self._processes[self._last].poll() not in (None, 0) and self._finished_s is None:
            raise ParticipantError(
                f'node "{self._last}" ended before the run: {self._reason(self._last)}'
            )

    def _reason(self, name: str) -> str:
        """Return why a node ended, even if it could not write to its log."""
        deadline = time.monotonic() + LAST_WORDS_S
        while not self._observer.complaint(name) and time.monotonic() < deadline:
            self._observer.executor.spin_once(timeout_sec=0.1)
        reported, logged = self._observer.complaint(name), self._processes[name].reason()
        return logged if reported in logged else f'{reported}; {logged}'

    def _follow(self) -> None:
        state, now_s = self._observer.state, time.monotonic()
        if state.frames_published and self._first_frame_s is None:
            self._first_frame_s = now_s
        if state.state == state.STATE_FINISHED:
            self._progress(self._observer.evaluation, 1.0)
            self._finished_s = self._finished_s or now_s
        elif state.frames_total:
            count = f'{FRAME_OF}{state.frames_published} of {state.frames_total}'
            self._progress(f'mapping{count}', state.frames_published / state.frames_total)
        self._check_stall()

    def _check_stall(self) -> None:
        state, now_s = self._observer.state, self._watch.now_s()
        seen = (state.state, state.frames_published, self._observer.final_map_from)
        if seen != self._seen:
            self._seen, self._changed_s = seen, now_s
        silent_s = now_s - self._changed_s
        if self._finished_s is not None and silent_s > self._timeout_s:
            raise ParticipantError(
                f'no evaluation within {self._timeout_s:g} s (pacing.evaluation_timeout_s) after '
                f'the last frame: {self._observer.missing()}'
            )
        if self._finished_s is None and silent_s > self._stall_timeout_s:
            raise ParticipantError(
                f'node "{BRIDGE}" published nothing for {self._stall_timeout_s:g} s after '
                f'{state.frames_published} frames; the simulator hangs or renders too slowly'
            )

    def _result(self, pacing: str, runs_at_once: int) -> LiveRunResult:
        process, watch = self._processes[self._last], self._observer
        code = process.poll() or 0
        maps = METHOD if METHOD in self._processes else MAPPER
        mapping_s = watch.processing_s(maps)
        if not mapping_s and self._first_frame_s is not None and self._finished_s is not None:
            mapping_s = self._finished_s - self._first_frame_s
        memory = {name: item.peak_memory_bytes for name, item in self._processes.items()}
        on_gpu = {
            name: item.peak_gpu_memory_bytes
            for name, item in self._processes.items()
            if item.peak_gpu_memory_bytes is not None
        }
        measured = Measurements(
            pacing,
            watch.state.frames_published,
            maps,
            mapping_s,
            self._participation(),
            memory,
            watch.staleness.result(),
            watch.speed_factor(),
            on_gpu,
            watch.ignored(),
            runs_at_once,
        )
        return LiveRunResult(code, process.reason() if code else '', measured)

    def _participation(self) -> tuple[Participation, ...]:
        """Return what every node did; frames counted by an adapter are the method's."""
        known = {item.name: item for item in self._observer.participation()}
        if METHOD in self._processes:
            adapted = known.pop(
                MAPPER, Participation(METHOD, self._observer.state.frames_published)
            )
            known.setdefault(METHOD, dataclasses.replace(adapted, name=METHOD))
        return tuple(known.values())
