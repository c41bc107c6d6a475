"""What the runner and its workers say to each other."""

from __future__ import annotations

from dataclasses import dataclass

from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.results.report_model import RunReport


@dataclass(frozen=True)
class WorkOrder:
    """A run, or with `prepares` only what all runs of its scene share.

    Without `gpus` a run sees those that the shell shows it.
    """

    plan: RunPlan
    prepares: bool = False
    runs_at_once: int = 1
    gpus: tuple[str, ...] = ()


@dataclass(frozen=True)
class WorkNews:
    """How far a worker is."""

    text: str
    fraction: float


@dataclass(frozen=True)
class WorkWarning:
    """A warning to the user."""

    text: str


@dataclass(frozen=True)
class WorkDone:
    """The report of a run, or why a preparation failed; empty if it went well."""

    report: RunReport | None = None
    error: str = ''
