"""The process that hosts nodes of one kind, one after another, each as if the process were new.

What costs time, imports above all, is done once. A node gets a ROS context, and with it a ROS
domain, parameters and endpoints, of its own: that takes hundredths of a second, and no message
of one run can reach the next.
"""

from __future__ import annotations

import ctypes
import gc
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path


@dataclass(frozen=True)
class HostedRun:
    """What a node needs for a run: its arguments, its whole environment, and its new log."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    log_file: Path


@dataclass(frozen=True)
class HostedEnd:
    """How a node ended: its exit code, and whether the process may host another."""

    exit_code: int
    clean: bool


def _host(node_main: Callable[[], int], run: HostedRun) -> HostedEnd:
    os.environ.clear()
    os.environ.update(run.environment)
    sys.argv[1:] = run.arguments
    _log_to(run.log_file)
    show = warnings.formatwarning
    with warnings.catch_warnings():  # which also forgets which warnings have been shown
        code = node_main()
    warnings.formatwarning = show
    clean = _forget()
    _log_to(Path(os.devnull))
    return HostedEnd(code, clean)


def _log_to(file: Path) -> None:
    """Write what this process prints, from C too, to the end of a file."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # a full disk; /diagnostics has it all the same
            stream.flush()
    handle = os.open(file, os.O_WRONLY | os.O_APPEND)
    for number in (1, 2):
        os.dup2(handle, number)
    os.close(handle)


def _forget() -> bool:
    """Free what a node left; return False if it left a thread, which may still do anything."""
    gc.collect()
    if (torch := sys.modules.get('torch')) is not None and torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    # Else the peak memory of the next run would hold what this one freed.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
    here = threading.current_thread()
    return all(item is here or item.daemon for item in threading.enumerate())


def _handle_signals(handler: signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, handler)


def main() -> int:
    """Host the nodes of the module and at the file descriptor that the arguments name."""
    module, handle = sys.argv[1:]
    _handle_signals(signal.SIG_IGN)  # a node that runs has its own
    here = Path.cwd()
    with Connection(int(handle)) as channel:
        node_main = import_module(module).main
        gc.freeze()  # what was imported stays, and need not be looked through after each run
        # The runner has gone, or needs this process no more.
        with suppress(EOFError, OSError):
            while True:
                end = _host(node_main, channel.recv())
                os.chdir(here)
                if not end.clean:
                    _handle_signals(signal.SIG_DFL)
                channel.send(end)
    return 0


if __name__ == '__main__':
    # What goes over the channel must be of the module that the runner knows, not of __main__.
    raise SystemExit(import_module('osmabench_ros.bringup.runner.node_host').main())
