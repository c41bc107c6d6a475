"""Scores a recorded map with the suites of a run and writes the run's report."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.maps.storage import read_map
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.files import sha256_of, write_json
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.report_model import Record, RunReport, Status, for_run, unmet
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.suites.registry import make_suite
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.version import version
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Question

ANSWERS_FOLDER = 'vqa'
REPORT = 'report.json'


@dataclass(frozen=True)
class EvaluationInputs:
    """What is evaluated, and where the results go.

    Parameters
    ----------
    identity : RunIdentity
        Run the map belongs to.
    map_directory, ground_truth_directory : Path
        As written by the recorder and by the preparation.
    questions_file : Path, optional
        Question set of the scene.
    output_directory : Path
        Gets report.json and the folder of answers.
    device : str
        'auto', 'cpu' or 'cuda'.
    """

    identity: RunIdentity
    map_directory: Path
    ground_truth_directory: Path
    output_directory: Path
    questions_file: Path | None = None
    device: str = 'auto'


def evaluate_run(
    inputs: EvaluationInputs,
    suites: Sequence[SuiteConfig],
    requirements: Sequence[Requirement] = (),
    progress: Callable[[str, float], None] | None = None,
) -> RunReport:
    """Evaluate one map and write report.json.

    Parameters
    ----------
    inputs : EvaluationInputs
        What to evaluate.
    suites : sequence of SuiteConfig
        In order.
    requirements : sequence of Requirement
        Of the whole matrix; those of other runs are left out.
    progress : callable, optional
        Gets what is going on and the fraction done.

    Returns
    -------
    RunReport
        As written.

    Raises
    ------
    OsmabenchError
        If the map, the ground truth or an option is at fault; nothing is written then.
    """
    made = [make_suite(item.name, item.options) for item in suites]
    context = _context(inputs, progress)
    metrics = [record for suite in made for record in suite.evaluate(context)]
    records = tuple(Record.of(inputs.identity, record) for record in metrics)
    report = RunReport(
        run_id=inputs.identity.run_id,
        status=Status.COMPLETE,
        metrics=records,
        failed_requirements=unmet(for_run(tuple(requirements), inputs.identity), records),
        versions=versions(),
        hashes=_hashes(inputs),
    )
    write_json(inputs.output_directory / REPORT, report.model_dump(mode='json'))
    return report


def _context(
    inputs: EvaluationInputs, progress: Callable[[str, float], None] | None
) -> SuiteContext:
    answers = inputs.output_directory / ANSWERS_FOLDER
    answers.mkdir(parents=True, exist_ok=True)
    questions = inputs.questions_file
    return SuiteContext(
        scene_name=inputs.identity.scene_key.scene,
        semantic_map=read_map(inputs.map_directory),
        ground_truth=read_ground_truth(inputs.ground_truth_directory),
        device=inputs.device,
        seed=inputs.identity.scene_key.seed,
        output_directory=answers,
        questions=read_records(questions, Question) if questions and questions.exists() else (),
        progress=progress,
    )


def versions() -> dict[str, str]:
    """Return the versions of what the numbers depend on."""
    found = {'osmabench_ros': version()}
    for name in ('numpy', 'scipy', 'torch'):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = 'absent'
    return found


def _hashes(inputs: EvaluationInputs) -> dict[str, str]:
    hashes = {
        'map': sha256_of(inputs.map_directory),
        'ground_truth': sha256_of(inputs.ground_truth_directory),
    }
    if inputs.questions_file and inputs.questions_file.exists():
        hashes['questions'] = sha256_of(inputs.questions_file)
    return hashes
