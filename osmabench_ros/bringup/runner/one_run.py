"""One run of a matrix, stage by stage, to its report; ends every process that it starts."""

import dataclasses
import time
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from osmabench_ros.base.contract import BRIDGE, MAPPER
from osmabench_ros.base.files import discard, remove_drafts, write_json
from osmabench_ros.base.log import LOG
from osmabench_ros.base.processes import AttentiveClock
from osmabench_ros.base.progress import FRAME_OF, Progress, share
from osmabench_ros.bringup import definition, isolation
from osmabench_ros.bringup.definition import METHOD, NodeSpec
from osmabench_ros.bringup.runner import node_processes
from osmabench_ros.bringup.runner.observer import RunObserver
from osmabench_ros.errors import IncompleteError, OsmabenchError, ParticipantError, RunError
from osmabench_ros.runs import evaluation, run_manifest
from osmabench_ros.runs.evaluation import EvaluationInputs, score_over_time
from osmabench_ros.runs.matrix_on_disk import FAILURE, Stage
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import Preparation, run_warnings
from osmabench_ros.runs.report_model import RunReport, Status
from osmabench_ros.runs.timings import TIMINGS, Measurements, Participation, timings_of

# For a process to start and one lifecycle transition; Habitat-Sim needs half a minute.
START_TIMEOUT_S = 120.0
# For a participant that never comes, the bridge itself gives up first.
STALL_MARGIN_S = 120.0
# How long /diagnostics may be on the way from a node that has ended.
LAST_WORDS_S = 2.0


def _stop_all(processes: dict[str, node_processes.ManagedProcess]) -> None:
    for process in processes.values():
        if isinstance(process, node_processes.HostedProcess):
            process.interrupt()  # so that they end at the same time
    for process in processes.values():
        process.stop()


