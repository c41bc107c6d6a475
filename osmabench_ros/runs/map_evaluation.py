"""Scores a map that no run recorded, such as an imported one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from osmabench_ros.base.owned_folder import refuse_foreign
from osmabench_ros.errors import RunError
from osmabench_ros.language.embedding import PrecomputedEmbedder
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import read_map
from osmabench_ros.runs.config import Requirement, SuiteConfig
from osmabench_ros.runs.evaluation import REPORT, EvaluationInputs, evaluate_loaded, made_suites
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.map_extent import warn_of_misplaced_map
from osmabench_ros.runs.progress import Progress
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.sequences.ground_truth import GroundTruth, read_ground_truth

UNKNOWN = 'unknown'
"""Condition or simulator of a map that no run recorded."""


@dataclass(frozen=True)
class MapOnDisk:
    """A map that no run recorded, e.g. an imported one, and what it is compared with.

    Without `questions_file` suites that ask make their own; `text_features` are as `TextMatching`
    takes them, `seed` is that of resampling and questions. `condition`, `mapper` and `simulator`
    go before the names in the map; a map that was cut off may pass if `allow_partial`.
    """

    map_directory: Path
    ground_truth_directory: Path
    questions_file: Path | None = None
    text_features: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    device: str = 'auto'
    seed: int = 0
    condition: str = ''
    mapper: str = ''
    simulator: str = ''
    allow_partial: bool = True


def evaluate_map(
    source: MapOnDisk,
    suites: Sequence[SuiteConfig],
    output_directory: Path,
    requirements: Sequence[Requirement] = (),
    *,
    replace: bool = False,
    progress: Progress | None = None,
) -> RunReport:
    """Evaluate a map that no run recorded; the run is named after what the files say.

    A map that lies beside the scene, as wrong axes or units leave it, is scored with a warning.
    Requirements of other mappers and conditions are left out. Raises RunError if a report is there
    and `replace` is not set, or the file of questions is not there; nothing is written if map,
    ground truth or an option is at fault.
    """
    refuse_foreign([output_directory], folders=True)
    report = output_directory / REPORT
    if report.exists() and not replace:
        raise RunError(f'{report} exists; use --force to replace it, or choose another --out')
    if source.questions_file is not None and not source.questions_file.exists():
        raise RunError(f'there are no questions at {source.questions_file}')
    made_suites(suites)
    for file in source.text_features.values():
        PrecomputedEmbedder(file)
    report_progress = progress or (lambda _text, _fraction: None)
    report_progress('reading the map', 0.0)
    semantic_map = read_map(source.map_directory)
    report_progress('reading the ground truth', 0.0)
    truth = read_ground_truth(source.ground_truth_directory)
    warn_of_misplaced_map(semantic_map, truth)
    inputs = EvaluationInputs(
        _identity_of(semantic_map, truth, source),
        source.map_directory,
        source.ground_truth_directory,
        output_directory,
        source.questions_file,
        source.device,
        source.text_features,
        source.allow_partial,
    )
    return evaluate_loaded(inputs, semantic_map, truth, suites, requirements, progress)


def _identity_of(semantic_map: SemanticMap, truth: GroundTruth, source: MapOnDisk) -> RunIdentity:
    """Return scene, condition and method as the source, or else map and ground truth name them."""
    provenance = semantic_map.header.provenance
    return RunIdentity(
        SceneKey(truth.dataset, truth.scene, source.seed),
        source.condition or provenance.condition or UNKNOWN,
        source.mapper or provenance.method or UNKNOWN,
        source.simulator or UNKNOWN,
    )
