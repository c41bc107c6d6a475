"""One run over ROS 2: starts its nodes as processes, watches them, and ends all of them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from osmabench_ros.bringup.isolation import isolated_environment, private_domain
from osmabench_ros.bringup.node_spec import MAPPER, NodeSpec
from osmabench_ros.bringup.processes import ManagedProcess
from osmabench_ros.errors import ParticipantError
from osmabench_ros.ros import topics

START_TIMEOUT_S = 120.0
"""For a process to start and one lifecycle transition; Habitat-Sim needs half a minute."""

Progress = Callable[[str, float], None]
"""Gets what is going on and the fraction done, 0 to 1."""


@dataclass
class LiveRunResult:
    """What a live run leaves besides its files.

    Parameters
    ----------
    exit_code : int
        Of the node that ends the run.
    reason : str
        Its error, empty if it exited with 0.
    mapping_s : float
        Time the mapper says it spent on frames; where it says nothing, the wall time from the
        first frame to the last acknowledgement.
    frames : int
        Frames that were published.
    frames_mapped : int
        Frames that the mapper acknowledged.
    peak_memory_bytes : dict of str to int
        By node, as sampled.
    """

    exit_code: int = 0
    reason: str = ''
    mapping_s: float = 0.0
    frames: int = 0
    frames_mapped: int = 0
    peak_memory_bytes: dict[str, int] = field(default_factory=dict)


def run_live(
    specs: list[NodeSpec],
    log_directory: Path,
    *,
    stall_timeout_s: float,
    timeout_after_frames_s: float,
    progress: Progress,
) -> LiveRunResult:
    """Run nodes until the one that ends the run exits.

    Parameters
    ----------
    specs : list of NodeSpec
        In the order of their start; exactly one has `ends_run`.
    log_directory : Path
        Gets a log and a parameter file a node.
    stall_timeout_s : float
        How long the bridge may publish nothing before the run counts as hanging.
    timeout_after_frames_s : float
        How long the run may go on after the last frame.
    progress : callable
        Told about every published frame.

    Returns
    -------
    LiveRunResult
        Exit code and measurements; `exit_code` may be non-zero.

    Raises
    ------
    ParticipantError
        If a node dies or hangs before the run is over; names it and its reason.
    """
    with ExitStack() as stack:
        domain = stack.enter_context(private_domain())
        watch = stack.enter_context(_observer(domain))
        processes = _start(specs, log_directory, domain)
        stack.callback(_stop_all, processes)
        run = _LiveRun(specs, processes, watch, stall_timeout_s, timeout_after_frames_s, progress)
        return run.supervise()


def _start(specs: list[NodeSpec], log_directory: Path, domain: int) -> dict[str, ManagedProcess]:
    environment = {**isolated_environment(domain), 'OSMABENCH_RUN': log_directory.parent.name}
    processes: dict[str, ManagedProcess] = {}
    try:
        for spec in specs:
            parameter_file = log_directory / f'{spec.name}.yaml'
            parameter_file.parent.mkdir(parents=True, exist_ok=True)
            parameter_file.write_text(yaml.safe_dump(spec.parameter_document()))
            processes[spec.name] = ManagedProcess(
                spec.name,
                spec.command_line(str(parameter_file)),
                log_directory / f'{spec.name}.log',
                environment,
            )
    except BaseException:
        _stop_all(processes)
        raise
    return processes


def _stop_all(processes: dict[str, ManagedProcess]) -> None:
    for process in processes.values():
        process.stop()


@contextmanager
def _observer(domain: int) -> Iterator[_Observer]:
    os.environ.update(isolated_environment(domain))
    observer = _Observer(domain)
    try:
        yield observer
    finally:
        observer.close()


class _Observer:
    """The runner's own node: lifecycle client and listener to the state of the run."""

    def __init__(self, domain: int) -> None:
        import rclpy
        from rclpy.executors import SingleThreadedExecutor
        from rclpy.signals import SignalHandlerOptions

        from osmabench_ros.bringup.lifecycle_client import LifecycleClient
        from osmabench_ros.msg import FrameAck, RunState
        from osmabench_ros.ros.qos import latched_profile, lossless_profile

        self._context = rclpy.Context()
        # Ctrl-C stays Python's, so that it ends the runner and through it every process.
        rclpy.init(
            context=self._context,
            domain_id=domain,
            args=[],
            signal_handler_options=SignalHandlerOptions.NO,
        )
        self._node = rclpy.create_node('osmabench_runner', context=self._context)
        self.executor = SingleThreadedExecutor(context=self._context)
        self.executor.add_node(self._node)
        self.lifecycle = LifecycleClient(self._node, self.executor, START_TIMEOUT_S)
        self.state = RunState()
        self.mapped: dict[str, tuple[int, float]] = {}
        self._node.create_subscription(
            FrameAck, topics.FRAME_ACK, self._on_ack, lossless_profile()
        )
        self._node.create_subscription(
            RunState, topics.RUN_STATE, self._on_state, latched_profile()
        )

    def _on_ack(self, message: Any) -> None:
        count, seconds = self.mapped.get(message.participant, (0, 0.0))
        spent = message.processing_time
        self.mapped[message.participant] = (
            count + 1,
            seconds + spent.sec + spent.nanosec / 1e9,
        )

    def _on_state(self, message: object) -> None:
        self.state = message

    def close(self) -> None:
        self.executor.shutdown()
        self._node.destroy_node()
        self._context.try_shutdown()


