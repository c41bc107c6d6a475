"""The worker process, with a replacement of habitat_sim: only its end counts here."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest
from support.waiting import is_alive, wait_until

from osmabench_ros.errors import MissingDependencyError, SimulationError
from osmabench_ros.simulation.habitat.process import WorkerProcess


@pytest.fixture
def python(tmp_path, write_file):
    """An interpreter that can import something called habitat_sim."""
    library = tmp_path / 'library'
    library.mkdir()
    (library / 'habitat_sim.py').write_text("__version__ = '0.3.9'\nprint('loud library')\n")
    script = write_file(
        'python_with_habitat', f'#!/bin/sh\nPYTHONPATH="{library}" exec "{sys.executable}" "$@"\n'
    )
    script.chmod(0o755)
    return str(script)


@pytest.fixture
def worker(python, closes):
    return closes(WorkerProcess(python, 4096))


def test_it_says_what_it_runs_and_leaves_nothing_when_closed(worker):
    assert worker.versions['habitat_sim'] == '0.3.9'
    assert 'loud library' in worker.log()
    pid, folder = worker.pid, Path(os.readlink(f'/proc/{worker.pid}/cwd'))
    assert folder != Path.cwd()
    descriptors = len(os.listdir('/proc/self/fd'))
    worker.close()
    worker.close()
    assert len(os.listdir('/proc/self/fd')) == descriptors - 3
    assert not psutil.pid_exists(pid)
    assert not folder.exists()
    with pytest.raises(SimulationError, match='closed; make a new one'):
        worker.call('hello', 1.0)


def test_a_refused_request_is_an_error_and_the_worker_lives_on(worker):
    with pytest.raises(SimulationError, match='Habitat-Sim, jump: .*jump'):
        worker.call('jump', 5.0)
    assert worker.call('hello', 5.0)['habitat_sim'] == '0.3.9'


def test_a_worker_that_dies_is_an_error_with_the_end_of_its_output(worker):
    os.kill(worker.pid, signal.SIGKILL)
    with pytest.raises(SimulationError, match=r'(?s)died.*signal 9.*printed last.*loud library'):
        worker.call('hello', 5.0)
    assert worker.closed


def test_a_worker_that_hangs_is_ended(worker):
    pid = worker.pid
    os.kill(pid, signal.SIGSTOP)
    start = time.monotonic()
    with pytest.raises(SimulationError, match=r'did not answer "hello" within 0.3 s'):
        worker.call('hello', 0.3)
    assert time.monotonic() - start < 30
    assert not psutil.pid_exists(pid)


def test_another_thread_is_refused(worker):
    with (
        ThreadPoolExecutor(1, 'other') as pool,
        pytest.raises(SimulationError, match='called from "other_0"'),
    ):
        pool.submit(worker.call, 'hello', 1.0).result()


def test_a_forgotten_worker_ends(python):
    worker = WorkerProcess(python, 4096)
    pid = worker.pid
    del worker
    assert not psutil.pid_exists(pid)


def test_the_worker_of_a_killed_process_ends_and_tidies_up(python):
    source = textwrap.dedent(f"""
        import sys, time
        from osmabench_ros.simulation.habitat.process import WorkerProcess
        worker = WorkerProcess({python!r}, 4096)
        print(worker.pid, flush=True)
        time.sleep(60)
    """)
    parent = subprocess.Popen([sys.executable, '-c', source], stdout=subprocess.PIPE, text=True)
    pid = int(parent.stdout.readline())
    folder = Path(os.readlink(f'/proc/{pid}/cwd'))
    parent.kill()
    parent.wait()
    parent.stdout.close()
    wait_until(lambda: not is_alive(pid))
    assert not folder.exists()


def test_an_interpreter_that_is_not_there_is_named():
    with pytest.raises(MissingDependencyError, match=r'"/no/python" .*habitat_python.*docs/'):
        WorkerProcess('/no/python', 4096)


def test_an_interpreter_without_habitat_sim_is_named():
    with pytest.raises(MissingDependencyError, match=r"No module named 'habitat_sim'.*docs/"):
        WorkerProcess(sys.executable, 4096)
