"""What a look at the machine, or at a stack that runs on it, found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Level(str, Enum):
    """How bad it is."""

    OK = 'ok'
    ABSENT = 'absent'
    WARN = 'warn'
    FAILED = 'failed'


@dataclass(frozen=True)
class Finding:
    """One look at the machine, with what to do, '' if there is nothing to do.

    ABSENT if an optional part is missing, WARN if figures may suffer, FAILED if no run is
    possible.
    """

    part: str
    level: Level
    detail: str
    remedy: str = ''
