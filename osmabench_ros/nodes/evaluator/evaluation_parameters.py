"""Evaluations made from the settings of the evaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.base.progress import Progress
from osmabench_ros.ros.node.settings import EvaluatorSettings
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import EvaluationInputs, evaluate_run, made_suites
from osmabench_ros.runs.evaluate.map_evaluation import evaluate_map, unnamed_run
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.results.report_model import RunReport

_NAMES = ('seed', 'condition', 'mapper', 'simulator')
EVALUATIONS_FOLDER = 'evaluations'
"""Below the output directory; gets a numbered folder for each goal of the action."""


class Evaluations:
    """Suites, ground truth and result folders of the evaluator."""

    def __init__(
        self, settings: EvaluatorSettings, ground_truth: Path, output_directory: Path
    ) -> None:
        self._settings, self._ground_truth = settings, ground_truth
        self.output_directory = output_directory
        self._last_number = 0

    def chosen_suites(self, names: Sequence[str]) -> tuple[SuiteConfig, ...]:
        """Return suites by name, as configured; () for all; ConfigError if there is none."""
        if not names:
            return self._settings.suites
        configured = {suite.name: suite for suite in self._settings.suites}
        chosen = tuple(configured.get(name) or SuiteConfig(name=name) for name in names)
        made_suites(chosen)
        return chosen

    def free_directory(self) -> Path:
        """Return a separate folder for a goal, so that the report of the run stays."""
        folder = self.output_directory / EVALUATIONS_FOLDER
        taken = [int(path.name) for path in folder.glob('*') if path.name.isdigit()]
        self._last_number = max([*taken, self._last_number]) + 1
        return folder / f'{self._last_number:04d}'

    def evaluation(
        self,
        map_directory: Path,
        output_directory: Path,
        identity: RunIdentity | None = None,
        suites: Sequence[SuiteConfig] | None = None,
    ) -> Callable[[Progress], RunReport]:
        """Return the evaluation of a map, to be called in another thread; `suites` go first."""
        settings = self._settings
        chosen = settings.suites if suites is None else suites
        names = {suite.name for suite in chosen}
        required = [
            item for item in settings.requirements if suites is None or item.suite in names
        ]
        # A goal may be about a map that the method had on the way.
        aside = output_directory != self.output_directory
        questions = settings.questions_file
        if identity is None and questions is not None and not questions.exists():
            questions = None
        inputs = EvaluationInputs(
            identity or unnamed_run(*(getattr(settings, name) for name in _NAMES)),
            map_directory,
            self._ground_truth,
            output_directory,
            questions,
            settings.device,
            settings.text_features,
            settings.settling.allow_partial or aside,
        )

        def evaluate(progress: Progress) -> RunReport:
            # The folder of a goal lies below, and what is made there is listed here.
            claim_folder(self.output_directory)
            if identity is None:
                return evaluate_map(inputs, chosen, required, replace=True, progress=progress)
            return evaluate_run(inputs, chosen, required, progress)

        return evaluate
