"""Limits of memory, time and nesting for untrusted files, and how users change them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.fence import VARIABLE, limit_factor
from osmabench_ros.errors import LimitError

_MIB = 2**20


@dataclass(frozen=True)
class Allowance:
    """Limits for reading one file: memory in MiB and times its size, processor time, nesting.

    Time grows by `seconds_per_mib` with the size; `depth` is of lists, objects and nodes in each
    other; `document_mib` is the size of a text: YAML, JSON, XML.
    """

    memory_mib: float = 512.0
    memory_ratio: float = 32.0
    seconds: float = 60.0
    seconds_per_mib: float = 1.0
    depth: int = 64
    document_mib: float = 256.0

    def memory_bytes(self, size_bytes: int) -> int:
        """Return the memory that a file of this size may take."""
        return int(self.memory_mib * _MIB + self.memory_ratio * size_bytes)

    def time_s(self, size_bytes: int) -> float:
        """Return the processor time that a file of this size may take."""
        return self.seconds + self.seconds_per_mib * size_bytes / _MIB

    def document_bytes(self) -> int:
        """Return the size up to which text documents are read."""
        return int(self.document_mib * _MIB)


_SCOPED: ContextVar[Allowance | None] = ContextVar('allowance', default=None)


def allowance() -> Allowance:
    """Return the limits in force: of `limited_to`, else of the environment, else the default."""
    factor = limit_factor()
    return _SCOPED.get() or Allowance(
        512.0 * factor, 32.0 * factor, 60.0 * factor, factor, document_mib=256.0 * factor
    )


@contextmanager
def limited_to(limits: Allowance) -> Iterator[None]:
    """Use other limits within a block, in this thread."""
    token = _SCOPED.set(limits)
    try:
        yield
    finally:
        _SCOPED.reset(token)


def exceeded(path: Path | str, what: str, limit: str) -> LimitError:
    """Return the error of a file that passes a limit, a field of `Allowance`, as `what` says."""
    return LimitError(
        f'{path}: {what}, more than the limit {limit} allows; the file is damaged or hostile. '
        f'If you trust it, raise all limits, for example with {VARIABLE}={4 * limit_factor():g}'
    )
