"""Evaluations in the background, one after another, with progress and cancellation."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from osmabench_ros.base.progress import Progress
from osmabench_ros.errors import OsmabenchError, RunError
from osmabench_ros.runs.results.report_model import RunReport

WAITING = 'waiting for another evaluation'
STOP_TIMEOUT_S = 3.0
"""How long an evaluation gets to notice that it was cancelled before its thread is left alone."""


class EvaluationCancelledError(RunError):
    """An evaluation was stopped on request."""


class EvaluationJob:
    """One evaluation in a separate thread; `on_done` is called in the thread that polls."""

    def __init__(
        self,
        work: Callable[[Progress], RunReport],
        on_done: Callable[[EvaluationJob], None],
    ) -> None:
        self._work = work
        self.on_done = on_done
        self._cancelled = threading.Event()
        self._finished = threading.Event()
        self._thread: threading.Thread | None = None
        self.at: tuple[str, float] = (WAITING, 0.0)
        """What is going on, and the fraction done."""
        self.report: RunReport | None = None
        self.error: OsmabenchError | None = None

    @property
    def begun(self) -> bool:
        """Whether its thread was started."""
        return self._thread is not None

    @property
    def done(self) -> bool:
        """Whether there is a report or an error."""
        return self._finished.is_set()

    @property
    def cancelled(self) -> bool:
        """Whether it ended because it was cancelled."""
        return isinstance(self.error, EvaluationCancelledError)

    def start(self) -> None:
        """Start the thread."""
        self.at = ('starting', 0.0)
        # A thread that hangs in native code must not keep the process alive.
        self._thread = threading.Thread(target=self._run, name='evaluation', daemon=True)
        self._thread.start()

    def cancel(self) -> None:
        """Stop at the next progress report; at once if the job is still waiting."""
        self._cancelled.set()
        if not self.begun:
            self.error = EvaluationCancelledError('the evaluation was cancelled before it began')
            self._finished.set()

    def join(self, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Wait for the end."""
        self._finished.wait(timeout_s)

    def _run(self) -> None:
        try:
            self.report = self._work(self._report_progress)
        except OsmabenchError as error:
            self.error = error
        except Exception as error:  # an error of a suite must not pass in silence
            self.error = RunError(f'the evaluation failed: {type(error).__name__}: {error}')
            self.error.__cause__ = error
        finally:
            self._finished.set()

    def _report_progress(self, text: str, fraction: float) -> None:
        if self._cancelled.is_set():
            raise EvaluationCancelledError(f'the evaluation was cancelled at "{self.at[0]}"')
        self.at = (text, fraction)


class EvaluationQueue:
    """Runs one job at a time, in order of submission; not thread-safe."""

    def __init__(self) -> None:
        self._jobs: deque[EvaluationJob] = deque()

    def __len__(self) -> int:
        return len(self._jobs)

    @property
    def current(self) -> EvaluationJob | None:
        """The job that runs."""
        return self._jobs[0] if self._jobs and self._jobs[0].begun else None

    def submit(self, job: EvaluationJob) -> None:
        """Append a job."""
        self._jobs.append(job)

    def poll(self, *, start: bool = True) -> None:
        """Call the callbacks of ended jobs, and start the next job if allowed."""
        for job in [job for job in self._jobs if job.done]:
            self._jobs.remove(job)
            job.on_done(job)
        if start and self._jobs and not self._jobs[0].begun:
            self._jobs[0].start()

    def stop(self) -> None:
        """Cancel all jobs, and call their callbacks."""
        jobs, running = list(self._jobs), self.current
        self._jobs.clear()
        for job in jobs:
            job.cancel()
        if running is not None:
            running.join()
        for job in jobs:
            job.on_done(job)
