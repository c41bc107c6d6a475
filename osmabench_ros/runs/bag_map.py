"""The map of a bag with what the rest of the bag, its reference and the user say of it."""

from __future__ import annotations

from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.maps.topics.recorded_map import RecordedMap, read_recorded_map
from osmabench_ros.runs.bag_content import BagContent
from osmabench_ros.runs.bag_settings import BagSource
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.map_evaluation import UNKNOWN
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bag import Bag
from osmabench_ros.sequences.ground_truth import GroundTruth


def map_of_bag(
    source: BagSource, bag: Bag, content: BagContent, topic: str, truth: GroundTruth | None
) -> tuple[RecordedMap, list[str]]:
    """Return the map of a topic, and remarks on it.

    Raises SequenceError, ContractError or MapError if there is no map, or it is malformed.
    """
    info = content.run_info
    label_set, remarks = _label_set(source, content, truth)
    options = TopicOptions(
        source.method or (info.mapper if info else '') or topic.strip('/').replace('/', '_'),
        label_set,
        info.scene if info else (truth.scene if truth else ''),
        info.condition if info else '',
    )
    until_ns = None if source.at_s is None else content.start_ns + round(source.at_s * 1e9)
    recorded = read_recorded_map(bag, topic, options, until_ns=until_ns)
    return recorded, [*remarks, *recorded.remarks, *_lacking(recorded.semantic_map)]


def _label_set(
    source: BagSource, content: BagContent, truth: GroundTruth | None
) -> tuple[LabelSet | None, list[str]]:
    """Return what class ids mean, by the user, else the bag, else the reference; and remarks."""
    known = source.label_set if source.label_set is not None else content.label_set
    if known is not None or truth is None or not truth.label_set.classes:
        return known, []
    remark = (
        'the bag does not say what class ids mean; if the map has any, they were read by the '
        f'label set of the reference, "{truth.label_set.name}"'
    )
    return truth.label_set, [remark]


def _lacking(semantic_map: SemanticMap) -> list[str]:
    dense = semantic_map.dense
    if dense is None:
        return ['the map has no points; figures that need them do not apply']
    if dense.labels is None and not semantic_map.graph.nodes:
        return ['the map has neither labels nor nodes: geometry only']
    return []


def identity_of(
    source: BagSource, content: BagContent, made: SemanticMap, truth: GroundTruth | None
) -> tuple[RunIdentity, list[str]]:
    """Return the run that a bag says it is of, else what reference and map say, and remarks."""
    info = content.run_info
    if info is None:
        dataset, scene = (truth.dataset, truth.scene) if truth else ('bag', source.path.stem)
        provenance = made.header.provenance
        method = source.method or provenance.method
        key = SceneKey(dataset, scene, source.seed)
        return RunIdentity(key, provenance.condition or UNKNOWN, method, UNKNOWN), []
    remarks = []
    if truth is not None and (truth.dataset, truth.scene) != (info.dataset, info.scene):
        remarks.append(
            f'the bag is of {info.dataset}, {info.scene}; the reference is of {truth.dataset}, '
            f'{truth.scene}'
        )
    key = SceneKey(info.dataset, info.scene, int(info.seed))
    return RunIdentity(key, info.condition, source.method or info.mapper, info.simulator), remarks
