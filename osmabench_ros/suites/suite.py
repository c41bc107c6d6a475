"""What a suite is, and what it is given."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.suites.matches import Matches
from osmabench_ros.suites.named_map import NodeLabeller, graph_as_stated, named_map
from osmabench_ros.vqa.questions import Question

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
        What it is compared with.
    device : str
        'auto', 'cpu' or 'cuda'.
    seed : int
        Seed of everything random.
    output_directory : Path, optional
        Existing folder for what is more than figures, such as confusion matrices.
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
    progress: Callable[[str, float], None] | None = None

    @cached_property
    def matches(self) -> Matches:
        """Nearest neighbours between map and truth, computed once for all suites."""
        return Matches(self.semantic_map, self.ground_truth, self.device, self.progress)

    @cached_property
    def labels_by_vocabulary(self) -> dict[tuple[int, ...], NDArray[np.int32] | None]:
        """Keeps what `point_labels` found."""
        return {}

    @cached_property
    def named_map(self) -> SemanticMap:
        """The map with names for its nodes, by text where the method names none itself."""
        return named_map(self.semantic_map, self.ground_truth, self.node_labeller)

    @cached_property
    def stated_map(self) -> SemanticMap:
        """The named map with no more nodes than the method has in its own scene graph."""
        return graph_as_stated(self.named_map)


class Suite(Protocol):
    """Turns a map and its ground truth into figures.

    A suite is made by its entry point in the group ``osmabench.suites``, called as
    ``factory(options=dict)``. An option it does not know is a ConfigError.
    """

    name: str
    """Name in records."""

    def evaluate(self, context: SuiteContext) -> list[MetricRecord]:
        """Score one map; figures the map has no material for are `applicable: false`."""
        ...


class SuiteFactory(Protocol):
    """Constructor that entry points name."""

    def __call__(self, *, options: dict[str, Any]) -> Suite:
        """Make a suite."""
        ...


@runtime_checkable
class AsksLanguageModels(Protocol):
    """A suite whose figures may cost money: it is scored for final maps only."""

    @property
    def language_models(self) -> tuple[str, ...]:
        """Models that its options name, e.g. ``('openai:qwen3',)``; empty if none is asked."""
        ...


def models_asked_by(suite: Suite) -> tuple[str, ...]:
    """Return the language models that a suite asks, as its options name them."""
    return suite.language_models if isinstance(suite, AsksLanguageModels) else ()
