"""A map queried by text: the prompts and queries of OpenLex3D, and the objects found by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import StrictInt

from osmabench_ros.base.documents import read_json, read_text
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import MetricError
from osmabench_ros.maps.semantic_map import FeatureSpace, SemanticMap
from osmabench_ros.metrics.geometry import compute_voxel_keys
from osmabench_ros.metrics.nearest_neighbours import NeighbourIndex
from osmabench_ros.metrics.openlex3d import PointFeatures
from osmabench_ros.metrics.retrieval import COMPAT_ALIGNMENT_M, Retrieval
from osmabench_ros.metrics.similarity import CosineTable, cosine_similarity, find_best_prompts
from osmabench_ros.metrics.tiers import EXCLUDED_SYNONYMS, TieredLabels, strip_word
from osmabench_ros.suites.prediction import rows_of_ids
from osmabench_ros.suites.suite import SuiteContext
from osmabench_ros.suites.things import mask_overlaps, overlaps_mask_by_mask, select_seen_objects

# Queries by synonym, by depiction and synonym, or both; as OpenLex3D calls them.
Level = Literal['l0', 'l1', 'all']

_PARTS: Mapping[Level, Sequence[int]] = {'l0': (0,), 'l1': (1,), 'all': (0, 1)}


@dataclass(frozen=True)
class TextQuery:
    """A text and the ids of all objects that bear it; an id is repeated for repeated labels."""

    text: str
    object_ids: tuple[int, ...]


def read_prompts(path: Path) -> list[str]:
    """Read a prompt_list.txt of OpenLex3D: a prompt a line, spaces around it taken away.

    Raises MetricError if the file cannot be read or holds no line.
    """
    prompts = [line.strip() for line in read_text(path, MetricError).splitlines()]
    if not prompts:
        raise MetricError(f'{path}: holds no prompts; write one per line')
    return prompts


def queries_of(labels: TieredLabels, level: Level) -> list[TextQuery]:
    """Return every label of a level, with the objects that bear it.

    Level 0 asks for each synonym, level 1 for each depiction followed by each synonym, such as
    "flower cushion". Names of parts of a building are not asked for. A text of both levels is
    two queries, as in the mapping files of OpenLex3D.
    """
    found: dict[tuple[int, str], list[int]] = {}
    for part in _PARTS[level]:
        for item in labels.objects.values():
            described = product(item.depictions, item.synonyms)
            for text in map(' '.join, described) if part else item.synonyms:
                if strip_word(text) not in EXCLUDED_SYNONYMS:
                    found.setdefault((part, text), []).append(item.object_id)
    return [TextQuery(text, tuple(ids)) for (_, text), ids in found.items()]


def read_queries(path: Path) -> list[TextQuery]:
    """Read a gt_categories_query_to_object_mapping_{l0,l1,all}.json of OpenLex3D.

    It holds texts with object ids for each level. Raises MetricError, which names the file and
    the query, if it is missing or malformed.
    """
    levels = validated(
        dict[str, dict[str, tuple[StrictInt, ...]]],
        read_json(path, MetricError),
        str(path),
        MetricError,
        remedy='it maps levels to queries with object ids, {"level0": {"sofa": [3, 7]}}',
    )
    queries = (item for level in levels.values() for item in level.items())
    found = [TextQuery(text, ids) for text, ids in queries]
    if not found:
        raise MetricError(f'{path}: holds no queries')
    return found


@dataclass(frozen=True, eq=False)
class FeaturedPoints:
    """Rows (N,) of a text-comparable feature space for points and nodes, -1 for none."""

    space: FeatureSpace
    rows: NDArray[np.int64]
    node_rows: dict[int, int]


def select_featured_points(semantic_map: SemanticMap) -> FeaturedPoints | None:
    """Return the text-comparable features of a map's points, or of their nodes, else None."""
    dense = semantic_map.dense
    if dense is None:
        return None
    nodes = [node for node in semantic_map.graph.nodes if node.feature_row is not None]
    names = [dense.feature_space] if dense.feature_rows is not None else []
    names += sorted({node.feature_space for node in nodes})
    for name in names:
        if name not in semantic_map.feature_spaces:
            raise MetricError(f'map: there is no feature space "{name}"')
        space = semantic_map.feature_spaces[name]
        if not space.text_comparable:
            continue
        own = {n.id: n.feature_row for n in nodes if n.feature_space == name}
        node_rows = {key: row for key, row in own.items() if row is not None}
        rows = _find_point_rows(semantic_map, name, node_rows)
        if rows is not None:
            _check(rows, node_rows, space)
            return FeaturedPoints(space, rows, node_rows)
    return None


def _find_point_rows(
    semantic_map: SemanticMap, name: str, node_rows: dict[int, int]
) -> NDArray[np.int64] | None:
    dense = semantic_map.dense
    assert dense is not None
    if dense.feature_rows is not None and dense.feature_space == name:
        return dense.feature_rows.astype(np.int64)
    if dense.instances is None:
        return None
    of_nodes = np.array([*node_rows.values(), -1], np.int64)
    return of_nodes[rows_of_ids(list(node_rows), dense.instances)]


def _check(rows: NDArray[np.int64], node_rows: dict[int, int], space: FeatureSpace) -> None:
    used = [*node_rows.values(), int(rows.min(initial=0)), int(rows.max(initial=-1))]
    if min(used) < -1 or max(used) >= len(space.vectors):
        raise MetricError(
            f'map: feature rows reach from {min(used)} to {max(used)}, but feature space '
            f'"{space.name}" has {len(space.vectors)} rows'
        )


