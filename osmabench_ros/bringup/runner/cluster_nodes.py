"""A cluster of Ray and its nodes: reached, and looked at before the first run."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.processes import ENDING
from osmabench_ros.base.progress import Progress
from osmabench_ros.bringup.runner.cluster_task import check_node, software
from osmabench_ros.bringup.runner.side_by_side import INTERRUPTED
from osmabench_ros.errors import OsmabenchError, RunError, needing

CONNECT_S = 10.0
CHECK_S = 300.0
"""For a node to start a process and import this package."""


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """Connect this process to a cluster; gives Ray. Raises RunError if it cannot be reached."""
    handlers = {number: signal.getsignal(number) for number in ENDING}
    with needing('--cluster needs Ray', extra('cluster')):
        import ray
        from ray._private.services import canonicalize_bootstrap_address_or_die
    try:
        address_found = canonicalize_bootstrap_address_or_die(address)
        host, _, port = address_found.rpartition(':')
        # Ray itself tries an address where nothing answers for more than ten minutes.
        socket.create_connection((host.strip('[]'), int(port)), CONNECT_S).close()
        ray.init(address=address_found, logging_level='error', log_to_driver=True)
    except (OSError, RuntimeError, ValueError) as error:
        why = ' '.join(str(error).split()).rstrip('.')
        raise RunError(
            f'--cluster {address} cannot be reached: {why}; ray status says whether it runs, and '
            'all machines need the same versions of Ray and Python'
        ) from error
    for number, handler in handlers.items():  # Ray takes those of the command
        signal.signal(number, handler)
    try:
        yield ray
    except KeyboardInterrupt as error:  # what Ray makes of any exception of a handler
        raise SystemExit(INTERRUPTED) from error
    finally:
        ray.shutdown()


def working_nodes(ray: Any) -> dict[str, Mapping[str, Any]]:
    """Return the nodes that take tasks, by their ids."""
    nodes = ((item['NodeID'], item) for item in ray.nodes() if item['Alive'])
    return {name: item for name, item in nodes if item['Resources'].get('CPU')}


def check_nodes(ray: Any, root: Path, progress: Progress) -> None:
    """Raise RunError if there are no nodes, or one that cannot take part in a matrix."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    nodes = working_nodes(ray)
    if not nodes:
        raise RunError('the cluster has no node with processors; start one with ray start')
    progress(f'looking at {len(nodes)} nodes of the cluster', 0.0)
    look = ray.remote(num_cpus=0, max_retries=1)(check_node)
    asked = {}
    for name, item in nodes.items():
        there = look.options(scheduling_strategy=NodeAffinitySchedulingStrategy(name, soft=False))
        asked[there.remote(root, software())] = item['NodeManagerAddress']
    complaints = []
    deadline_s = time.monotonic() + CHECK_S
    for ref, address in asked.items():
        try:
            ray.get(ref, timeout=max(deadline_s - time.monotonic(), 0.1))
        except ray.exceptions.RayError as error:
            complaints.append(f'node {address}: {cause(error)}')
    if complaints:
        raise RunError('; '.join(dict.fromkeys(complaints)))


def cause(error: Exception) -> str:
    """Return why a task failed, without the traceback of another machine."""
    cause = getattr(error, 'cause', None) or error
    if isinstance(cause, OsmabenchError):
        return str(cause)
    return f'{type(cause).__name__}: {str(cause).strip().partition(chr(10))[0]}'
