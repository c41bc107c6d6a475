"""Handles Ctrl-C under `ros2 launch` so that no event or error is lost.

launch receives Ctrl-C by a file descriptor, in turn with its other events, but leaves Python's own
handler in place. That handler also raises KeyboardInterrupt, wherever launch happens to be, and
launch then drops the event that it was handling: the end of its nodes, or the error that makes
`ros2 launch` fail. `Interrupts.install` replaces the handler. All launch files call it by an
action; those that owe a result call it before slow imports.
"""

from __future__ import annotations

import asyncio
import atexit
import signal
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from launch.actions import EmitEvent, OpaqueFunction, RegisterEventHandler
from launch.event_handler import EventHandler
from launch.event_handlers import OnShutdown
from launch.events import Shutdown
from launch.launch_description_entity import LaunchDescriptionEntity

from launch import Event, LaunchContext
from osmabench_ros.errors import RunError

Result = TypeVar('Result')

MESSAGE = 'interrupted before the end of the run; there is no verdict'


class Interrupts:
    """Keeps Ctrl-C from breaking launch's event loop, and lets it interrupt long work."""

    def __init__(self) -> None:
        self.heard = False
        self._previous: Any = signal.SIG_DFL
        self._cuts_off = False

    def install(self) -> None:
        """Replace Python's handler; does nothing if done already, or outside the main thread."""
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGINT) != self.hear:
            self._previous = signal.signal(signal.SIGINT, self.hear)
            # Python gives up its handlers before it ends, and another Ctrl-C would then end it
            # with the exit code of the signal instead of the one that was decided.
            atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)

    def cut_off(self, work: Callable[[], Result]) -> Result:
        """Return the result of a long function; RunError if Ctrl-C was pressed, also before."""
        try:
            if self.heard:
                raise KeyboardInterrupt
            try:
                self._cuts_off = True
                return work()
            finally:
                self._cuts_off = False
        except KeyboardInterrupt:
            raise RunError(MESSAGE) from None

    def hear(self, number: int, frame: Any) -> None:
        """Note that the user interrupts, or end at once what launch does not know of."""
        if not (self.heard or _is_in_event_loop()) and callable(self._previous):
            self._previous(number, frame)
            return
        self.heard = True
        if self._cuts_off:
            self._cuts_off = False
            raise KeyboardInterrupt


def _is_in_event_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


class InterruptEvent(Event):
    """Ctrl-C came before the end of the run."""


def error_if_interrupted(over: Callable[[], bool]) -> list[LaunchDescriptionEntity]:
    """Return the actions that make Ctrl-C an error as long as there is no verdict."""

    def on_shutdown(event: Shutdown, _context: LaunchContext) -> EmitEvent | None:
        # Raised by a handler of Shutdown itself, it would keep others from ending processes.
        cut_off = event.due_to_sigint and not over()
        return EmitEvent(event=InterruptEvent()) if cut_off else None

    def fail(_context: LaunchContext) -> None:
        raise RunError(MESSAGE)

    return [
        RegisterEventHandler(OnShutdown(on_shutdown=on_shutdown)),
        RegisterEventHandler(
            EventHandler(
                matcher=lambda event: isinstance(event, InterruptEvent),
                entities=[OpaqueFunction(function=fail)],
            )
        ),
    ]


# The instance of this process.
interrupts = Interrupts()
