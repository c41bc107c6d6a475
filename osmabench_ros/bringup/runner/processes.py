"""Processes of a run: their memory use, and the shared memory that they leave behind."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any

import psutil

from osmabench_ros.base.files import write_text
from osmabench_ros.base.processes import SupervisedProcess
from osmabench_ros.bringup.spec.isolation import SegmentsInUse
from osmabench_ros.ros.node.lifecycle import ERROR_PREFIX


def gpu_memory_bytes(pids: Collection[int]) -> int | None:
    """Return the bytes that processes hold on all GPUs together, None if unknown."""
    nvml = _driver()
    if nvml is None:
        return None
    try:
        held = [
            int(process.usedGpuMemory)
            for index in range(nvml.nvmlDeviceGetCount())
            for process in nvml.nvmlDeviceGetComputeRunningProcesses(
                nvml.nvmlDeviceGetHandleByIndex(index)
            )
            # The driver does not report the memory of every process.
            if process.pid in pids and process.usedGpuMemory is not None
        ]
    except nvml.NVMLError:
        return None
    return sum(held) if held else None


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that programs may use, by the names that CUDA_VISIBLE_DEVICES takes."""
    chosen = os.environ.get('CUDA_VISIBLE_DEVICES')
    if chosen is not None:
        return tuple(filter(None, (item.strip() for item in chosen.split(','))))
    nvml = _driver()
    return () if nvml is None else tuple(map(str, range(nvml.nvmlDeviceGetCount())))


@lru_cache(maxsize=1)
def _driver() -> Any:
    """Return nvidia-ml-py, None where it or the driver is missing."""
    try:
        nvml = import_module('pynvml')
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError:
        return None
    return nvml


SEGMENTS_PERIOD_S = 1.0


class ManagedProcess(SupervisedProcess):
    """A process with a new log; samples its GPU memory and removes its segments."""

    tail_lines = 5
    sample_every_s = 0.2

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        log_file: Path,
        environment: Mapping[str, str],
        *,
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.peak_gpu_memory_bytes: int | None = None
        self._segments, self._segments_noted_s = SegmentsInUse(), 0.0
        write_text(log_file, '')
        super().__init__(name, command, log_file, environment, pass_fds=pass_fds)

    def _sample(self, family: Sequence[psutil.Process]) -> None:
        super()._sample(family)
        numbers = [process.pid for process in family]
        if (now_s := time.monotonic()) - self._segments_noted_s > SEGMENTS_PERIOD_S:
            self._segments.note(numbers)
            self._segments_noted_s = now_s
        on_gpu = gpu_memory_bytes(numbers)
        if on_gpu is not None:
            self.peak_gpu_memory_bytes = max(self.peak_gpu_memory_bytes or 0, on_gpu)

    def reason(self) -> str:
        """Return the error that it printed, if any; else as for every process."""
        lines = self.log_file.read_text('utf-8', 'replace').splitlines()
        own = [line for line in lines if line.startswith(ERROR_PREFIX)]
        return own[-1].removeprefix(ERROR_PREFIX) if own else super().reason()

    def stop(
        self, grace_s: float = 5.0, numbers: Sequence[int] = SupervisedProcess.ENDING_ORDER
    ) -> None:
        """End it and its descendants, and remove the shared memory that they leave."""
        self._segments.note(process.pid for process in self.family())
        super().stop(grace_s, numbers)
        self._segments.remove_left()
