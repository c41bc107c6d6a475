"""The back end of `--cluster`: tasks of Ray, which decides where and when.

A task works in the shared folder like a worker of `--jobs`: every stage of a run appears there
whole, under its name, and a run that is tried again goes on after its last finished stage.
"""

import json
import math
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

from osmabench_ros.base.configuration import extra, version
from osmabench_ros.base.files import is_ours, sha256_of
from osmabench_ros.base.processes import ENDING, signals_held
from osmabench_ros.bringup.runner import dispatch
from osmabench_ros.bringup.runner.dispatch import Message, Resources, Result, Task
from osmabench_ros.errors import ConfigError, OsmabenchError, RunError, errors_as, needing
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.preparation import Preparation
from osmabench_ros.runs.report_model import Status
from osmabench_ros.runs.run_manifest import mapper_files, scene_name

CONNECT_S = 10.0
NEWS_EVERY_S = 1.0
# A label that Ray gives every node.
NODE_ID = 'ray.io/node-id'


# The last file of an upload: the SHA-256 of every other; without it an upload is not whole.
UPLOADED = 'uploaded.json'


def check_address(url: str) -> None:
    """Raise ConfigError for an address that cannot be written to, or that holds a secret."""
    parts = urlsplit(url)
    if parts.username or parts.password or parts.query:
        raise ConfigError(
            '--upload holds a user, key or query; nodes take credentials from their environment'
        )
    _open_file_system(url)


def upload(folder: Path, url: str) -> None:
    """Copy a finished run, the list of digests last; an upload that is whole stays."""
    system, place = _open_file_system(url)
    present = (file for file in sorted(folder.rglob('*')) if file.is_file())
    digests = {file.relative_to(folder).as_posix(): sha256_of(file) for file in present}
    mark, content = f'{place}/{UPLOADED}', json.dumps(digests, indent=1).encode()
    if system.exists(mark) and system.cat_file(mark) == content:
        return
    for name in digests:
        file, target = folder / name, f'{place}/{name}'
        system.makedirs(target.rpartition('/')[0], exist_ok=True)
        system.put_file(str(file), target)
        if system.info(target)['size'] != file.stat().st_size:
            raise RunError(f'--upload: {target} has another size than {file}')
    system.pipe_file(mark, content)


def _open_file_system(url: str) -> tuple[Any, str]:
    with needing('--upload needs fsspec', extra('cluster')):
        from fsspec.core import url_to_fs
    with errors_as(ConfigError, f'--upload {url}', ValueError, ImportError):
        system, place = url_to_fs(url)
    return system, str(place)


@dataclass(frozen=True)
class Cluster:
    """The address of a cluster, how often tasks are tried, and where finished runs are copied."""

    address: str
    tries: int = 3
    upload: str = ''


@lru_cache(maxsize=1)
def describe_software() -> str:
    """Return the version of this package, and a digest of its sources."""
    digest = sha256_of(Path(__file__).parents[2], '*.py')
    return f'osmabench_ros {version()} with sources {digest[:12]}'


def hash_inputs(plan: RunPlan, preparation: Preparation) -> dict[str, str]:
    """Return the digests of all files that a run reads from outside the shared folder."""
    scene = {scene_name(plan.identity.scene_key): preparation.digest_of(plan)}
    return {**scene, **mapper_files(plan.mapper)}


@dataclass(frozen=True)
class RemoteOrder:
    """An order for any node, which names the place and inputs of the command; it has no secret."""

    plan: RunPlan
    prepares: bool
    cpus: float
    inputs: Mapping[str, str]
    directory: Path
    software: str
    upload: str = ''

    def check(self) -> None:
        """Raise RunError if this node cannot do the same as others; enter the directory."""
        if (found := describe_software()) != self.software:
            raise RunError(f'it has {found}, and the command {self.software}; install the same')
        if not is_ours(self.plan.root):
            raise RunError(f'it does not see {self.plan.root}; choose an --out that all share')
        os.chdir(self.directory)
        present = hash_inputs(self.plan, dispatch.keep_loaded()[0])
        if other := [name for name, digest in self.inputs.items() if present.get(name) != digest]:
            raise RunError(f'{", ".join(other)} differs from the command; copy it to every node')


