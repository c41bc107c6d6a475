"""Scene change detection in a run: its map against that of an earlier visit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from osmabench_ros.base.files import write_json
from osmabench_ros.base.strict import FilePath, Strict, validated
from osmabench_ros.maps.disk.storage import read_map
from osmabench_ros.metrics.graph_matching import box_of
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.semantics.scene_graph import NodeKind
from osmabench_ros.sequences.ground_truth import read_ground_truth
from osmabench_ros.suites.named_map import named_map
from osmabench_ros.suites.scene_changes.detection import (
    DetectionOptions,
    detected_changes,
    true_changes,
)
from osmabench_ros.suites.scene_changes.scoring import (
    SUITE,
    change_records,
    quality_of_changes,
    quality_of_map,
    quality_records,
)
from osmabench_ros.suites.suite import SuiteContext

METHOD = '{method}'
CHANGES = 'changes.json'


class SceneChangeOptions(Strict):
    """Options of the suite.

    Parameters
    ----------
    before : Path, optional
        Map of the earlier visit. '{method}' in it stands for the method of the map that is
        scored, so that one line serves all mappers of a matrix. Without it the map is scored as an
        object map alone.
    before_ground_truth : Path, optional
        Ground truth of the earlier visit.
    detection : DetectionOptions
        When things of two maps are the same.
    """

    before: FilePath | None = None
    before_ground_truth: FilePath | None = None
    detection: DetectionOptions = Field(default_factory=DetectionOptions)

    @model_validator(mode='after')
    def _both_or_neither(self) -> SceneChangeOptions:
        if (self.before is None) != (self.before_ground_truth is None):
            raise ValueError('an earlier visit needs both before and before_ground_truth')
        return self


class SceneChangeSuite:
    """Changes since an earlier visit: precision and recall by type, BenchBot's quality beside.

    `omq` and its parts (compat) are of the list of changes, `omq_map` of the map itself against
    all objects of the scene, as BenchBot scores semantic SLAM.
    """

    name = SUITE

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = validated(SceneChangeOptions, options, f'suite "{self.name}"')

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score one map; the list of changes is kept as changes.json."""
        truth, named = context.ground_truth, context.named_map
        nodes = [node for node in named.graph.of_kind(NodeKind.OBJECT) if box_of(node) is not None]
        if not nodes:
            return [MetricRecord.not_applicable(SUITE, 'compat', 'omq_map')]
        found = list(quality_records(quality_of_map(nodes, truth.graph, truth.label_set),
                                     'omq_map'))  # fmt: skip
        if self._options.before is not None:
            found += self._changes(context)
        return found

    def _changes(self, context: SuiteContext) -> Iterator[MetricRecord]:
        options, truth = self._options, context.ground_truth
        assert options.before is not None
        assert options.before_ground_truth is not None
        method = context.semantic_map.header.provenance.method
        earlier = read_ground_truth(options.before_ground_truth)
        before = named_map(
            read_map(Path(str(options.before).replace(METHOD, method))),
            earlier,
            context.node_labeller,
        )
        detected = detected_changes(before, context.named_map, options.detection)
        true = true_changes(earlier, truth, options.detection)
        if context.output_directory is not None:
            changes = [item.to_json() for item in detected.changes]
            write_json(context.output_directory / CHANGES, changes)
        yield from change_records(detected, true)
        yield from quality_records(quality_of_changes(detected, true, truth.label_set), 'omq')
