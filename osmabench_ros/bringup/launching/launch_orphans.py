"""Ends child processes that `ros2 launch` leaves running."""

from __future__ import annotations

import atexit
import contextlib
import subprocess
import sys

import psutil
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnProcessStart, OnShutdown
from launch.events.process import ProcessStarted
from launch.launch_description_entity import LaunchDescriptionEntity

from osmabench_ros.base import processes

GRACE_S = 5.0


class OrphanReaper:
    """Ends all child processes when the launch ends or is killed.

    If an action raises, e.g. because an executable is not found, launch shuts down but still
    starts the processes that were next in line, and never ends them. At SIGTERM and SIGKILL it
    ends no process at all.
    """

    def __init__(self) -> None:
        self._guard: subprocess.Popen[str] | None = None

    def actions(self) -> list[LaunchDescriptionEntity]:
        """Return the actions; they must come before every action that starts a process."""
        return [
            RegisterEventHandler(OnProcessStart(on_start=self._on_start)),
            RegisterEventHandler(OnShutdown(on_shutdown=self._on_shutdown)),
        ]

    def _on_start(self, event: ProcessStarted, _context: object) -> None:
        if self._guard is None:
            self._guard = subprocess.Popen(  # noqa: S603 - a module of this package
                [sys.executable, '-m', processes.__name__],
                stdin=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        # If the guard was killed, the launch goes on without it.
        with contextlib.suppress(BrokenPipeError):
            print(event.pid, file=self._guard.stdin, flush=True)

    def _on_shutdown(self, _event: object, _context: object) -> None:
        atexit.unregister(self._end_children)
        atexit.register(self._end_children)

    def _end_children(self) -> None:
        if self._guard is not None:
            self._guard.communicate()
        processes.end_processes(psutil.Process().children(recursive=True), GRACE_S)
