"""Ends what `ros2 launch` forgets, and what outlives it when it is killed."""

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

from osmabench_ros.bringup import launch_guard
from osmabench_ros.bringup.launch_guard import end_processes

GRACE_S = 5.0


class Orphanage:
    """Lets no process outlive the launch.

    If an action raises (an executable is not found, say), launch shuts down without those
    processes that it was just about to start, and starts them all the same. At SIGTERM and
    SIGKILL it ends none.
    """

    def __init__(self) -> None:
        self._guard: subprocess.Popen[str] | None = None

    def actions(self) -> list[LaunchDescriptionEntity]:
        """Return what has to come before all that starts a process."""
        return [
            RegisterEventHandler(OnProcessStart(on_start=self._on_start)),
            RegisterEventHandler(OnShutdown(on_shutdown=self._on_shutdown)),
        ]

    def _on_start(self, event: ProcessStarted, _context: object) -> None:
        if self._guard is None:
            self._guard = subprocess.Popen(  # noqa: S603 - a module of this package
                [sys.executable, '-m', launch_guard.__name__],
                stdin=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        # Where somebody killed the guard, this launch is as good as any other.
        with contextlib.suppress(BrokenPipeError):
            print(event.pid, file=self._guard.stdin, flush=True)

    def _on_shutdown(self, _event: object, _context: object) -> None:
        atexit.unregister(self._end_children)
        atexit.register(self._end_children)

    def _end_children(self) -> None:
        if self._guard is not None:
            self._guard.communicate()
        end_processes(psutil.Process().children(recursive=True), GRACE_S)
