"""The driver is played by a module of the same name: machines that test this have no GPU."""

import os
import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace
from unittest.mock import Mock

import pytest

from osmabench_ros.bringup.runner.node_processes import ManagedProcess, _driver, gpu_memory_bytes

MIB = 2**20


class NVMLError(Exception):
    pass


@pytest.fixture(autouse=True)
def another_driver():
    _driver.cache_clear()
    yield
    _driver.cache_clear()


@pytest.fixture
def held(monkeypatch):
    """Processes on each of two GPUs."""
    devices = {0: [], 1: []}
    driver = ModuleType('pynvml')
    driver.NVMLError = NVMLError
    driver.nvmlInit = lambda: None
    driver.nvmlDeviceGetCount = lambda: len(devices)
    driver.nvmlDeviceGetHandleByIndex = lambda index: index
    driver.nvmlDeviceGetComputeRunningProcesses = lambda handle: devices[handle]
    monkeypatch.setitem(sys.modules, 'pynvml', driver)
    monkeypatch.setattr(ManagedProcess, 'sample_every_s', 0.0)
    return devices


def on_gpu(pid, used):
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def test_memory_of_the_processes_is_added_over_gpus(held):
    held[0] += [on_gpu(7, 100 * MIB), on_gpu(8, 5 * MIB), on_gpu(99, 1000 * MIB)]
    held[1] += [on_gpu(7, 20 * MIB), on_gpu(8, None)]
    assert gpu_memory_bytes([7, 8]) == 125 * MIB


def test_the_driver_is_not_asked_too_often(held, tmp_path, monkeypatch):
    monkeypatch.setattr(ManagedProcess, 'sample_every_s', 60.0)
    with sleeper(tmp_path) as process:
        for used in (3, 9):
            held[1][:] = [on_gpu(process.pid, used * MIB)]
            process.poll()
    assert process.peak_gpu_memory_bytes == 3 * MIB


def test_memory_is_unknown_and_not_zero_without_a_process_a_driver_or_its_package(
    held, monkeypatch
):
    held[0].append(on_gpu(99, MIB))
    assert gpu_memory_bytes([7]) is None
    held[0].append(on_gpu(7, MIB))

    fail = Mock(side_effect=NVMLError('Driver Not Loaded'))
    monkeypatch.setattr(sys.modules['pynvml'], 'nvmlInit', fail)
    for module in (sys.modules['pynvml'], None):
        _driver.cache_clear()
        monkeypatch.setitem(sys.modules, 'pynvml', module)
        assert gpu_memory_bytes([7]) is None


@contextmanager
def sleeper(folder):
    command = [sys.executable, '-c', 'import time; time.sleep(600)']
    process = ManagedProcess('sleeper', command, folder / 'log', os.environ)
    try:
        yield process
    finally:
        process.stop()


def test_a_process_keeps_its_peak(held, tmp_path):
    with sleeper(tmp_path) as process:
        process.poll()
        assert process.peak_gpu_memory_bytes is None
        for used in (3, 9, 4):
            held[1][:] = [on_gpu(process.pid, used * MIB)]
            process.poll()
    assert process.peak_gpu_memory_bytes == 9 * MIB
