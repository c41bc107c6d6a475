"""The figures of a recorded map against its reference, before and after alignment."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from osmabench_ros.base.progress import Progress
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.maps.disk.storage import write_map
from osmabench_ros.maps.semantic_map import SemanticMap, transformed_map
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.metrics.trajectory_records import ALIGNED, TrajectoryScore
from osmabench_ros.runs.bag.bag_settings import BagSource
from osmabench_ros.runs.bag.map_alignment import alignment_of_map, placement_of
from osmabench_ros.runs.bag.references import Reference
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.runs.evaluate.evaluation import EvaluationInputs, evaluate_loaded
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.runs.results.report_model import Record, RunReport
from osmabench_ros.sequences.ground_truth import GroundTruth

MAP_FOLDER = 'map'
ALIGNED_FOLDER = 'aligned'


@dataclass(frozen=True, eq=False)
class MapComparison:
    """A run, the ground truth read, the suites in order, and the folder of their results."""

    identity: RunIdentity
    reference: Reference
    truth: GroundTruth
    suites: Sequence[SuiteConfig]
    directory: Path


@dataclass(frozen=True, eq=False)
class BagFigures:
    """Figures of a map, what they depend on, where it was taken to lie, and doubts."""

    records: tuple[Record, ...]
    metrics: tuple[MetricRecord, ...]
    hashes: Mapping[str, str]
    encoders: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    transform: Similarity | None = None
    remarks: tuple[str, ...] = ()


def compared(
    made: SemanticMap,
    comparison: MapComparison,
    source: BagSource,
    content: BagContent,
    trajectory: TrajectoryScore | None,
    progress: Progress,
) -> BagFigures:
    """Return the figures of a map at its recorded pose, and of the aligned map."""
    choice, truth = source.alignment, comparison.truth
    frame_id = comparison.reference.frame_id or made.header.frame_id
    placement = placement_of(
        made.header.frame_id,
        frame_id,
        made.header.stamp_ns,
        content.transforms,
        choice.kind,
        transform_given=choice.transform is not None,
    )
    applied = alignment_of_map(
        made, truth, choice.kind, choice.transform, placement, trajectory, progress
    )
    placed = transformed_map(made, placement.similarity, frame_id)
    plain = _scored(placed, '', comparison, source, progress)
    figures = BagFigures(
        plain.metrics, (), plain.hashes, plain.encoders, remarks=(placement.remark,)
    )
    if applied is None:
        return figures
    aligned = transformed_map(made, applied.similarity, frame_id)
    variant = _scored(aligned, ALIGNED, comparison, source, progress)
    return dataclasses.replace(
        figures,
        records=(*plain.metrics, *variant.metrics),
        metrics=applied.records,
        transform=applied.similarity,
        remarks=(placement.remark, *applied.remarks),
    )


def _scored(
    semantic_map: SemanticMap,
    variant: str,
    comparison: MapComparison,
    source: BagSource,
    progress: Progress,
) -> RunReport:
    """Return the figures of a map; suites of a variant have its name as suffix."""
    folder = comparison.directory / ALIGNED_FOLDER if variant else comparison.directory
    write_map(semantic_map, folder / MAP_FOLDER)
    reference = comparison.reference
    inputs = EvaluationInputs(
        comparison.identity,
        folder / MAP_FOLDER,
        reference.directory,
        folder,
        reference.questions_file,
        source.device,
        source.text_features,
    )
    report = evaluate_loaded(
        inputs, semantic_map, comparison.truth, comparison.suites, (), progress
    )
    records = (
        record.model_copy(update={'suite': record.suite + variant}) for record in report.metrics
    )
    return report.model_copy(update={'metrics': tuple(records)})
