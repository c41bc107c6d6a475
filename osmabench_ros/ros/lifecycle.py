"""The lifecycle node that every node of this package is, and the main program around it."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Any

import rclpy
from rclpy.executors import ExternalShutdownException, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from rclpy.signals import SignalHandlerOptions

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.ros.parameters import ParameterSpec, declare

ERROR_PREFIX = 'osmabench: error: '
"""Starts the line on stderr that tells why a node ended."""

AUTOSTART = ParameterSpec(
    'autostart', False, 'Configure and activate without waiting for a lifecycle manager.'
)

INTERRUPTED = 130
"""Exit code of a process that was asked to end before its job was done."""


class BenchmarkNode(LifecycleNode):
    """A lifecycle node whose failures end the process with a reason and an exit code.

    Subclasses implement `configure`, `activate`, `deactivate` and `cleanup`; an OsmabenchError
    from them, or from a callback wrapped by `guarded`, is a failure. All callbacks run in one
    thread, the one that `run_node` spins in, so a simulator may live there.

    Parameters
    ----------
    name : str
        Default name of the node.
    specs : sequence of ParameterSpec
        Its parameters.
    """

    def __init__(self, name: str, specs: Sequence[ParameterSpec]) -> None:
        super().__init__(name)
        self.exit_code: int | None = None
        self.done = False
        """Whether the job is done, so that being asked to end is no failure."""
        self.parameter: dict[str, Any] = declare(self, [*specs, AUTOSTART])

    def configure(self) -> None:
        """Allocate what the job needs."""

    def activate(self) -> None:
        """Start the job."""

    def deactivate(self) -> None:
        """Pause the job."""

    def cleanup(self) -> None:
        """Free what `configure` allocated; must not fail if it never ran."""

    def finish(self, exit_code: int = 0) -> None:
        """End the process once the current callback returns."""
        if self.exit_code is None:
            self.exit_code = exit_code

    def fail(self, error: Exception) -> None:
        """Say why and end the process."""
        code = error.exit_code if isinstance(error, OsmabenchError) else 1
        print(f'{ERROR_PREFIX}{error}', file=sys.stderr, flush=True)  # noqa: T201
        self.get_logger().fatal(str(error))
        self.finish(code)

    def guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """Wrap a callback so that an OsmabenchError in it is a failure of the node."""

        def call(*arguments: Any) -> None:
            if self.exit_code is not None:
                return
            try:
                callback(*arguments)
            except OsmabenchError as error:
                self.fail(error)

        return call

    def _transition(self, step: Callable[[], None]) -> TransitionCallbackReturn:
        # rclpy swallows exceptions of transition callbacks, so they must be told here.
        try:
            step()
        except OsmabenchError as error:
            self.fail(error)
            return TransitionCallbackReturn.FAILURE
        except Exception as error:
            self.get_logger().fatal(traceback.format_exc())
            self.fail(error)
            return TransitionCallbackReturn.ERROR
        return TransitionCallbackReturn.SUCCESS

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        del state
        return self._transition(self.configure)

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        super().on_activate(state)
        return self._transition(self.activate)

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        result = self._transition(self.deactivate)
        super().on_deactivate(state)
        return result

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        del state
        return self._transition(self.cleanup)

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Answer the lifecycle manager."""
        del state
        result = self._transition(self.cleanup)
        self.finish(0)
        return result


def run_node(factory: Callable[[], BenchmarkNode], arguments: Sequence[str] | None = None) -> int:
    """Run a node until it finishes, fails or is interrupted.

    Parameters
    ----------
    factory : callable
        Makes the node once rclpy is initialised.
    arguments : sequence of str, optional
        ROS arguments; those of the process by default.

    Returns
    -------
    int
        Exit code of the process.
    """
    rclpy.init(
        args=list(arguments) if arguments is not None else None,
        signal_handler_options=SignalHandlerOptions.ALL,
    )
    node: BenchmarkNode | None = None
    try:
        node = factory()
        return _spin(node)
    except OsmabenchError as error:
        print(f'{ERROR_PREFIX}{error}', file=sys.stderr, flush=True)  # noqa: T201
        return error.exit_code
    except (KeyboardInterrupt, ExternalShutdownException):
        if node is not None and node.exit_code is not None:
            return node.exit_code
        return 0 if node is not None and node.done else INTERRUPTED
    finally:
        if node is not None:
            node.cleanup()
            node.destroy_node()
        rclpy.try_shutdown()


def _spin(node: BenchmarkNode) -> int:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    if node.parameter['autostart']:
        node.trigger_configure()
        if node.exit_code is None:
            node.trigger_activate()
    try:
        while node.exit_code is None:
            executor.spin_once(timeout_sec=0.2)
    finally:
        executor.shutdown()
    return node.exit_code
