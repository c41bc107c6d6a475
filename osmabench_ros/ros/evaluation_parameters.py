"""Parameters of the evaluator, and the evaluations that follow from them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from osmabench_ros.base.limits.documents import parse_yaml
from osmabench_ros.base.owned_folder import claim_folder
from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.parameters import ParameterSpec
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluation import EvaluationInputs, evaluate_run, made_suites
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.map_evaluation import MapOnDisk, evaluate_map
from osmabench_ros.runs.progress import Progress
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.simulation.section import validated

EVALUATION_PARAMETERS = (
    ParameterSpec('ground_truth_directory', '', 'Ground truth of the scene, as prepared.'),
    ParameterSpec('questions_file', '', 'Questions about the scene, JSON lines.'),
    ParameterSpec('output_directory', '', 'Folder that gets report.json and the answers.'),
    ParameterSpec('suites', '[]', 'Suites to run, a YAML list of {name, options}.'),
    ParameterSpec('requirements', '[]', 'Thresholds, a YAML list as in a configuration.'),
    ParameterSpec('text_features', '{}', 'YAML mapping: encoder of a map to .npy of its text.'),
    ParameterSpec('allow_partial', False, 'Whether a map that was cut off may pass.'),
    ParameterSpec('device', 'auto', 'Where to compute.', choices=('auto', 'cpu', 'cuda')),
    ParameterSpec(
        'use_run_info',
        True,
        'Take the identity of the run from run_info, and wait for it; if false, from the '
        'parameters below, the map and the ground truth.',
    ),
    ParameterSpec('condition', '', 'Without run_info: condition; empty: as the map says.'),
    ParameterSpec('mapper', '', 'Without run_info: mapping method; empty: as the map says.'),
    ParameterSpec('simulator', '', 'Without run_info: where the frames come from.'),
    ParameterSpec('seed', 0, 'Without run_info: seed of questions.', 0, 2**31 - 1),
)

EVALUATIONS_FOLDER = 'evaluations'
"""Below the output directory; gets a numbered folder for each goal of the action."""

_Data = TypeVar('_Data', list[Any], dict[str, Any])


class EvaluationSettings:
    """What to evaluate maps with, from the values of `EVALUATION_PARAMETERS`.

    Raises ConfigError, which names the parameter, if a folder is not named or a value is
    malformed.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values
        for name in ('ground_truth_directory', 'output_directory'):
            if not values[name]:
                raise ConfigError(f'node evaluator: parameter "{name}" is empty; name a folder')
        self.output_directory = Path(values['output_directory'])
        self.suites = tuple(self._models('suites', SuiteConfig))
        self.requirements = tuple(self._models('requirements', Requirement))
        files = self._yaml('text_features', dict)
        self._text_features = {str(name): Path(file) for name, file in files.items()}
        self._questions = Path(values['questions_file']) if values['questions_file'] else None
        self._last_number = 0

    def _models(self, name: str, model: type[Any]) -> list[Any]:
        source = f'node evaluator: parameter "{name}"'
        return [validated(model, item, source) for item in self._yaml(name, list)]

    def _yaml(self, name: str, kind: type[_Data]) -> _Data:
        data = parse_yaml(self._values[name], f'node evaluator: parameter "{name}"', ConfigError)
        if not isinstance(data, kind):
            what = 'list' if kind is list else 'mapping'
            raise ConfigError(f'node evaluator: parameter "{name}" must be a YAML {what}')
        return data

    def chosen_suites(self, names: Sequence[str]) -> tuple[SuiteConfig, ...]:
        """Return suites by name, with the configured options where there are any; () for all.

        Raises ConfigError if there is no such suite, or one is named twice.
        """
        if not names:
            return self.suites
        configured = {suite.name: suite for suite in self.suites}
        chosen = tuple(configured.get(name) or SuiteConfig(name=name) for name in names)
        made_suites(chosen)
        return chosen

    def free_directory(self) -> Path:
        """Return a folder of its own for a goal, so that the report of the run stays."""
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
        """Return the evaluation of a map, to be called in another thread.

        Without `identity`, that of the run follows from map, ground truth and parameters. `suites`
        replace the configured ones; then requirements of other suites do not count.
        """
        chosen = self.suites if suites is None else suites
        names = {suite.name for suite in chosen}
        required = [item for item in self.requirements if suites is None or item.suite in names]
        # A goal may be about a map that the method had on the way.
        allow_partial = self._values['allow_partial'] or output_directory != self.output_directory
        source = self._map_on_disk(map_directory, allow_partial=allow_partial)

        def evaluate(progress: Progress) -> RunReport:
            # The folder of a goal lies below, and what is made there is listed here.
            claim_folder(self.output_directory)
            if identity is None:
                return evaluate_map(
                    source, chosen, output_directory, required, replace=True, progress=progress
                )
            inputs = EvaluationInputs(
                identity,
                map_directory,
                Path(self._values['ground_truth_directory']),
                output_directory,
                self._questions,
                self._values['device'],
                self._text_features,
                allow_partial,
            )
            return evaluate_run(inputs, chosen, required, progress)

        return evaluate

    def _map_on_disk(self, map_directory: Path, *, allow_partial: bool) -> MapOnDisk:
        questions = self._questions
        return MapOnDisk(
            map_directory,
            Path(self._values['ground_truth_directory']),
            questions if questions is not None and questions.exists() else None,
            self._text_features,
            self._values['device'],
            self._values['seed'],
            self._values['condition'],
            self._values['mapper'],
            self._values['simulator'],
            allow_partial,
        )