@dataclass
class _LiveRun:
    """Supervision of one run."""

    plan: RunPlan
    specs: list[NodeSpec]
    processes: dict[str, node_processes.ManagedProcess]
    observer: RunObserver
    progress: Progress
    watch: AttentiveClock = field(default_factory=AttentiveClock)
    changed_s: float = 0.0
    seen: tuple[int, int, str] = (-1, -1, '')
    first_frame_s: float | None = None
    finished_s: float | None = None

    def supervise(self, runs_at_once: int) -> tuple[Measurements, str]:
        managed = [spec.name for spec in self.specs if spec.ours]
        self.observer.lifecycle.bring_up(managed, self._check)
        [last] = [self.processes[spec.name] for spec in self.specs if spec.ends_run]
        while last.poll() is None:
            self._check()
            self.observer.executor.spin_once(timeout_sec=0.05)
            self._follow()
        self._warn_of_readers()
        return self._measure(runs_at_once), last.reason() if last.poll() else ''

    def _warn_of_readers(self) -> None:
        """Add a warning to the manifest if a method reads images of the ground truth.

        Bundled mappers that do so are references, and the other nodes of a run do not map.
        """
        ours = {spec.name for spec in self.specs if spec.ours}
        for name, read in sorted(self.observer.readers.items()):
            if name not in ours:
                run_manifest.add_warning(
                    self.plan,
                    f'mapper "{self.plan.mapper.name}": node "{name}" reads '
                    f'{", ".join(sorted(read))}, which no camera gives; do not compare it with '
                    'methods that see only colour and depth',
                )

    def _check(self) -> None:
        over = self.finished_s is not None
        for spec in self.specs:
            code = self.processes[spec.name].poll()
            # A third-party node may leave once it has published its map.
            leaves = over and code == 0 and not spec.ours
            ends_run = spec.ends_run and (over or code == 0)
            if code is not None and not (leaves or ends_run):
                reason = self._find_reason(spec.name)
                raise ParticipantError(f'node "{spec.name}" ended before the run: {reason}')

    def _find_reason(self, name: str) -> str:
        """Return why a node ended, even if it could not write to its log."""
        deadline = time.monotonic() + LAST_WORDS_S
        while not self.observer.complaints.get(name) and time.monotonic() < deadline:
            self.observer.executor.spin_once(timeout_sec=0.1)
        reported = self.observer.complaints.get(name, '')
        logged = self.processes[name].reason()
        return logged if reported in logged else f'{reported}; {logged}'

    def _follow(self) -> None:
        state, now_s = self.observer.state, time.monotonic()
        if state.frames_published and self.first_frame_s is None:
            self.first_frame_s = now_s
        if state.frames_published != self.seen[1]:
            self.observer.look_for_readers()
        if state.state == state.STATE_FINISHED:
            self.progress(self.observer.evaluation, 1.0)
            self.finished_s = self.finished_s or now_s
        elif state.frames_total:
            count = f'{FRAME_OF}{state.frames_published} of {state.frames_total}'
            fraction = state.frames_published / state.frames_total
            self.progress(f'{Stage.MAP.value}{count}', fraction)
        self._check_stall()

    def _check_stall(self) -> None:
        state, now_s = self.observer.state, self.watch.now_s()
        pacing = self.plan.config.pacing
        stall_timeout_s = pacing.ack_timeout_s + STALL_MARGIN_S
        seen = (state.state, state.frames_published, self.observer.final_map_from)
        if seen != self.seen:
            self.seen, self.changed_s = seen, now_s
        silent_s = now_s - self.changed_s
        if self.finished_s is not None and silent_s > pacing.evaluation_timeout_s:
            raise ParticipantError(
                f'no evaluation within {pacing.evaluation_timeout_s:g} s '
                f'(pacing.evaluation_timeout_s) after the last frame: {self.observer.missing()}'
            )
        if self.finished_s is None and silent_s > stall_timeout_s:
            raise ParticipantError(
                f'node "{BRIDGE}" published nothing for {stall_timeout_s:g} s after '
                f'{state.frames_published} frames; the simulator hangs or renders too slowly'
            )

    def _measure(self, runs_at_once: int) -> Measurements:
        watch = self.observer
        maps = METHOD if METHOD in self.processes else MAPPER
        participants = watch.participation()
        unknown = Participation(maps, watch.state.frames_published)
        if maps == METHOD:
            # Frames counted by an adapter are the method's.
            adapted = participants.pop(MAPPER, unknown)
            participants.setdefault(maps, dataclasses.replace(adapted, name=maps))
        mapped = participants.get(maps, unknown)
        mapping_s = (mapped.processing_mean_s or 0.0) * (mapped.mapped or 0)
        if not mapping_s and self.first_frame_s is not None and self.finished_s is not None:
            mapping_s = self.finished_s - self.first_frame_s
        on_gpu = {name: item.peak_gpu_memory_bytes for name, item in self.processes.items()}
        return Measurements(
            self.plan.pacing.value,
            watch.state.frames_published,
            maps,
            mapping_s,
            tuple(participants.values()),
            {name: item.peak_memory_bytes for name, item in self.processes.items()},
            watch.staleness.result(),
            watch.speed_factor(),
            {name: size for name, size in on_gpu.items() if size is not None},
            runs_at_once,
            watch.final_map_s,
        )


def prepare_run(plan: RunPlan, preparation: Preparation, progress: Progress) -> None:
    """Make the shared data of a scene, and write the manifest of the run."""
    preparation.prepare(plan, progress)
    found = run_warnings(plan, preparation)
    run_manifest.write_run_manifest(plan, preparation.digest_of(plan), found)
    preparation.write_true_trajectory(plan)


