"""The runs of a matrix as they lie in its folder: which are planned, and how far each came."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from osmabench_ros.base.documents import document_limit
from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.base.strict import Strict, read_model, validated
from osmabench_ros.errors import RunError, errors_as
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.evaluate.evaluation import INCOMPLETE
from osmabench_ros.runs.finished_run import ACCURACIES, FIGURES, has_figures
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.results.report_model import RunReport
from osmabench_ros.runs.results.results_folder import MANIFEST, is_held
from osmabench_ros.runs.run_on_disk import PlansOfRuns, is_run_name

FAILURE = 'failure.json'
"""Of a run that failed: its report, with the error."""
RUNS = 'runs.json'
SCHEMA = 'osmabench.runs/1'


class RunState(str, Enum):
    """How far a run came."""

    DONE = 'done'
    FAILED = 'failed'
    INCOMPLETE = 'incomplete'
    """A server failed, or the command was cut off: the same command goes on."""
    RUNNING = 'running'
    NOT_BEGUN = 'not begun'


CUT_OFF = 'cut off; the same command goes on'


class PlannedRuns(Strict):
    """Model of runs.json: the runs that a command set out to do in a folder, in order."""

    schema_name: str = SCHEMA
    runs: tuple[str, ...]


def note_runs(root: Path, plans: Sequence[RunPlan]) -> None:
    """Write which runs belong to the folder of a matrix, before the first of them begins."""
    planned = PlannedRuns(runs=tuple(plan.identity.run_id for plan in plans))
    write_json(root / RUNS, planned.model_dump(mode='json'))


@dataclass(frozen=True)
class RunOnDisk:
    """A run, how far it came, and the first line of why it came no further."""

    run_id: str
    state: RunState
    reason: str = ''


@dataclass(frozen=True)
class MatrixOnDisk:
    """The folder of a matrix."""

    root: Path

    @cached_property
    def _manifest(self) -> Mapping[str, Any]:
        found = read_json(self.root / MANIFEST)
        if not isinstance(found, dict) or 'config' not in found:
            raise RunError(f'{self.root / MANIFEST} has no configuration; name a folder of runs')
        return found

    @cached_property
    def config(self) -> MatrixConfig:
        """The configuration of its runs."""
        return parse_config(self._manifest['config'], str(self.root / MANIFEST))

    @property
    def config_digest(self) -> str:
        """The digest of the configuration as it was run."""
        return str(self._manifest.get('config_sha256', ''))

    @property
    def inputs(self) -> Mapping[str, str]:
        """Digests of what the results depend on besides the configuration."""
        return self._manifest.get('inputs') or {}

    @cached_property
    def run_ids(self) -> tuple[str, ...]:
        """The planned runs; of an earlier version, which did not note them, those that began."""
        file = self.root / RUNS
        if file.exists():
            return read_model(PlannedRuns, file).runs
        names = sorted(path.name for path in self.root.iterdir() if path.is_dir())
        return tuple(name for name in names if is_run_name(name))

    def runs(self) -> Iterator[RunOnDisk]:
        """Yield every run with its state, in order."""
        held = is_held(self.root)
        return (self._looked_at(run_id, held=held) for run_id in self.run_ids)

    def _looked_at(self, run_id: str, *, held: bool) -> RunOnDisk:
        folder = self.root / run_id
        if not folder.exists():
            return RunOnDisk(run_id, RunState.NOT_BEGUN)
        if (folder / FAILURE).exists():
            return RunOnDisk(run_id, RunState.FAILED, self._report(run_id, FAILURE).error)
        if (folder / 'report.json').exists():
            return RunOnDisk(run_id, RunState.DONE)
        if (folder / INCOMPLETE).exists():
            return RunOnDisk(run_id, RunState.INCOMPLETE, self._report(run_id, INCOMPLETE).error)
        if held:
            return RunOnDisk(run_id, RunState.RUNNING)
        return RunOnDisk(run_id, RunState.INCOMPLETE, CUT_OFF)

    def plan(self, run_id: str) -> RunPlan:
        """Return the plan of a run."""
        return self._plans.of(self.root / run_id)

    @cached_property
    def _plans(self) -> PlansOfRuns:
        return PlansOfRuns(self.config)

    @cached_property
    def versions(self) -> Mapping[str, frozenset[str]]:
        """The versions of each package that the done runs were scored with."""
        found: dict[str, set[str]] = {}
        for run in self.runs():
            if run.state is RunState.DONE:
                manifest = read_json(self.root / run.run_id / MANIFEST)
                for name, version in manifest.get('versions', {}).items():
                    found.setdefault(name, set()).add(str(version))
        return {name: frozenset(versions) for name, versions in found.items()}

    def has_report(self, run: RunOnDisk) -> bool:
        """Return whether a run has a report, be it of a failure."""
        return bool(self._file(run))

    def report(
        self, run: RunOnDisk, classes: Collection[tuple[str, str, str]] | None = None
    ) -> RunReport | None:
        """Return the report of a run, None if it has none yet.

        Of the figures of single classes only `classes` are in it, by suite, metric and class, and
        the accuracies by category; without, all are. Reading the others of ten thousand runs would
        take minutes.
        """
        file = self._file(run)
        if not file:
            return None
        if classes is None:
            return self._report(run.run_id, file)
        folder, of_classes = self.root / run.run_id, any(name for *_, name in classes)
        if run.state is RunState.DONE and not of_classes and has_figures(folder):
            file = FIGURES
        return _report_without_classes(folder / file, classes)

    @staticmethod
    def _file(run: RunOnDisk) -> str:
        if run.state is RunState.INCOMPLETE:
            return '' if run.reason == CUT_OFF else INCOMPLETE
        return {RunState.DONE: 'report.json', RunState.FAILED: FAILURE}.get(run.state, '')

    def _report(self, run_id: str, file: str) -> RunReport:
        return read_model(RunReport, self.root / run_id / file)


def _report_without_classes(file: Path, classes: Collection[tuple[str, str, str]]) -> RunReport:
    """Return a report of ours with some of the figures of single classes."""
    text = read_bytes(file, RunError, document_limit())
    with errors_as(RunError, f'{file} is malformed', ValueError, KeyError, TypeError, shown=repr):
        # Values hardly repeat, and looking for those that do takes a third of the time.
        data = from_json(text, allow_inf_nan=False, cache_strings='keys')
        metrics = [
            item
            for item in data['metrics']
            if not item['class_name']
            or item['metric'] in ACCURACIES
            or (item['suite'], item['metric'], item['class_name']) in classes
        ]
    return validated(RunReport, {**data, 'metrics': metrics}, f'{file} is malformed', RunError)


def matrices_at(path: Path) -> list[MatrixOnDisk]:
    """Return the matrix in a folder, or those one level below; RunError if there is none."""
    if is_run_name(path.absolute().name):
        raise RunError(f'{path} is the folder of one run; name the folder above it')
    if (path / MANIFEST).is_file():
        return [MatrixOnDisk(path)]
    with errors_as(RunError, f'cannot read {path}', OSError):
        below = sorted(item for item in path.iterdir() if (item / MANIFEST).is_file())
    if not below:
        raise RunError(f'{path} holds no runs; name the --out of osmabench run, or a folder in it')
    return [MatrixOnDisk(item) for item in below]
