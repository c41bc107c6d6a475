"""Labels for open-vocabulary maps: the class with the nearest text feature."""

import dataclasses
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.reading import read_npy
from osmabench_ros.errors import ConfigError, MapError, errors_as
from osmabench_ros.maps.semantic_map import DenseMap, FeatureSpace, SemanticMap
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel

_FORMS = """expected "7: chair" lines, or "classes:" with "id" and "name" each"""


def read_label_file(path: Path) -> LabelSet:
    """Read a label set, ``7: chair`` or ``classes: [{id: 7, name: chair, structure: false}]``."""
    data = read_yaml(path, ConfigError)
    caught = (KeyError, TypeError, ValueError, AttributeError)
    with errors_as(ConfigError, f'label file {path}', caught, remedy=_FORMS):
        listed = data.get('classes')
        if listed is None:
            listed = [{'id': key, 'name': name} for key, name in data.items()]
        return LabelSet.from_foreign(path.stem, listed)


_CHUNK_ROWS = 1 << 16

LABELS_OF_A_NODE = 5


def average_text_features(features: NDArray[np.floating]) -> NDArray[np.float32]:
    """Average text features (T, C, D) of T prompt templates to float32 (C, D) of unit length.

    Each is brought to unit length before and after, as CLIP's zero-shot classification and
    OSMa-Bench do. Raises MapError if the shape is wrong, or a feature is zero or not finite.
    """
    if features.ndim != 3 or not features.shape[0]:
        raise MapError(f'text features are {features.shape}; (templates, classes, D) is needed')
    return _normalize(_normalize(features).mean(axis=0)).astype(np.float32)


def read_text_features(path: Path, label_set: LabelSet) -> NDArray[np.float32]:
    """Read text features (C, D), or (T, C, D) by template, as float32 (C, D) of unit length."""
    features = read_npy(path, MapError)
    if features.ndim not in (2, 3) or features.shape[-2] != len(label_set.classes):
        classes = f'label set "{label_set.name}" has {len(label_set.classes)} classes'
        raise MapError(f'{path} is {features.shape}; {classes}, so give (C, D) or (T, C, D)')
    return average_text_features(features if features.ndim == 3 else features[None])


def label_by_features(
    semantic_map: SemanticMap,
    text_features: NDArray[np.floating],
    label_set: LabelSet,
    *,
    space: str = '',
    top_k: int = LABELS_OF_A_NODE,
) -> SemanticMap:
    """Give every node and point the class with the highest cosine to its feature.

    `text_features` (C, D) are of the C classes, from the encoder of `space`: by default the space
    of the points, else the first that text can be compared with. Scores are cosines; a node keeps
    its `top_k` best labels. A node without a feature keeps its names, with class ids of the
    label set; a point without a feature takes the label of its node, if it has one. Raises
    MapError if the feature space is missing, or the shapes do not fit.
    """
    chosen = choose_space(semantic_map, space)
    wanted = (len(label_set.classes), chosen.vectors.shape[1])
    if text_features.shape != wanted or not wanted[0]:
        shapes = f'text features are {text_features.shape}, {wanted} is needed'
        encoder = f'the encoder of "{chosen.name}" ({chosen.model} {chosen.pretrained})'
        raise MapError(f'{shapes}: a row for each class, from {encoder}')
    text = _normalize(text_features).astype(np.float32)
    classes, cosines = _rank(chosen.vectors, text, min(top_k, len(text)))
    nodes = tuple(
        _label_node(node, chosen.name, classes, cosines, label_set)
        for node in semantic_map.graph.nodes
    )
    dense = semantic_map.dense
    return dataclasses.replace(
        semantic_map,
        graph=SceneGraph(nodes, semantic_map.graph.edges, semantic_map.graph.frame_id),
        dense=dense and _label_points(dense, chosen.name, classes, cosines, nodes, label_set),
        label_set=label_set,
    )