def carry_out_remotely(remote: RemoteOrder, queue: Any, name: str) -> Result:
    """Carry out an order in a process of Ray; RunError if its node differs from the command."""
    import ray

    # Ray blocks it, and nodes that inherit that would wait for SIGTERM.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    progress = dispatch.report_to(lambda message: queue.put((name, message)), NEWS_EVERY_S)
    with errors_as(RunError, f'node {ray.util.get_node_ip_address()}', OsmabenchError, OSError):
        remote.check()
    at_once = max(1, int(dispatch.find_resources().cpus // remote.cpus))
    result = dispatch.carry_out(remote.plan, remote.prepares, at_once, progress=progress)
    if remote.upload and result.report is not None and result.report.status is Status.COMPLETE:
        progress('uploading', 1.0)
        try:
            upload(remote.plan.directory, remote.upload)
        except (OsmabenchError, OSError) as error:
            return Result(error=f'{remote.upload}: {error}', again=True)
    return result


class RayBackEnd:
    """Gives tasks to Ray, and takes their messages from a queue."""

    task = staticmethod(carry_out_remotely)

    def __init__(
        self, ray: Any, cluster: Cluster, plans: Sequence[RunPlan], preparation: Preparation
    ) -> None:
        self._ray = ray
        self.tries = cluster.tries
        self._preparation = preparation
        self._upload = cluster.upload.rstrip('/')
        nodes = [item['Resources'] for item in ray.nodes() if item['Alive']]
        self._nodes: list[Mapping[str, float]] = [item for item in nodes if item.get('CPU')]
        if not self._nodes:
            raise RunError('the cluster has no node with processors; start one with ray start')
        self._at_ray: dict[Any, Task] = {}
        for plan in {plan.mapper.name: plan for plan in plans}.values():
            self.choose_resources(Task(plan, 0))
        self.slots = sum(math.ceil(item['CPU']) for item in self._nodes)
        self._remote = ray.remote(max_retries=0)(self.task)
        here = {NODE_ID: ray.get_runtime_context().get_node_id()}
        self._queue = ray.util.queue.Queue(actor_options={'num_cpus': 0, 'label_selector': here})

    def choose_resources(self, task: Task) -> dict[str, Any]:
        """Return the resources that a task asks of Ray, at most a whole node."""
        gpus = task.plan.mapper.resources.gpus
        fitting = [item for item in self._nodes if item.get('GPU', 0.0) >= gpus]
        if not fitting:
            problem = f'resources.gpus is {gpus:g}, and no node of the cluster has as many'
            raise ConfigError(f'mapper "{task.plan.mapper.name}": {problem}; lower it')
        largest = max(fitting, key=lambda item: (item['CPU'], item.get('memory', 0)))
        whole = Resources(largest['CPU'], largest.get('memory', 0))
        usual = Resources(min(1.0, whole.cpus), min(dispatch.RUN_BYTES, whole.memory_bytes))
        demand = usual if task.prepares else dispatch.estimate_demand(task.plan, usual, whole)
        return {
            'num_cpus': demand.cpus,
            'num_gpus': demand.gpus if demand.gpus <= 1 else math.ceil(demand.gpus),
            'memory': int(demand.memory_bytes),
        }

    @property
    def full(self) -> bool:
        """Whether Ray has more than it can begin soon: a task that waits takes memory."""
        return len(self._at_ray) >= 2 * self.slots + 2

    def begin(self, task: Task) -> bool:
        """Give a task to Ray."""
        resources = self.choose_resources(task)
        remote = RemoteOrder(
            task.plan,
            task.prepares,
            resources['num_cpus'],
            hash_inputs(task.plan, self._preparation),
            Path.cwd(),
            describe_software(),
            f'{self._upload}/{task.plan.root.name}/{task.plan.directory.name}'
            if self._upload and not task.prepares
            else '',
        )
        with signals_held():
            ref = self._remote.options(**resources).remote(remote, self._queue, task.name)
            self._at_ray[ref] = task
        return True

    def poll(self) -> Iterator[tuple[Task, Message]]:
        """Wait for results, and yield them after all messages that came before."""
        with signals_held():  # inside of Ray an exception of a handler is lost
            ready, rest = self._ray.wait(list(self._at_ray), timeout=dispatch.LOOK_EVERY_S)
            ready += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if rest else []
            messages = self._queue.get_nowait_batch(self._queue.size())
        tasks = {task.name: task for task in self._at_ray.values()}
        yield from ((tasks[name], message) for name, message in messages if name in tasks)
        for ref in ready:
            yield self._at_ray.pop(ref), self._result(ref)

    def _result(self, ref: Any) -> Result:
        try:
            return cast('Result', self._ray.get(ref))
        except self._ray.exceptions.RayError as error:
            cause = getattr(error, 'cause', None) or error
            if isinstance(cause, RunError):
                raise cause from None
            # Without the traceback of another machine.
            why = str(cause).strip().partition('\n')[0]
            return Result(error=f'{type(cause).__name__}: {why}', again=True)

    def close(self) -> None:
        """Cancel all tasks, and wait until their nodes have ended; results stay as they are."""
        left = list(self._at_ray)
        for force in (False, True):
            for ref in left:
                self._ray.cancel(ref, force=force)
            if left:
                _, left = self._ray.wait(left, num_returns=len(left), timeout=dispatch.END_S)


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """Connect this process to a cluster, and yield Ray; RunError if it cannot be reached."""
    if '://' in address:
        remedy = 'give auto or HOST:PORT, on a machine of the cluster that sees --out'
        raise ConfigError(f'--cluster {address}: {remedy}')
    handlers = {number: signal.getsignal(number) for number in ENDING}
    with needing('--cluster needs Ray', extra('cluster')):
        import ray
        import ray.util.queue
        from ray._private.services import canonicalize_bootstrap_address_or_die
    try:
        address_found = canonicalize_bootstrap_address_or_die(address)
        host, _, port = address_found.rpartition(':')
        # Ray itself tries an address where nothing answers for more than ten minutes.
        socket.create_connection((host.strip('[]'), int(port)), CONNECT_S).close()
        ray.init(address=address_found, logging_level='error', log_to_driver=True)
    except (OSError, RuntimeError, ValueError) as error:
        why = ' '.join(str(error).split()).rstrip('.')
        remedy = 'ray status says whether it runs; all machines need the same Ray and Python'
        raise RunError(f'--cluster {address} cannot be reached: {why}; {remedy}') from error
    for number, handler in handlers.items():  # Ray takes the handlers of the command
        signal.signal(number, handler)
    try:
        with errors_as(RunError, f'--cluster {address}', ray.exceptions.RayError):
            yield ray
    except KeyboardInterrupt as error:  # what Ray makes of any exception of a handler
        raise SystemExit(dispatch.INTERRUPTED) from error
    finally:
        ray.shutdown()


@contextmanager
def use_cluster(
    cluster: Cluster, plans: Sequence[RunPlan], preparation: Preparation
) -> Iterator[RayBackEnd]:
    """Yield the back end for a cluster, and end its tasks."""
    if cluster.upload:
        check_address(cluster.upload)
    with (
        connect(cluster.address) as ray,
        closing(RayBackEnd(ray, cluster, plans, preparation)) as back_end,
    ):
        yield back_end
