"""The interface of suites, their context, and data made once for all runs in a scene."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from osmabench_ros.base.configuration import SUITES, load_extension
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import MetricError
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory
from osmabench_ros.maps.semantic_map import IN_SCENE_GRAPH, FeatureSpace, SemanticMap
from osmabench_ros.metrics.geometry import find_surfel_distances
from osmabench_ros.metrics.nearest_neighbours import NeighbourIndex, Neighbours
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.semantics.scene_graph import THINGS, NodeKind, ScoredLabel
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.simulator import Simulator
from osmabench_ros.vqa.graph_index import keep_nodes
from osmabench_ros.vqa.questions import Question

NodeLabeller = Callable[[SemanticMap, Sequence[str]], Mapping[int, Sequence[tuple[int, float]]]]
"""Ranks names for the nodes of a map: by node id, indices into the names with their scores, best
first. Nodes of which nothing is known are left out."""


@dataclass(frozen=True, eq=False)
class PredictedCloud:
    """Points (N, 3) in metres that the method looked at, and their rows."""

    points: NDArray[np.float32]
    rows: NDArray[np.int64]


# Those of the last scene are kept: maps of a scene are shown and scored one after another.
@lru_cache(maxsize=1)
def _all_surface_points(truth: GroundTruth) -> NDArray[np.float32]:
    return np.concatenate([truth.surface.points, truth.unseen.points])


@lru_cache(maxsize=1)
def _surface_index(truth: GroundTruth, device: str) -> NeighbourIndex:
    return NeighbourIndex(_all_surface_points(truth), device, 'ground-truth surface')


class Correspondences:
    """Lazily computed matches; indices into the map are of its valid points.

    The device is 'auto', 'cpu' or 'cuda'; progress starts again for each search.
    """

    def __init__(
        self,
        semantic_map: SemanticMap,
        ground_truth: GroundTruth,
        device: str,
        progress: Progress = silent,
    ) -> None:
        self._map = semantic_map
        self._truth = ground_truth
        self._device = device
        self._progress = progress

    @cached_property
    def predicted(self) -> PredictedCloud | None:
        """Valid points of the map; None if it has no dense part."""
        dense = self._map.dense
        if dense is None:
            return None
        n = len(dense.points)
        for name in ('labels', 'instances', 'valid'):
            array = getattr(dense, name)
            if array is not None and array.shape != (n,):
                raise MetricError(
                    f'map: {name} have shape {array.shape}, but there are {n} points'
                )
        rows = np.arange(n) if dense.valid is None else np.flatnonzero(dense.valid)
        return PredictedCloud(dense.points if len(rows) == n else dense.points[rows], rows)

    @cached_property
    def _map_index(self) -> NeighbourIndex:
        assert self.predicted is not None
        return NeighbourIndex(self.predicted.points, self._device, 'map')

    def _query(self, index: NeighbourIndex, points: NDArray[np.float32], what: str) -> Neighbours:
        return index.query(points, what=what, progress=self._progress)

    @cached_property
    def surface_to_map(self) -> Neighbours:
        """Nearest map point of every visible surface point."""
        return self._query(self._map_index, self._truth.surface.points, 'ground-truth surface')

    @cached_property
    def fused_to_map(self) -> Neighbours:
        """Nearest map point of every point of the depth-fused cloud."""
        assert self._truth.fused is not None
        return self._query(self._map_index, self._truth.fused.points, 'fused ground-truth cloud')

    @property
    def truth_points(self) -> NDArray[np.float32]:
        """All surface points, the visible ones first."""
        return _all_surface_points(self._truth)

    @cached_property
    def map_to_truth(self) -> Neighbours:
        """Nearest surface point of every map point, whether the trajectory saw it or not.

        Distances are to the discs around the surface points, where the ground truth
        knows normals, so that the spacing of the samples does not count as an error.
        """
        assert self.predicted is not None
        points = self.predicted.points
        found = self._query(_surface_index(self._truth, self._device), points, 'map')
        surface, unseen = self._truth.surface, self._truth.unseen
        if surface.normals is None or unseen.normals is None or not len(self.truth_points):
            return found
        normals = np.concatenate([surface.normals, unseen.normals])[found.indices]
        radius = 1 / np.sqrt(self._truth.points_per_m2)
        centers = self.truth_points[found.indices]
        return Neighbours(found.indices, find_surfel_distances(points, centers, normals, radius))


class MatchingOptions(Strict):
    """Options of a suite that matches points of map and truth within `max_distance_m` metres."""

    max_distance_m: float = Field(0.1, gt=0)


Labeller = Callable[[SemanticMap, Sequence[str]], NDArray[np.int64]]
"""Names the points of an open-vocabulary map: index into the names per point, -1 for none."""

Similarity = Callable[[str, str], float]
"""How alike two labels are, in [-1, 1]."""

TextEncoder = Callable[[FeatureSpace, Sequence[str]], NDArray[np.float32]]
"""Returns text features (N, D) from the encoder that a feature space of a map comes from."""


@dataclass(frozen=True, eq=False)
class SuiteContext:
    """One map, its ground truth, and how to compute.

    Parameters
    ----------
    scene_name : str
        Name of the scene in tables.
    semantic_map : SemanticMap
        The map to score.
    ground_truth : GroundTruth
        The ground truth to compare it with.
    device : str
        'auto', 'cpu' or 'cuda'.
    seed : int
        Seed of everything random.
    output_directory : Path, optional
        Existing folder for files in addition to metrics, such as confusion matrices.
    questions : sequence of Question
        The question set of the scene, shared by all maps of it; empty if none was prepared.
    labeller : Labeller, optional
        Labels the points of maps that carry features and no labels.
    node_labeller : NodeLabeller, optional
        Names the nodes of maps that carry features or captions and no names.
    similarity : Similarity, optional
        Similarity of two labels in [-1, 1], such as the cosine of their text features.
    text_encoder : TextEncoder, optional
        Encodes prompts for the feature spaces of the map.
    progress : callable, optional
        Called with a text and the fraction done.
    true_trajectory : StampedTrajectory, optional
        True optical poses in the world, for maps that say their own.
    frames_directory : Path, optional
        Folder of the images that the run kept, named by number.
    question_images : Path, optional
        Folder that the images of the questions are relative to.
    remarks : list of str
        Reasons to doubt metrics, which suites add.
    """

    scene_name: str
    semantic_map: SemanticMap
    ground_truth: GroundTruth
    device: str = 'auto'
    seed: int = 0
    output_directory: Path | None = None
    questions: Sequence[Question] = ()
    labeller: Labeller | None = None
    node_labeller: NodeLabeller | None = None
    similarity: Similarity | None = None
    text_encoder: TextEncoder | None = None
    progress: Progress = silent
    true_trajectory: StampedTrajectory | None = None
    frames_directory: Path | None = None
    question_images: Path | None = None
    remarks: list[str] = field(default_factory=list)

    def remark(self, suite: str, *texts: str) -> None:
        """Add reasons to doubt the metrics of a suite to the report."""
        self.remarks.extend(f'suite "{suite}": {text}' for text in texts)

    @cached_property
    def matches(self) -> Correspondences:
        """Nearest neighbours between map and truth, computed once for all suites."""
        return Correspondences(self.semantic_map, self.ground_truth, self.device, self.progress)

    @cached_property
    def labels_by_vocabulary(self) -> dict[tuple[int, ...], NDArray[np.int32] | None]:
        """Keeps what `point_labels` found."""
        return {}

    @cached_property
    def named_map(self) -> SemanticMap:
        """The map with names for its objects, its own or the most similar class names.

        All classes of the data set are offered: only the classes of the scene would give it away.
        """
        graph, label_set = self.semantic_map.graph, self.ground_truth.label_set
        objects = [node for node in graph.nodes if node.kind is NodeKind.OBJECT]
        names, id_of = [item.name for item in label_set.classes], label_set.id_of
        is_named = any(node.label for node in objects)
        if self.node_labeller is None or not objects or not names or is_named:
            return self.semantic_map
        made = {
            key: tuple(ScoredLabel(names[i], score, id_of(names[i])) for i, score in best)
            for key, best in self.node_labeller(self.semantic_map, names).items()
        }
        nodes = tuple(
            replace(node, labels=made[node.id])
            if node.kind in THINGS and not node.label and node.id in made
            else node
            for node in graph.nodes
        )
        return replace(self.semantic_map, graph=replace(graph, nodes=nodes))

    @cached_property
    def published_graph(self) -> SemanticMap:
        """The named map with its method's own scene graph; objects left out stay masks."""
        named = self.named_map
        graph = keep_nodes(named.graph, lambda x: x.attributes.get(IN_SCENE_GRAPH) is not False)
        return replace(named, graph=graph)


