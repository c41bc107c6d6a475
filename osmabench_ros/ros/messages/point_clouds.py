"""Maps as PointCloud2, for RViz and other tools."""

from __future__ import annotations

import array
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import PointCloud2, PointField
from std_msgs.msg import Header

from osmabench_ros.maps.message_content import fields_of, records_of
from osmabench_ros.maps.semantic_map import DenseMap

try:
    from sensor_msgs_py.point_cloud2 import create_cloud as _create_cloud
except ImportError:

    def _create_cloud(
        header: Header, fields: Sequence[PointField], points: NDArray[Any]
    ) -> PointCloud2:
        """Do what sensor_msgs_py does with packed records."""
        return PointCloud2(
            header=header,
            height=1,
            width=len(points),
            fields=fields,
            point_step=points.dtype.itemsize,
            row_step=points.dtype.itemsize * len(points),
            is_dense=False,
            data=array.array('B', points.tobytes()),
        )


def point_cloud_message(dense: DenseMap, header: Header, *, max_points: int = 0) -> PointCloud2:
    """Return the points of a map as a cloud, thinned evenly to `max_points`; 0 keeps all."""
    records = records_of(dense)
    if max_points and len(records) > max_points:
        records = records[np.linspace(0, len(records) - 1, max_points).astype(np.int64)]
    fields = [
        PointField(
            name=field.name, offset=field.offset, datatype=field.datatype, count=field.count
        )
        for field in fields_of(records)
    ]
    return _create_cloud(header, fields, records)
