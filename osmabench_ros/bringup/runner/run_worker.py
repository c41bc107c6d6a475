"""The process that takes runs from the runner one after another, and keeps its nodes warm.

DDS and signals have one environment and one thread in a process, so runs side by side need a
process each.
"""

from __future__ import annotations

import signal
import sys
import time
import warnings
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from types import FrameType
from typing import TextIO

from osmabench_ros.bringup.runner.node_processes import NodeProcesses
from osmabench_ros.bringup.runner.one_run import run_one, without_figures
from osmabench_ros.bringup.runner.side_by_side import WorkDone, WorkNews, WorkOrder, WorkWarning
from osmabench_ros.bringup.spec.isolation import environment
from osmabench_ros.errors import OsmabenchError, OsmabenchWarning
from osmabench_ros.runs.prepare.preparation import Preparation

NEWS_PERIOD_S = 0.1
INTERRUPTED = 130


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    # What follows is the clean-up; a second signal must not cut it short.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


class _Reporter:
    """Tells the runner how far the work is, not too often, and what to warn of."""

    def __init__(self, channel: Connection) -> None:
        self._channel = channel
        self._text, self._told_s = '', 0.0

    def tell(self, text: str, fraction: float) -> None:
        now_s = time.monotonic()
        if text != self._text or now_s - self._told_s > NEWS_PERIOD_S:
            self._text, self._told_s = text, now_s
            self._channel.send(WorkNews(text, fraction))

    def warn(
        self,
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        del file
        if issubclass(category, OsmabenchWarning):
            self._channel.send(WorkWarning(str(message)))
        else:
            sys.stderr.write(warnings.formatwarning(message, category, filename, lineno, line))


def _carried_out(
    order: WorkOrder, preparation: Preparation, nodes: NodeProcesses, reporter: _Reporter
) -> WorkDone:
    visible = {'CUDA_VISIBLE_DEVICES': ','.join(order.gpus)} if order.gpus else {}
    with environment(visible):
        if not order.prepares:
            report = run_one(
                order.plan, preparation, nodes, reporter.tell, runs_at_once=order.runs_at_once
            )
            return WorkDone(without_figures(report))
        try:
            preparation.prepare(order.plan, reporter.tell)
        except (OsmabenchError, OSError) as error:
            return WorkDone(error=str(error))
        return WorkDone()


def main() -> int:
    """Serve the runner at the file descriptor that the arguments name."""
    handle, runs_each = map(int, sys.argv[1:])
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    preparation = Preparation()
    try:
        with Connection(handle) as channel, closing(NodeProcesses(runs_each)) as nodes:
            reporter = _Reporter(channel)
            warnings.showwarning = reporter.warn
            with suppress(EOFError, BrokenPipeError, ConnectionResetError):
                while True:
                    order = channel.recv()
                    channel.send(_carried_out(order, preparation, nodes, reporter))
    except KeyboardInterrupt:
        return INTERRUPTED
    return 0


if __name__ == '__main__':
    raise SystemExit(main())
