"""What a path may have shown of things that it did not show well enough to ask about."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.semantics.labels import NO_INSTANCE
from osmabench_ros.semantics.scene_graph import NodeKind, RelationType
from osmabench_ros.sequences.ground_truth import GroundTruth

MOST_VIEWS = 60
_WIDTH_CELLS = 48
_NEAREST_M = 0.1
_SLACK_M, _SLACK_SHARE = 0.1, 0.03


def glimpsed_instances(truth: GroundTruth) -> frozenset[int]:
    """Return instances that a map may have though they do not count as seen.

    Those with a surface point in some view, however far and slanted; and what stands on or in
    something seen, for small things have hardly a point.
    """
    seen = frozenset(truth.seen_instances)
    found = set(np.unique(truth.surface.instances).tolist())
    found |= {
        edge.source
        for edge in truth.graph.edges
        if edge.type in (RelationType.ON.value, RelationType.IN.value)
        and edge.target in seen
        and truth.graph.by_id[edge.target].kind is NodeKind.OBJECT
    }
    found |= _in_view(truth, frozenset(truth.graph.by_id) - seen - found)
    return frozenset(found) - seen - {NO_INSTANCE}


def _in_view(truth: GroundTruth, doubtful: frozenset[int]) -> set[int]:
    clouds = (truth.surface, truth.unseen)
    points = np.concatenate([np.asarray(cloud.points, np.float32) for cloud in clouds])
    instances = np.concatenate([cloud.instances for cloud in clouds])
    asked = np.flatnonzero(np.isin(instances, sorted(doubtful)))
    found: set[int] = set()
    for pose in _views(truth.camera_poses) if len(asked) else ():
        showing = _nearest(truth, points, pose)
        found.update(np.unique(instances[asked[showing[asked]]]).tolist())
    return found


def _views(poses: tuple[Pose, ...]) -> Iterable[Pose]:
    """Return poses, evenly thinned out: neighbours show nearly the same."""
    chosen = np.linspace(0, len(poses) - 1, min(len(poses), MOST_VIEWS)).round().astype(int)
    return [poses[i] for i in dict.fromkeys(chosen.tolist())]


def _nearest(truth: GroundTruth, points: NDArray[np.float32], pose: Pose) -> NDArray[np.bool_]:
    """Tell which points no other point hides, in an image of coarse cells.

    Cells are wider than the gaps between points, so that hardly anything shows through a wall;
    what does is only one question less.
    """
    camera = truth.intrinsics
    turned = (points - pose.translation.astype(np.float32)) @ pose.rotation.astype(np.float32)
    depth = turned[:, 2]
    scale = _WIDTH_CELLS / camera.width
    shape = (max(1, round(camera.height * scale)), _WIDTH_CELLS)
    safe = np.where(depth > _NEAREST_M, depth, 1.0)
    columns = np.floor((turned[:, 0] / safe * camera.fx + camera.cx + 0.5) * scale)
    rows = np.floor((turned[:, 1] / safe * camera.fy + camera.cy + 0.5) * scale)
    inside = (depth > _NEAREST_M) & (columns >= 0) & (columns < shape[1])
    inside &= (rows >= 0) & (rows < shape[0])
    cells = (rows[inside] * shape[1] + columns[inside]).astype(np.int64)
    buffer = np.full(shape[0] * shape[1], np.inf, np.float32)
    np.minimum.at(buffer, cells, depth[inside])
    showing = np.zeros(len(points), bool)
    showing[inside] = depth[inside] <= buffer[cells] * (1 + _SLACK_SHARE) + _SLACK_M
    return showing