class _LiveRun:
    """Supervision of one run."""

    def __init__(
        self,
        specs: list[NodeSpec],
        processes: dict[str, ManagedProcess],
        observer: _Observer,
        stall_timeout_s: float,
        timeout_after_frames_s: float,
        progress: Progress,
    ) -> None:
        self._processes = processes
        self._observer = observer
        self._stall_timeout_s = stall_timeout_s
        self._timeout_s = timeout_after_frames_s
        self._changed_s = time.monotonic()
        self._seen: tuple[int, int] = (-1, -1)
        self._progress = progress
        self._managed = [spec.name for spec in specs if spec.managed]
        self._foreign = {spec.name for spec in specs if not spec.managed}
        self._last = next(spec.name for spec in specs if spec.ends_run)
        self._first_frame_s: float | None = None
        self._finished_s: float | None = None

    def supervise(self) -> LiveRunResult:
        self._progress('starting nodes', 0.0)
        self._observer.lifecycle.bring_up(self._managed, self._check)
        while self._processes[self._last].poll() is None:
            self._check()
            self._observer.executor.spin_once(timeout_sec=0.05)
            self._follow()
        return self._result()

    def _check(self) -> None:
        for name, process in self._processes.items():
            code = process.poll()
            # Somebody else's node may leave once it has said its map.
            gone = code == 0 and name in self._foreign and self._finished_s is not None
            if code is not None and name != self._last and not gone:
                raise ParticipantError(f'node "{name}" ended before the run: {process.reason()}')
        if self._processes[self._last].poll() not in (None, 0) and self._finished_s is None:
            raise ParticipantError(
                f'node "{self._last}" ended before the run: {self._processes[self._last].reason()}'
            )

    def _follow(self) -> None:
        state, now_s = self._observer.state, time.monotonic()
        if state.frames_published and self._first_frame_s is None:
            self._first_frame_s = now_s
        if state.state == state.STATE_FINISHED:
            self._progress('evaluating', 1.0)
            self._finished_s = self._finished_s or now_s
        elif state.frames_total:
            self._progress('mapping', state.frames_published / state.frames_total)
        self._check_stall(now_s)
        if self._finished_s is not None and now_s - self._finished_s > self._timeout_s:
            raise ParticipantError(
                f'no evaluation within {self._timeout_s:g} s after the last frame: the mapper '
                'published no final map, or the evaluator hangs (pacing.evaluation_timeout_s)'
            )

    def _check_stall(self, now_s: float) -> None:
        state = self._observer.state
        if (seen := (state.state, state.frames_published)) != self._seen:
            self._seen, self._changed_s = seen, now_s
        if self._finished_s is None and now_s - self._changed_s > self._stall_timeout_s:
            raise ParticipantError(
                f'the bridge published nothing for {self._stall_timeout_s:g} s after frame '
                f'{state.frames_published}; the simulator hangs or renders too slowly'
            )

    def _result(self) -> LiveRunResult:
        process = self._processes[self._last]
        code = process.poll() or 0
        frames_mapped, mapping_s = self._observer.mapped.get(MAPPER, (0, 0.0))
        told = mapping_s > 0
        if not told and self._first_frame_s is not None and self._finished_s is not None:
            mapping_s = self._finished_s - self._first_frame_s
        return LiveRunResult(
            exit_code=code,
            reason=process.reason() if code else '',
            mapping_s=mapping_s,
            frames=self._observer.state.frames_published,
            frames_mapped=frames_mapped,
            peak_memory_bytes={
                name: item.peak_memory_bytes for name, item in self._processes.items()
            },
        )
