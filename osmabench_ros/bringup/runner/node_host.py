"""The process that forks a new process for each node of ours, after the imports that all need.

The imports take more than a second of processor time, a fork takes hundredths of one. The host
is safe to fork: it starts neither ROS, OpenGL nor torch, so no thread of theirs runs in it.
OpenBLAS ends its threads before a fork, and the threads of LTTng only wait for a tracer.
"""

import atexit
import gc
import inspect
import os
import signal
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from socket import socketpair

import numpy as np

# Modules that all nodes have from their start: they would import most of them in every run.
#
# Torch, Open3D and OpenGL are left to the nodes that use them, so that the memory of a node is
# its.
PRELOADED_MODULES = (
    *(
        f'osmabench_ros.nodes.{name}_node'
        for name in (
            'bag_recorder', 'evaluator', 'map_adapter', 'map_recorder', 'mapper',
            'simulator_bridge',
        )
    ),
    'osmabench_ros.mappers.appearance_descriptors',
    'osmabench_ros.mappers.bundled',
    'osmabench_ros.scenes.apartment.generate',
    'rosidl_generator_py',
    'scipy.optimize',
    'scipy.special',
)  # fmt: skip


@dataclass(frozen=True)
class NodeOrder:
    """A node to start, with all in which its process differs from the host."""

    name: str
    module: str
    arguments: tuple[str, ...]
    environment: Mapping[str, str]
    directory: Path
    log_file: Path

    def run(self) -> int:
        """Make this process like a new one, and run the node in it; return its exit code."""
        os.chdir(self.directory)
        os.environ.clear()
        os.environ.update(self.environment)
        log = os.open(self.log_file, os.O_WRONLY | os.O_APPEND)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.close(log)
        Path('/proc/self/comm').write_text(self.name, 'utf-8')  # what ps and top show
        np.random.seed()  # noqa: NPY002 - `random` does so by itself
        module = import_module(self.module)
        sys.argv = [str(module.__file__), *self.arguments]
        code = int(module.main())
        # Python would take apart all that it shares with the host, page by page.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _serve(channel: Connection) -> NodeOrder | None:
    """Fork for each order; return it in the new process, and None in the host at the end."""
    with channel, suppress(EOFError, ConnectionError):  # the runner has gone
        while True:
            order: NodeOrder = channel.recv()
            if _fork_node(channel):
                return order
    return None


def _fork_node(channel: Connection) -> bool:
    """Fork a process for a node; return True in it, once the runner guards it."""
    ours, theirs = socketpair()
    between = os.fork()
    if between == 0:
        if os.fork() != 0:
            os._exit(0)  # so that the runner, which has asked for orphans, is the parent
        os.setsid()
        ours.close()
        theirs.send(str(os.getpid()).encode())
        if not theirs.recv(1):
            os._exit(1)  # the runner was killed before it could guard this process
        theirs.close()
        return True
    theirs.close()
    os.waitpid(between, 0)
    with ours:
        channel.send(int(ours.recv(20)))
        channel.recv()
        ours.send(b'.')
    return False


def main() -> int:
    """Serve the runner at the file descriptor that the argument names."""
    for name in PRELOADED_MODULES:
        import_module(name)
    # The first line that rclpy logs looks up the file of each module, which takes 0.1 s.
    inspect.getmodule(inspect.currentframe())
    # Python 3.12 warns of any thread at a fork.
    warnings.filterwarnings('ignore', 'This process .* is multi-threaded', DeprecationWarning)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # who ignores it cannot wait for a child
    gc.freeze()  # else a collection would copy pages that the processes share
    order = _serve(Connection(int(sys.argv[1])))
    return 0 if order is None else order.run()


if __name__ == '__main__':
    # Objects on the channel must be of the module that the runner knows, not of __main__.
    raise SystemExit(import_module('osmabench_ros.bringup.runner.node_host').main())
