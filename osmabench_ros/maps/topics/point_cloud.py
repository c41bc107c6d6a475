"""Maps out of sensor_msgs/PointCloud2: points with labels and instances, or bare."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import ConfigError, ContractError
from osmabench_ros.maps.importers.pointcloud import (
    INSTANCE_COLUMNS,
    LABEL_COLUMNS,
    nodes_of_instances,
)
from osmabench_ros.maps.point_cloud_layout import (
    PointFieldLayout,
    dense_of_records,
    records_of_buffer,
)
from osmabench_ros.maps.semantic_map import DenseMap, SemanticMap
from osmabench_ros.maps.topics.options import TopicOptions
from osmabench_ros.semantics.labels import UNLABELLED, LabelClass, LabelSet
from osmabench_ros.semantics.scene_graph import SceneGraph


def map_of_point_cloud(message: Any, topic: str, options: TopicOptions) -> SemanticMap:
    """Return the map of a sensor_msgs/PointCloud2: its points, and one node an instance.

    A field `label` (or `class`, `semantic`, ...) holds class ids: -1 and 65535 are unlabelled, and
    so is 0 if it is no class; without a label set classes are called "class <id>". `instance` (or
    `object_id`, ...) holds instance ids, 0 or less for none. Without them, as in RTAB-Map's
    `cloud_map`, the map is geometry only. Raises ContractError if the layout of the message is
    broken, or a label is not in the label set.
    """
    try:
        records = records_of_buffer(
            message.data,
            [
                PointFieldLayout(item.name, item.offset, item.datatype, item.count)
                for item in message.fields
            ],
            width=message.width,
            height=message.height,
            point_step=message.point_step,
            row_step=message.row_step,
            big_endian=bool(message.is_bigendian),
        )
        dense, dropped = dense_of_records(_with_usual_names(records))
    except ContractError as error:
        raise ContractError(f'topic "{topic}": {error}') from error
    dense, label_set = _labelled(dense, topic, options.label_set)
    header = options.header(message.header)
    extras = {'points_dropped_because_not_finite': dropped} if dropped else {}
    graph = SceneGraph(nodes_of_instances(dense, label_set), (), header.frame_id)
    return SemanticMap(header, graph, dense, label_set, extras=extras)


def _with_usual_names(records: NDArray[Any]) -> NDArray[Any]:
    """Return the records with the first known field for labels called so, likewise instances."""
    names = records.dtype.names or ()
    renamed = {}
    for usual, known in (('label', LABEL_COLUMNS), ('instance', INSTANCE_COLUMNS)):
        found = next((name for name in known if name in names), None)
        if found is not None and usual not in names:
            renamed[found] = usual
    if not renamed:
        return records
    fields: Any = records.dtype.fields or {}
    kind = np.dtype(
        {
            'names': [renamed.get(name, name) for name in names],
            'formats': [fields[name][0] for name in names],
            'offsets': [fields[name][1] for name in names],
            'itemsize': records.dtype.itemsize,
        }
    )
    return records.view(kind)


def _labelled(
    dense: DenseMap, topic: str, label_set: LabelSet | None
) -> tuple[DenseMap, LabelSet | None]:
    """Return the points with sentinels for what has no class, and what their ids mean."""
    if dense.labels is None:
        return dense, label_set
    labels = dense.labels.copy()
    if label_set is None or 0 not in label_set.by_id:
        labels[labels == 0] = UNLABELLED
    if label_set is None:
        label_set = _numbered(labels, topic)
    try:
        label_set.check(labels, f'topic "{topic}"')
    except ConfigError as error:
        raise ContractError(f'{error}; or give the meaning of the labels with --labels') from error
    return dataclasses.replace(dense, labels=labels), label_set


def _numbered(labels: NDArray[np.int32], topic: str) -> LabelSet:
    ids = [int(item) for item in np.unique(labels) if item != UNLABELLED]
    if ids and not 0 <= min(ids) <= max(ids) < UNLABELLED:
        raise ContractError(
            f'topic "{topic}": labels from {min(ids)} to {max(ids)} are no class ids, which lie '
            f'in 0 to {UNLABELLED - 1}'
        )
    return LabelSet('numbers', tuple(LabelClass(item, f'class {item}') for item in ids))
