"""A cluster of Ray on this machine: a head without processors, and nodes to add and kill."""

import os
import shutil
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

FIXED = {'object_store_memory': 80 * 2**20, 'memory': 4 * 2**30}


class Nodes:
    """Each node has a separate temporary folder, and a file that holds up its mappers."""

    def __init__(self, cluster, folder):
        self._cluster, self._folder = cluster, folder
        self._nodes = {}

    @property
    def address(self):
        return str(self._cluster.address)

    def place(self, name):
        """Return the temporary folder of a node; Ray's sockets need a short path."""
        place = self._folder / name
        place.mkdir(exist_ok=True)
        return place

    def holds_up(self, name):
        return self._folder / f'hold_{name}'

    def add(self, name, **more):
        order = str(self.holds_up(name))
        variables = {'TMPDIR': str(self.place(name)), 'TEST_ORDER': order, **more}
        self._nodes[name] = self._cluster.add_node(num_cpus=1, env_vars=variables, **FIXED)

    def kill(self, name):
        """Kill the raylet of a node, and with it the node."""
        self._cluster.remove_node(self._nodes.pop(name), allow_graceful=False)

    def close(self):
        for name in list(self._nodes):
            self.kill(name)

    def kill_worker(self, name):
        """Kill the process of a node that carries out a run."""
        [worker] = self._busy_workers(name)
        worker.kill()

    def is_held_up(self, name):
        """Return whether a mapper that a task of a node has started waits for its file to go."""
        logs = []
        for process in self.processes_of_tasks(name):
            with suppress(psutil.Error):
                logs += [file.path for file in process.open_files() if 'mapper.log' in file.path]
        return any('hanging' in Path(log).read_text() for log in logs)

    def processes_of_tasks(self, name):
        """Return the processes that tasks of a node have started."""
        return [
            child
            for worker in self._busy_workers(name)
            for child in worker.children(recursive=True)
        ]

    def is_idle(self, name):
        return not self._busy_workers(name)

    def _busy_workers(self, name):
        """Return the workers of a node that have a task: Ray shows it as their command."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                command = process.cmdline()
                if (
                    command
                    and command[0].startswith('ray::carry_out_remotely')
                    and process.environ().get('TMPDIR') == str(self.place(name))
                ):
                    found.append(process)
        return found


@contextmanager
def ray_cluster():
    """Start the head of a cluster on ports that the system chooses; its files go with it."""
    folder = Path(tempfile.mkdtemp(prefix='ray', dir='/tmp'))
    # Ray's own niceness for workers, 15, is a standstill on a machine that is busy. A cluster
    # leaves its address in RAY_TMPDIR, where `auto` finds it, and no cluster of the user.
    os.environ.update(RAY_USAGE_STATS_ENABLED='0', RAY_worker_niceness='0', RAY_TMPDIR=str(folder))
    from ray.cluster_utils import Cluster

    (folder / 'ray').mkdir()
    head = {'num_cpus': 0, 'include_dashboard': False, **FIXED}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    nodes = Nodes(cluster, folder)
    try:
        yield nodes
    finally:
        nodes.close()
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
