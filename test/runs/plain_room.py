"""A floor with a table and a chair on it: ground truth, and maps that know it in several ways."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.disk.storage import write_map
from osmabench_ros.maps.semantic_map import (
    DenseMap,
    FeatureSpace,
    MapHeader,
    Provenance,
    SemanticMap,
)
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind, SceneGraph, SceneNode, ScoredLabel
from osmabench_ros.sequences.ground_truth import GroundTruth, write_ground_truth

NAMES = ('chair', 'floor', 'table')
LABELS = LabelSet.from_names('room', NAMES, structure=['floor'])
CORNERS = {'chair': (3.0, 3.0, 0.5), 'floor': (0.0, 0.0, 0.0), 'table': (1.0, 1.0, 0.8)}
CAPTIONS = {
    'chair': 'a wooden chair to sit on',
    'floor': 'the bare floor of a room',
    'table': 'a dining table',
}


def cloud() -> LabelledCloud:
    """Return 10 x 10 points a surface, 1 m2 each."""
    cells = np.stack(np.meshgrid(np.arange(10), np.arange(10)), axis=-1).reshape(-1, 2) / 10
    flat = np.column_stack([cells, np.zeros(100)])
    points = np.concatenate([flat + CORNERS[name] for name in NAMES])
    ids = np.repeat(np.arange(1, 4, dtype=np.int32), 100)
    normals = np.tile(np.array([[0, 0, 1]], np.float32), (300, 1))
    return LabelledCloud(points.astype(np.float32), ids, ids, normals)


def nodes() -> tuple[SceneNode, ...]:
    return tuple(
        SceneNode(
            number,
            NodeKind.BACKGROUND if name == 'floor' else NodeKind.OBJECT,
            (ScoredLabel(name, 1.0, number),),
            box=AxisAlignedBox(CORNERS[name], np.add(CORNERS[name], [1, 1, 0.1])),
        )
        for number, name in enumerate(NAMES, start=1)
    )


def ground_truth() -> GroundTruth:
    seen = cloud()
    return GroundTruth(
        'test',
        'room',
        LABELS,
        SceneGraph(nodes()),
        seen,
        seen.select(np.zeros(len(seen), bool)),
        (Pose.identity(),),
        Intrinsics.from_hfov(8, 6, 1.5),
        (1, 2, 3),
        seen,
        points_per_m2=100.0,
    )


def labelled_map() -> SemanticMap:
    """Return the map of a faultless method."""
    seen = cloud()
    dense = DenseMap(seen.points, labels=seen.labels, instances=seen.instances)
    header = MapHeader(Provenance('faultless', condition='baseline'))
    return SemanticMap(header, SceneGraph(nodes()), dense, LABELS)


def featured_map(**space: object) -> SemanticMap:
    """Return a map of axis-aligned features, one axis a class: chair, floor, table."""
    seen = cloud()
    named = {'model': 'ToyCLIP', 'pretrained': 'toys', **space}
    dense = DenseMap(
        seen.points, feature_rows=(seen.labels - 1).astype(np.int32), feature_space='clip'
    )
    return SemanticMap(
        MapHeader(Provenance('open')),
        dense=dense,
        feature_spaces={'clip': FeatureSpace('clip', np.eye(3, dtype=np.float32), **named)},
    )


def captioned_map() -> SemanticMap:
    """Return a map that knows its objects by sentences alone."""
    described = tuple(
        replace(node, labels=(), captions=(CAPTIONS[name],))
        for node, name in zip(nodes(), NAMES, strict=True)
    )
    seen = cloud()
    dense = DenseMap(seen.points, instances=seen.instances)
    return SemanticMap(MapHeader(Provenance('teller')), SceneGraph(described), dense)


def write_text_features(path: Path, texts: dict[str, list[float]]) -> Path:
    """Write precomputed text features as the configuration names them."""
    np.save(path, np.array(list(texts.values()), np.float32))
    path.with_suffix('.json').write_text(json.dumps(list(texts)))
    return path


def write_inputs(directory: Path, semantic_map: SemanticMap) -> tuple[Path, Path]:
    """Write a map and the ground truth; return both folders."""
    write_map(semantic_map, directory / 'map')
    write_ground_truth(ground_truth(), directory / 'ground_truth')
    return directory / 'map', directory / 'ground_truth'
