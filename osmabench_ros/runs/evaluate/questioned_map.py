"""The map of a run in the form in which suites and `osmabench vqa` question it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.runs.evaluate.open_vocabulary import OpenVocabularyLabeller
from osmabench_ros.runs.matrix_on_disk import open_run
from osmabench_ros.runs.results.results_folder import MANIFEST
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.exact_questions import ExactQuestionsSuite
from osmabench_ros.suites.named_map import graph_as_stated, named_map
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.run_folder import RunFolder

_MATCHING = 'embedding'
"""The one option of the suite that says how a map is read, not who answers or judges."""


def published_graph(
    semantic_map: SemanticMap, truth: GroundTruth | None, files: Mapping[str, Path]
) -> SemanticMap:
    """Return a map as `SuiteContext.published_graph`; without a ground truth none gets names."""
    if truth is None:
        return graph_as_stated(semantic_map)
    text = OpenVocabularyLabeller(semantic_map, files)
    return graph_as_stated(named_map(semantic_map, truth, text.node_labeller))


def questioned_map(run: RunFolder) -> QuestionedMap:
    """Return a recorded map with the names and rules of the run's suite."""
    files, options = {}, {}
    if (run.directory.resolve().parent / MANIFEST).exists():
        config = open_run(run.directory).config
        files = config.text_features
        options = next(
            (item.options for item in config.suites if item.name == ExactQuestionsSuite.name), {}
        )
    semantic_map = run.semantic_map()
    text = OpenVocabularyLabeller(semantic_map, files)
    context = SuiteContext(
        run.scene, semantic_map, run.ground_truth(), node_labeller=text.node_labeller
    )
    chosen = {key: value for key, value in options.items() if key == _MATCHING}
    return ExactQuestionsSuite(options=chosen).questioned(context)
