"""Models of report.json, of a run and of a matrix."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import permutations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import RequirementError, RunError
from osmabench_ros.geometry.axes import World
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.maps.semantic_map import MapHeader, SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs.config import Requirement, Source
from osmabench_ros.runs.identity import RunIdentity
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet, normalised_name
from osmabench_ros.sequences.ground_truth import GroundTruth

RUN_SCHEMA = 'osmabench.run_report/1'
MATRIX_SCHEMA = 'osmabench.report/1'


class Status(str, Enum):
    """How a run ended."""

    COMPLETE = 'complete'
    INCOMPLETE = 'incomplete'
    """A server failed: the metrics of some suites are missing, and the same command goes on."""
    FAILED = 'failed'


def join_run(identity: RunIdentity, records: Iterable[MetricRecord]) -> tuple[MetricRecord, ...]:
    """Return metrics with the keys of their run."""
    keys = {
        **vars(identity.scene_key),
        'run_id': identity.run_id,
        'condition': identity.condition,
        'mapper': identity.mapper,
        'simulator': identity.simulator,
        'method_seed': identity.method_seed,
        'speed_factor': identity.speed_factor,
    }
    return tuple(replace(record, **keys) for record in records)


class RunReport(Strict):
    """The result of one run."""

    schema_name: str = RUN_SCHEMA
    run_id: str
    status: Status
    error: str = ''
    metrics: tuple[MetricRecord, ...] = ()
    failed_requirements: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    hashes: dict[str, str] = Field(default_factory=dict)
    encoders: dict[str, str] = Field(default_factory=dict)
    map_complete: bool = True
    remarks: tuple[str, ...] = ()
    """Notes for the reader, such as why the map is partial."""

    def check_requirements(self) -> None:
        """Raise RequirementError if a requirement does not hold."""
        _raise_for(self.failed_requirements)


REFERENCE_FREE = (
    'reference-free: nothing here says whether the map is right; give --scene, --run, '
    '--ground-truth or --reference to score it'
)


class BagReport(RunReport):
    """The result of the evaluation of a bag; `transform` aligns the suites ``@aligned``.

    It takes map coordinates to the reference: x y z, quaternion x y z w, scale.
    """

    schema_name: str = 'osmabench.bag_report/1'
    bag: str
    map_topic: str
    map_type: str
    frame_id: str
    stamp_ns: int
    reference: str = ''
    transform: tuple[float, ...] = ()


TRUE_SURFACE = 'true surface'
# Hashes that may differ between compared runs.
#
# Of questions there is one for each suite. Of the ground truth only the surface must be the same:
# the fused cloud and the colours are rendered, and renderers of two machines differ in the last
# bit.
_MAY_DIFFER = frozenset({'map', 'questions', 'ground_truth'})


def check_alike(reports: Iterable[RunReport]) -> None:
    """Raise RunError if runs in one scene and path differ by hash in their inputs, and name these.

    They are the ground truth, and the questions, gate and settings of suites that both have.
    """
    seen: dict[tuple[object, ...], RunReport] = {}
    for report in reports:
        for item in report.metrics[:1]:
            place = item.dataset, item.scene, item.seed, item.path_seed, item.simulator
            for name in sorted(report.hashes.keys() - _MAY_DIFFER):
                other = seen.setdefault((*place, name), report)
                before = other.hashes[name]
                after = report.hashes[name]
                if before != after:
                    raise RunError(
                        f'{other.run_id} and {report.run_id} cannot be compared: they differ in '
                        f'{name} ({before[:8]} and {after[:8]}). Score both by the same'
                    )


# Metrics that are needed by category too: maps are compared over what all of them can serve.
ACCURACIES = ('accuracy', 'accuracy_served')


def without_classes(report: RunReport, kept: Collection[tuple[str, str, str]] = ()) -> RunReport:
    """Return a report without single classes, which are nineteen parts in twenty of it.

    `kept` ones stay, by suite, metric and class.
    """
    metrics = (
        item
        for item in report.metrics
        if not item.class_name
        or item.metric in ACCURACIES
        or (item.suite, item.metric, item.class_name) in kept
    )
    return report.model_copy(update={'metrics': tuple(metrics)})


class MatrixReport(Strict):
    """The result of a matrix."""

    schema_name: str = MATRIX_SCHEMA
    name: str
    passed: bool
    runs: tuple[RunReport, ...]
    failed_requirements: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    hashes: dict[str, str] = Field(default_factory=dict)
    warnings: tuple[str, ...] = ()

    @property
    def metrics(self) -> tuple[MetricRecord, ...]:
        """All records of all runs."""
        return tuple(record for run in self.runs for record in run.metrics)

    def verdict(self, requirements: Sequence[Requirement]) -> str:
        """Return how it ended in a word; there is nothing to pass without requirements."""
        if not self.passed:
            return 'failed'
        return 'passed' if requirements else 'complete'

    def check_verdict(self) -> None:
        """Raise RunError if a run did not complete, RequirementError as `RunReport`."""
        failed = [item for item in self.runs if item.status is not Status.COMPLETE]
        if failed:
            reasons = (f'{item.run_id} {item.status.value}: {item.error}' for item in failed)
            text = f'{len(failed)} of {len(self.runs)} runs did not complete'
            raise RunError(f'{text}. {"; ".join(reasons)}')
        _raise_for(self.failed_requirements)


def _raise_for(failed_requirements: Sequence[str]) -> None:
    if failed_requirements:
        raise RequirementError('requirements do not hold: ' + '; '.join(failed_requirements))


def map_remarks(header: MapHeader) -> tuple[str, ...]:
    """Return remarks on the header of a map, other than its origin."""
    partial = '' if header.complete else 'the map is partial'
    text = ': '.join(filter(None, (partial, header.remark)))
    return (text,) if text else ()


def label_remarks(semantic_map: SemanticMap, classes: LabelSet) -> tuple[str, ...]:
    """Return a remark if no point has a class though a method gave some, or no node its name."""
    dense, remarks = semantic_map.dense, []
    if dense is not None and dense.labels is not None and (dense.labels == UNLABELLED).all():
        remarks.append(
            f'every point has the label {UNLABELLED}: no class. id_of(NAME) of the label set '
            'gives that for a name that the scene lacks'
        )
    names = {label.name for node in semantic_map.graph.nodes for label in node.labels}
    if names and not any(normalised_name(name) in classes.by_name for name in names):
        some = ', '.join(sorted(names)[:5])
        remarks.append(f'no node has the name of a class of the scene; the map has {some}')
    return tuple(remarks)


LEAST_INSIDE, MOST_INSIDE, MARGIN_M = 0.5, 0.9, 0.5


def place_remarks(
    semantic_map: SemanticMap, truth: GroundTruth, remedy: str = ''
) -> tuple[str, ...]:
    """Return a remark if less than half of a map is in the box of the scene, 0.5 m wider.

    A map of less than SMALLEST_SIZE of the scene counts as outside. Without `remedy` the remark
    names the options of an import that help.
    """
    places = _places(semantic_map)
    surface = np.concatenate([truth.surface.points, truth.unseen.points])
    if not len(places) or not len(surface):
        return ()
    scene, own = AxisAlignedBox.around(surface), AxisAlignedBox.around(places)
    inside = float(scene.contains(places, MARGIN_M).mean())
    if own.size.max() < SMALLEST_SIZE * scene.size.max():
        inside = 0.0
    if inside >= LEAST_INSIDE:
        return ()
    sizes = f'the map is {_extent(own)}, the scene {_extent(scene)}'
    problem = f'only {inside:.0%} of the map is within the true scene: {sizes}'
    return (f'{problem}. {remedy or _remedy(places, scene)}',)


# Below this fraction of the size of the scene, the unit of a map must be another.
SMALLEST_SIZE = 0.02

# Fraction of the size of the scene; any map that is small enough would be inside.
LEAST_SIZE = 0.3

# Metres in millimetres, centimetres, inches, and the other way round.
SCALES = (0.001, 0.01, 0.0254, 0.1, 0.3048, 10.0, 100.0, 1000.0)

# Places of a map with which axes and units are tried.
MOST_TRIED = 10_000


def _remedy(places: NDArray[Any], scene: AxisAlignedBox) -> str:
    """Return which axes or unit, or both, would put a map into the scene, if some do."""
    places = places[:: max(1, len(places) // MOST_TRIED)]
    turns = {
        f'--world {new.value} instead of {old.value}': new.rotation @ old.rotation.T
        for old, new in permutations(World, 2)
    }
    # The first of equally good ones is shown, so those with one change come first.
    tried = [(turn, 1.0) for turn in turns]
    tried += [(turn, scale) for turn in ('', *turns) for scale in SCALES]
    least_m = LEAST_SIZE * float(scene.size.max())
    most = 0.0
    best = ('', 1.0)
    for turn, scale in tried:
        points = places @ turns.get(turn, np.eye(3)).T * scale
        inside = float(scene.contains(points, MARGIN_M).mean())
        if inside > most and float(np.ptp(points, axis=0).max()) >= least_m:
            most, best = inside, (turn, scale)
    if most < MOST_INSIDE:
        return (
            'If its axes, unit or frame are wrong, import it again with --world, '
            '--metres-per-unit or --pose'
        )
    turn, scale = best
    options = ' and '.join(filter(None, (turn, f'--metres-per-unit {scale:g}' * (scale != 1))))
    pose = ''
    if turn.endswith((World.HABITAT.value, World.OPTICAL.value)):
        rows = ', '.join(' '.join(f'{x:g}' for x in row + 0.0) for row in turns[turn])
        pose = f' (if it was not imported as that: --pose with the rotation {rows})'
    return f'With {options}{pose}, {most:.0%} of it would be: import it again so'


def _places(semantic_map: SemanticMap) -> NDArray[np.floating]:
    dense = semantic_map.dense
    if dense is not None and len(dense.points):
        return dense.points
    centers = [node.box.center for node in semantic_map.graph.nodes if node.box is not None]
    return np.array(centers, np.float64).reshape(-1, 3)


def _extent(box: AxisAlignedBox) -> str:
    sides = zip('xyz', box.minimum.tolist(), box.maximum.tolist(), strict=True)
    return ', '.join(f'{axis} {low:.1f} to {high:.1f}' for axis, low, high in sides)


def partial_fault(run_id: str) -> str:
    """Return the error text of a run with a partial map."""
    return (
        f'the map of {run_id} is partial; give its mapper more time (settle_timeout_s, settle_s), '
        'or let a partial map pass (allow_partial: true)'
    )


def unmet(
    requirements: tuple[Requirement, ...], records: tuple[MetricRecord, ...]
) -> tuple[str, ...]:
    """Return a sentence for every requirement that does not hold.

    A requirement that no record matches does not hold either, since a threshold that is never
    looked at would always pass.
    """
    sentences = []
    for requirement in requirements:
        found = [record for record in records if concerns(requirement, record)]
        if not found:
            sentences.append(f'{_describe(requirement)}: no such metric was computed')
        sentences += [
            f'{_describe(requirement)}: {record.value} in {record.run_id}'
            for record in found
            if not _holds(requirement, record.value)
        ]
    return tuple(sentences)


def for_run(
    requirements: Sequence[Requirement], identity: RunIdentity, *sources: Source
) -> tuple[Requirement, ...]:
    """Return the requirements that concern one run, and that the sources can check, if any."""
    return tuple(
        item
        for item in requirements
        if item.mapper in (None, identity.mapper)
        and item.condition in (None, identity.condition)
        and (not sources or item.source in sources)
    )


def concerns(requirement: Requirement, record: MetricRecord) -> bool:
    """Return whether a requirement is about a record."""
    return (
        (requirement.suite, requirement.metric, requirement.class_name)
        == (record.suite, record.metric, record.class_name)
        and requirement.mode in (None, record.mode)
        and requirement.mapper in (None, record.mapper)
        and requirement.condition in (None, record.condition)
    )


def _holds(requirement: Requirement, value: float | None) -> bool:
    low, high = requirement.at_least, requirement.at_most
    return value is not None and (low is None or value >= low) and (high is None or value <= high)


def _describe(requirement: Requirement) -> str:
    low, high = requirement.at_least, requirement.at_most
    parts = [requirement.suite, requirement.mode, requirement.metric, requirement.class_name]
    parts += ['' if low is None else f'>= {low:g}', '' if high is None else f'<= {high:g}']
    parts += [requirement.mapper and f'mapper {requirement.mapper}']
    parts += [requirement.condition and f'condition {requirement.condition}']
    return ' '.join(part for part in parts if part)