# Edge of the voxels the published code thins a prediction with.
COMPAT_VOXEL_M = 0.05


@dataclass(frozen=True, eq=False)
class QueriedMap:
    """Features of a map, the prompts they are ranked against, and the queries for objects."""

    context: SuiteContext
    features: FeaturedPoints
    tiers: TieredLabels
    prompts: Sequence[str]
    queries: Sequence[TextQuery]
    most_words: int

    @cached_property
    def _text(self) -> NDArray[np.float32]:
        """Text features of the prompts, a row for each."""
        return self._encode_texts(self.prompts)

    @cached_property
    def best(self) -> NDArray[np.int32]:
        """Words most like each feature, best first, shape (M, most_words or L)."""
        n = min(self.most_words, len(self.prompts))
        vectors = self.features.space.vectors
        return find_best_prompts(vectors, self._text, n, device=self.context.device)

    @cached_property
    def cosines(self) -> CosineTable:
        """Similarity of features and words; no row exists before it is asked for."""
        return CosineTable(self.features.space.vectors, self._text, device=self.context.device)

    def points(self, *, compat: bool) -> PointFeatures:
        """Return the feature of each visible surface point.

        As published the prediction is thinned to the means of voxels. In strict mode it is taken
        as it is, and a feature of zeros, which is like nothing, is none.
        """
        return self._compat_points if compat else self._strict_points

    @cached_property
    def _strict_points(self) -> PointFeatures:
        # The last entry means the points that have no feature.
        is_none = np.append(~self.features.space.vectors.any(axis=1), True)
        rows = np.where(is_none[self._rows], -1, self._rows)
        surface, near = self.context.ground_truth.surface, self.context.matches.surface_to_map
        return PointFeatures.of(surface.instances, near, rows)

    @cached_property
    def _compat_points(self) -> PointFeatures:
        predicted, surface = self.context.matches.predicted, self.context.ground_truth.surface
        assert predicted is not None
        if not len(predicted.points):
            return self._strict_points
        device = self.context.device
        centers = _average_voxels(predicted.points)
        original = NeighbourIndex(predicted.points, device, 'map').query(centers).indices
        near = NeighbourIndex(centers, device, 'map').query(surface.points)
        return PointFeatures.of(surface.instances, near, self._rows[original])

    @cached_property
    def _rows(self) -> NDArray[np.int64]:
        """Feature of each valid point of the map, -1 for none."""
        predicted = self.context.matches.predicted
        assert predicted is not None
        return self.features.rows[predicted.rows]

    def retrieval(
        self, *, compat: bool, max_distance_m: float, per_mask: bool
    ) -> Retrieval | None:
        """Ask for the objects that bear a label by each label.

        As published every object with a point is asked for, and masks are moved to the surface
        each by itself (`per_mask`) or by the globally nearest point. In strict mode the objects
        are seen and scored ones, and the nearest point decides to which one the surface belongs.
        None if the map has no masks with features, or nothing is asked for.
        """
        move = overlaps_mask_by_mask if compat and per_mask else mask_overlaps
        overlaps = move(self.context, COMPAT_ALIGNMENT_M if compat else max_distance_m)
        node_rows = self.features.node_rows
        if overlaps is None or not node_rows:
            return None
        known = np.array([int(i) in node_rows for i in overlaps.predicted_ids], bool)
        kept = overlaps.select(known, np.ones(len(overlaps.true_ids), bool))
        rows = [node_rows[int(item)] for item in kept.predicted_ids]
        column = {int(item): i for i, item in enumerate(kept.true_ids)}
        if not compat:
            column = {key: i for key, i in column.items() if key in self._scored}
        wanted = [[column[i] for i in q.object_ids if i in column] for q in self.queries]
        if not compat:
            wanted = [list(dict.fromkeys(columns)) for columns in wanted]
        if not rows or not any(wanted):
            return None
        # As published, retrieving anything for a query about objects out of sight is wrong.
        asked = [i for i, columns in enumerate(wanted) if compat or columns]
        similarity = cosine_similarity(
            self.features.space.vectors[rows], self._query_text[asked], device=self.context.device
        )
        return Retrieval(similarity, kept.iou, kept.predicted_sizes, [wanted[i] for i in asked])

    @cached_property
    def _query_text(self) -> NDArray[np.float32]:
        """Text features of the queries, a row for each."""
        return self._encode_texts([query.text for query in self.queries])

    def _encode_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        assert self.context.text_encoder is not None
        return self.context.text_encoder(self.features.space, texts)

    @cached_property
    def _scored(self) -> frozenset[int]:
        """Objects that were seen and are not part of the building."""
        known = self.tiers.objects
        seen = (node.id for node in select_seen_objects(self.context.ground_truth))
        return frozenset(i for i in seen if i in known and TieredLabels.is_scored(known[i]))


def _average_voxels(points: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return the mean of the points of each occupied voxel."""
    _, inverse, counts = np.unique(
        compute_voxel_keys(points, COMPAT_VOXEL_M), return_inverse=True, return_counts=True
    )
    sums = [np.bincount(inverse, weights=points[:, axis]) for axis in range(3)]
    return np.stack([total / counts for total in sums], axis=1).astype(np.float32)
