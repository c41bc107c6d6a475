"""What the runner and the process that hosts a node say to each other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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
