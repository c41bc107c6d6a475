"""Scores a map that was not recorded in a run, and lets `osmabench vqa` question one that was."""

from collections.abc import Sequence
from dataclasses import replace as replace_fields

from osmabench_ros.base.files import Existing, check_folder
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.errors import RunError
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluate import evaluation
from osmabench_ros.runs.evaluate.open_vocabulary import OpenVocabularyLabeller
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.matrix_on_disk import open_run
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.runs.run_manifest import MANIFEST
from osmabench_ros.suites.question_suite import ExactQuestionsSuite
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.stages import RunFolder

UNKNOWN = 'unknown'
"""Condition or simulator of a map that no run recorded."""


def evaluate_map(
    inputs: evaluation.EvaluationInputs,
    suites: Sequence[SuiteConfig],
    requirements: Sequence[Requirement] = (),
    *,
    replace: bool = False,
    progress: Progress = silent,
) -> RunReport:
    """Evaluate a map that was not recorded in a run; the files give what `inputs` leave out.

    A map outside the scene is scored with a remark; requirements of other mappers and
    conditions are left out. Raises RunError if a report is there and `replace` is not set.
    """
    check_folder(inputs.output_directory, Existing.MERGE)
    report = inputs.output_directory / evaluation.REPORT
    if report.exists() and not replace:
        raise RunError(f'{report} exists; use --force to replace it, or choose another --out')
    evaluation.check_sources(suites, inputs.text_features, inputs.questions_file)
    semantic_map, truth = evaluation.read_inputs(inputs, suites, progress)
    known, provenance = inputs.identity, semantic_map.header.provenance
    identity = RunIdentity(
        SceneKey(truth.dataset, truth.scene, known.scene_key.seed),
        known.condition or provenance.condition or UNKNOWN,
        known.mapper or provenance.method or UNKNOWN,
        known.simulator or UNKNOWN,
    )
    named = replace_fields(inputs, identity=identity)
    return evaluation.evaluate_loaded(named, semantic_map, truth, suites, requirements, progress)


def identify_unnamed_run(
    seed: int = 0, condition: str = '', mapper: str = '', simulator: str = ''
) -> RunIdentity:
    """Return the identity of a map without a run; '' is filled from map and ground truth."""
    return RunIdentity(SceneKey('', '', seed), condition, mapper, simulator)


_MATCHING = 'embedding'
"""The one option of the suite that says how a map is read, not who answers or judges."""


def questioned_map(run: RunFolder) -> QuestionedMap:
    """Return a recorded map with the names and rules of the run's suite."""
    files, options = {}, {}
    if (run.directory.resolve().parent / MANIFEST).exists():
        config = open_run(run.directory).config
        files = config.text_features
        options = next(
            (item.options for item in config.suites if item.name == ExactQuestionsSuite.name), {}
        )
    scene, semantic_map = run.scene, run.semantic_map()
    text = OpenVocabularyLabeller(semantic_map, files)
    context = SuiteContext(
        scene, semantic_map, run.ground_truth(), node_labeller=text.node_labeller
    )
    chosen = {key: value for key, value in options.items() if key == _MATCHING}
    return ExactQuestionsSuite(options=chosen).prepare_map(context)