@dataclass
class _Run:
    """A run under way; each stage does only its missing work."""

    plan: RunPlan
    preparation: Preparation
    nodes: node_processes.NodeProcesses
    progress: Progress
    runs_at_once: int
    # Why the node that ends the run did so, '' without an error; None if no nodes were run.
    ended_by: str | None = None
    report: RunReport | None = None

    def progress_in(self, stage: Stage) -> Progress:
        return share(self.progress, 0.0, 1.0, f'{stage.value}: ')

    def prepare(self) -> None:
        if not self.plan.report_file.exists():
            prepare_run(self.plan, self.preparation, self.progress_in(Stage.PREPARE))

    def map(self) -> None:
        """Run the nodes; their evaluator scores the map too. A map is complete or not there."""
        plan = self.plan
        if plan.report_file.exists() or plan.map_directory.exists():
            return
        definition.make_room_for_bag(plan)
        discard(plan.directory / evaluation.INCOMPLETE)
        with definition.stack_folder(plan) as work:
            measured, self.ended_by = self._run_nodes(definition.nodes_of_run(plan, work))
        write_json(plan.directory / TIMINGS, timings_of(plan.identity, measured))

    def _run_nodes(self, specs: list[NodeSpec]) -> tuple[Measurements, str]:
        """Run nodes until the one that ends the run exits; return also why, if it failed.

        Raises ParticipantError if one dies or hangs.
        """
        with ExitStack() as stack:
            domain = stack.enter_context(isolation.private_domain())
            isolated = isolation.make_isolated_environment(domain, self.runs_at_once)
            processes: dict[str, node_processes.ManagedProcess] = {}
            stack.callback(_stop_all, processes)
            self.progress(f'{Stage.MAP.value}: starting nodes in ROS domain {domain}', 0.0)
            logs = self.plan.directory / 'logs'
            for spec in specs:
                processes[spec.name] = self.nodes.start(spec, logs, isolated)
            # DDS reads its settings from the environment of this process, with each participant.
            with isolation.environment(isolated):
                # While nodes start: their first messages are latched.
                observer = RunObserver(domain, START_TIMEOUT_S)
            stack.callback(observer.close)
            run = _LiveRun(self.plan, specs, processes, observer, self.progress)
            try:
                return run.supervise(self.runs_at_once)
            except ParticipantError as error:
                # To be looked at before they are ended.
                stopped = [item for item in processes.values() if item.stopped]
                if not stopped:
                    raise
                names = ', '.join(f'{item.name} (process {item.pid})' for item in stopped)
                text = f'Stopped by a signal: {names}; kill -CONT lets a process go on'
                raise ParticipantError(f'{error}. {text}') from error

    def evaluate(self) -> None:
        """Score a map that was kept, unless the evaluator of this run has done so."""
        plan = self.plan
        if plan.report_file.exists():
            return
        if self.ended_by is None:
            inputs, progress = EvaluationInputs.of_plan(plan), self.progress_in(Stage.EVALUATE)
            with suppress(IncompleteError):
                evaluation.evaluate_run(
                    inputs, plan.config.suites, plan.config.requirements, progress
                )
        elif evaluation.incomplete_report(plan.directory) is None:
            reason = self.ended_by or 'no reason given'
            raise RunError(f'node "evaluator" wrote no report: {reason}')

    def finish(self) -> None:
        """Read the report, score the maps on the way, and write the digests of all results."""
        plan = self.plan
        incomplete = evaluation.incomplete_report(plan.directory)
        self.report = incomplete or run_manifest.read_finished(plan)
        definition.check_bag(plan)
        if self.report.status is not Status.COMPLETE:
            return
        if plan.config.evaluation.map_every_frames:
            inputs, progress = EvaluationInputs.of_plan(plan), self.progress_in(Stage.FINISH)
            score_over_time(inputs, plan.config.suites, plan.snapshots_directory, progress)
        run_manifest.finish_run(plan)


def run_one(
    plan: RunPlan,
    preparation: Preparation,
    nodes: node_processes.NodeProcesses,
    progress: Progress,
    *,
    runs_at_once: int = 1,
) -> RunReport:
    """Run the remaining stages of a run; if it fails, its report holds the error.

    `runs_at_once` is how many share the machine, this one included.
    """
    run = _Run(plan, preparation, nodes, progress, runs_at_once)
    run_id = plan.identity.run_id
    try:
        if plan.report_file.exists():
            progress('kept', 0.0)
        for carry_out in (run.prepare, run.map, run.evaluate, run.finish):
            begin_s = time.monotonic()
            carry_out()
            took_s = time.monotonic() - begin_s
            LOG.debug('%s: %s took %.1f s', run_id, carry_out.__name__, took_s)
        discard(plan.directory / FAILURE)
        assert run.report is not None
        return run.report
    except (OsmabenchError, OSError) as error:
        LOG.debug('%s failed', run_id, exc_info=True)
        return failed(plan, str(error))


def failed(plan: RunPlan, error: str) -> RunReport:
    """Return the report of a run that failed, which is in its folder too."""
    report = RunReport(run_id=plan.identity.run_id, status=Status.FAILED, error=error)
    remove_drafts(plan.directory, below=True)  # by nodes that had to be killed
    with suppress(RunError):  # on a full disk the first error is the one to report
        write_json(plan.directory / FAILURE, report.model_dump(mode='json'))
    return report


def without_figures(report: RunReport) -> RunReport:
    """Return a report without its metrics: thousands fit into memory."""
    return report.model_copy(update={'metrics': ()})