class Suite(Protocol):
    """Computes the metrics of a map and its ground truth.

    A suite is made by its entry point in the group ``osmabench.suites``, called as
    ``factory(options=dict)``. An option it does not know is a ConfigError.
    """

    name: str
    """Name in records."""

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score one map; metrics the map has no material for are `applicable: false`."""
        ...


OptionsT = TypeVar('OptionsT', bound=Strict)


class FigureSuite(Generic[OptionsT]):
    """A suite with metrics mostly of one mode; subclasses define `name` and `options_type`."""

    name: str
    options_type: type[OptionsT]
    mode = Mode.NONE
    lower_is_better: frozenset[str] = frozenset()
    """Metrics of which less is better."""

    def __init__(self, *, options: Mapping[str, Any]) -> None:
        self._options = validated(self.options_type, options, f'suite "{self.name}"')

    def _record(
        self,
        metric: str,
        value: float | None = None,
        n: int = 0,
        class_name: str = '',
        mode: Mode | None = None,
    ) -> MetricRecord:
        """Return a metric, of another mode if it is given; not applicable without a value."""
        chosen, better = self.mode if mode is None else mode, metric not in self.lower_is_better
        return MetricRecord(
            self.name, chosen.value, metric, class_name, value, n=n, higher_is_better=better
        )


def list_changed_options(suite: Suite) -> list[str]:
    """Return the options of a matching suite that are not the defaults of its metrics."""
    options = getattr(suite, '_options', None)
    if not isinstance(options, MatchingOptions):
        return []
    default = type(options)()
    changed = (name for name, value in options if value != getattr(default, name))
    return [f'{x} {getattr(options, x)} instead of {getattr(default, x)}' for x in changed]


class SuiteFactory(Protocol):
    """Constructor that entry points name."""

    def __call__(self, *, options: dict[str, Any]) -> Suite:
        """Make a suite."""
        ...


def models_asked_by(suite: Suite) -> tuple[str, ...]:
    """Return the `language_models` that the options of a suite name, e.g. ``('openai:qwen3',)``.

    A suite that asks any may cost money: it is scored for final maps only.
    """
    models: tuple[str, ...] = getattr(suite, 'language_models', ())
    return models


def make_suite(name: str, options: Mapping[str, Any] | None = None) -> Suite:
    """Make the suite of an entry point, e.g. ``'osma_segmentation'``.

    Raises ConfigError if there is none, it cannot be imported, or an option is wrong.
    """
    factory = cast('SuiteFactory', load_extension(SUITES, name))
    return factory(options=dict(options or {}))


def find_repetition(names: Iterable[str]) -> str:
    """Return the start of an error about the first suite that is repeated, '' without any."""
    repeated = (name for name, count in Counter(names).items() if count > 1)
    fault = 'is there twice, and its metrics would have equal names in the report'
    return next((f'suite "{name}" {fault}' for name in repeated), '')


@dataclass(frozen=True, eq=False)
class SimulatedScene:
    """A scene that is simulated, and the path through it.

    `simulator` starts the backend of the runs with a horizontal field of view in radians; who
    calls it closes it.
    """

    scene: Scene
    path: RobotPath
    simulator: Callable[[float], Simulator]


@dataclass(frozen=True, eq=False)
class PreparedScene:
    """A scene before its runs.

    Parameters
    ----------
    ground_truth : GroundTruth
        Of the scene and the path through it.
    key : str
        Name of the scene in tables and questions.
    seed : int
        The same seed gives the same questions.
    directory : Path
        New folder that all runs in the scene share. Images of questions are relative to it.
    simulated : SimulatedScene, optional
        None where the scene was recorded.
    progress : Progress
        Gets the progress.
    """

    ground_truth: GroundTruth
    key: str
    seed: int
    directory: Path
    simulated: SimulatedScene | None = None
    progress: Progress = silent


@runtime_checkable
class PreparesQuestions(Protocol):
    """A suite with questions made with the scene, not when a map is scored."""

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Return the questions about a scene; the context of each evaluation brings them."""
        ...