def choose_space(semantic_map: SemanticMap, name: str = '') -> FeatureSpace:
    """Return the named space, else the points', else the first that text is compared with.

    MapError if there is none, or text cannot be compared with the named one or the points'.
    """
    spaces, dense = semantic_map.feature_spaces, semantic_map.dense
    method = semantic_map.header.provenance.method
    name = name or ('' if dense is None else dense.feature_space)
    if name and name not in spaces:
        known = ', '.join(sorted(spaces)) or 'none'
        raise MapError(f'the map of {method} has no feature space "{name}"; it has {known}')
    for found in [spaces[name]] if name else spaces.values():
        if found.text_comparable:
            return found
    raise MapError(f'the map of {method} has no features that text can be compared with')


def _normalize(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    length = np.linalg.norm(vectors.astype(np.float64), axis=-1, keepdims=True)
    if not (np.isfinite(length).all() and (length > 0).all()):
        raise MapError('a text feature is zero, NaN or infinite')
    return np.asarray(vectors / length, np.float64)


def _rank(
    vectors: NDArray[np.float32], text: NDArray[np.float32], top_k: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return the best classes (M, k) of every row and their cosines; -1 and NaN for zero rows."""
    classes = np.full((len(vectors), top_k), -1, np.int32)
    cosines = np.full((len(vectors), top_k), np.nan, np.float32)
    for start in range(0, len(vectors), _CHUNK_ROWS):
        rows = vectors[start : start + _CHUNK_ROWS]
        length = np.linalg.norm(rows, axis=1)
        used = length > 0
        similarity = (rows[used] / length[used, None]) @ text.T
        order = np.argsort(-similarity, axis=1, kind='stable')[:, :top_k]
        where = start + np.flatnonzero(used)
        classes[where] = order
        cosines[where] = np.take_along_axis(similarity, order, axis=1)
    return classes, cosines


def number_labels(node: SceneNode, label_set: LabelSet | None) -> SceneNode:
    """Return a node with the class ids of its names in a label set, without one UNLABELLED."""
    ids = [UNLABELLED if label_set is None else label_set.id_of(x.name) for x in node.labels]
    labels = (ScoredLabel(x.name, x.score, i) for x, i in zip(node.labels, ids, strict=True))
    return dataclasses.replace(node, labels=tuple(labels))


def _label_node(
    node: SceneNode,
    space: str,
    classes: NDArray[np.int32],
    cosines: NDArray[np.float32],
    label_set: LabelSet,
) -> SceneNode:
    row = node.feature_row if node.feature_space == space else None
    if row is None or classes[row, 0] < 0:
        return number_labels(node, label_set)
    best = [label_set.classes[place] for place in classes[row].tolist()]
    ranked = zip(best, cosines[row].tolist(), strict=True)
    labels = tuple(ScoredLabel(item.name, cosine, item.id) for item, cosine in ranked)
    return dataclasses.replace(node, labels=labels)


def _label_points(
    dense: DenseMap,
    space: str,
    classes: NDArray[np.int32],
    cosines: NDArray[np.float32],
    nodes: tuple[SceneNode, ...],
    label_set: LabelSet,
) -> DenseMap:
    count = len(dense.points)
    labels = np.full(count, UNLABELLED, np.int32)
    scores = np.full(count, np.nan, np.float32)
    if dense.instances is not None:
        ids = np.array([0, *(node.id for node in nodes)], np.int64)
        order = np.argsort(ids)
        place = order[np.searchsorted(ids[order], dense.instances)]
        labels = np.array([UNLABELLED, *(node.class_id for node in nodes)], np.int32)[place]
        best = [np.nan, *(node.labels[0].score if node.labels else np.nan for node in nodes)]
        scores = np.array(best, np.float32)[place]
    if dense.feature_rows is not None and dense.feature_space == space:
        rows = dense.feature_rows
        has = rows >= 0
        has[has] &= classes[rows[has], 0] >= 0
        labels[has] = label_set.ids[classes[rows[has], 0]]
        scores[has] = cosines[rows[has], 0]
    return dataclasses.replace(dense, labels=labels, scores=scores)
