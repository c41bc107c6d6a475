"""How much memory of NVIDIA GPUs some processes hold, whatever library they took it with."""

from __future__ import annotations

import time
from collections.abc import Collection
from importlib import import_module
from typing import Any

SAMPLE_EVERY_S = 0.2


class GpuMemory:
    """Samples the driver through nvidia-ml-py.

    Without that package or a driver nothing is known. The same holds for processes that hold no
    memory of a GPU, and in a container that numbers processes otherwise than the driver does.
    """

    def __init__(self) -> None:
        self._nvml = _library()
        self._last_s = -SAMPLE_EVERY_S

    def used_by(self, pids: Collection[int]) -> int | None:
        """Return the bytes that the processes hold on all GPUs together, None if unknown.

        None as well if the last sample is younger than `SAMPLE_EVERY_S`: asking takes time.
        """
        now_s = time.monotonic()
        if self._nvml is None or now_s - self._last_s < SAMPLE_EVERY_S:
            return None
        self._last_s = now_s
        try:
            held = _held_by(self._nvml, frozenset(pids))
        except self._nvml.NVMLError:
            return None
        return sum(held) if held else None


def _library() -> Any:
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


def _held_by(nvml: Any, pids: frozenset[int]) -> list[int]:
    return [
        int(process.usedGpuMemory)
        for index in range(nvml.nvmlDeviceGetCount())
        for process in nvml.nvmlDeviceGetComputeRunningProcesses(
            nvml.nvmlDeviceGetHandleByIndex(index)
        )
        # The driver does not tell the memory of every process.
        if process.pid in pids and process.usedGpuMemory is not None
    ]
