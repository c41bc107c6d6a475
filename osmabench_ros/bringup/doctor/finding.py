"""Findings of `osmabench doctor` about the machine or a running stack."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Severity(str, Enum):
    """Severity of a finding."""

    OK = 'ok'
    ABSENT = 'absent'
    WARN = 'warn'
    FAILED = 'failed'


@dataclass(frozen=True)
class Finding:
    """One finding and its remedy, '' if there is nothing to do.

    ABSENT if an optional part is missing, WARN if figures may suffer, FAILED if no run is
    possible.
    """

    part: str
    level: Severity
    detail: str
    remedy: str = ''
