"""Ends what `ros2 launch` forgets."""

from __future__ import annotations

import atexit
import contextlib
import signal

import psutil
from launch.actions import RegisterEventHandler
from launch.event_handlers import OnShutdown

GRACE_S = 5.0


def end_orphans_at_exit() -> RegisterEventHandler:
    """Return the action that lets no process outlive the launch.

    If an action raises (an executable is not found, say), launch shuts down without those
    processes that it was just about to start, and starts them all the same.
    """

    def on_shutdown(_event: object, _context: object) -> None:
        atexit.unregister(_end_children)
        atexit.register(_end_children)

    return RegisterEventHandler(OnShutdown(on_shutdown=on_shutdown))


def _end_children() -> None:
    for number in (signal.SIGINT, signal.SIGKILL):
        children = psutil.Process().children(recursive=True)
        for child in children:
            with contextlib.suppress(psutil.Error):
                child.send_signal(number)
        psutil.wait_procs(children, timeout=GRACE_S)
