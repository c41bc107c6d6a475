"""The process around a node: starts it, spins it, and ends with its exit code."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import rclpy
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.signals import SignalHandlerOptions

from osmabench_ros.base.log import format_warning, send_warnings
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.ros.node.lifecycle import ERROR_PREFIX, BenchmarkNode

# Exit code of a process that was asked to end before it had given its result.
INTERRUPTED = 130

LOOK_EVERY_S = 0.2


def run_node(
    factory: Callable[[], BenchmarkNode[Any]], arguments: Sequence[str] | None = None
) -> int:
    """Run a node of `factory` until it finishes, fails or is interrupted; return the code."""
    # rclpy's own handlers take the context away from another thread at any moment, even while
    # this one takes down what belongs to it.
    given = list(arguments) if arguments is not None else None
    rclpy.init(args=given, signal_handler_options=SignalHandlerOptions.NO)
    send_warnings(lambda text: sys.stderr.write(format_warning(text)))
    node: BenchmarkNode[Any] | None = None
    signals = []

    def interrupt(number: int, _frame: Any) -> None:
        # A second Ctrl-C must not cut off unfinished work of a node; SIGKILL still ends it.
        _handle_signals(signal.SIG_IGN)
        signals.append(number)
        raise KeyboardInterrupt

    try:
        _handle_signals(interrupt)
        node = factory()
        code = _spin(node, signals)
    except OsmabenchError as error:
        print(f'{ERROR_PREFIX}{error}', file=sys.stderr, flush=True)  # noqa: T201
        code = error.exit_code
    except KeyboardInterrupt:
        code = _code_of_interrupted(node)
    except Exception:
        # rclpy's C code calls Python; an exception raised there comes out as another one.
        if not signals:
            raise
        code = _code_of_interrupted(node)
    finally:
        _handle_signals(signal.SIG_IGN)
        if node is not None:
            node.cleanup()
            node.destroy_node()
        rclpy.try_shutdown()
    # A bag that cannot be finished, as an example, fails only in the cleanup.
    failed = node.exit_code if node is not None else None
    return code or failed or 0


def _handle_signals(handler: Any) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def _code_of_interrupted(node: BenchmarkNode[Any] | None) -> int:
    if node is not None and node.exit_code is not None:
        return node.exit_code
    if node is not None and not node.owes_result():
        return 0
    print('osmabench: asked to end before there was a result', file=sys.stderr)  # noqa: T201
    return INTERRUPTED


def _spin(node: BenchmarkNode[Any], signals: Sequence[int]) -> int:
    executor = SingleThreadedExecutor()
    executor.add_node(node)
    if node.autostart:
        node.trigger_configure()
        if node.exit_code is None:
            node.trigger_activate()
    try:
        with _woken_by_signals(executor):
            while node.exit_code is None:
                executor.spin_once(timeout_sec=LOOK_EVERY_S)
                if signals:  # or is lost there
                    raise KeyboardInterrupt
    finally:
        executor.shutdown()
    return node.exit_code


@contextmanager
def _woken_by_signals(executor: Executor) -> Iterator[None]:
    """End the waiting of an executor at a signal; Python calls no handler before it ends."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)

    def wake() -> None:
        while os.read(reader, 1):
            executor.wake()
        os.close(reader)

    waker = threading.Thread(target=wake, daemon=True)
    waker.start()
    previous = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    try:
        yield
    finally:
        signal.set_wakeup_fd(previous)
        os.close(writer)
        waker.join()
