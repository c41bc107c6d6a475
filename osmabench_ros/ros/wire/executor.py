"""The executor of a command, in a process whose signal handlers raise."""

from __future__ import annotations

from rclpy.executors import SingleThreadedExecutor

from osmabench_ros.base.processes import signals_held


class CommandExecutor(SingleThreadedExecutor):
    """Raises what a signal handler raises after `spin_once`, never during it.

    rclpy's C code calls Python to make messages. An exception that a handler raises there comes
    out as another one, or not at all.
    """

    def spin_once(self, timeout_sec: float | None = None) -> None:
        """Wait for a callback and run it; signals wait until then."""
        with signals_held():
            super().spin_once(timeout_sec)
