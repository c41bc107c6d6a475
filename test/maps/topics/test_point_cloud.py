import dataclasses
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from support.world.bags import make, point_cloud
from support.world.maps import sample_map

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.maps.standard_messages import (
    PointFieldLayout,
    convert_records,
    list_fields,
    make_records,
    map_of_point_cloud,
    read_records,
)
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

LABELS = LabelSet.from_names('room', ['chair', 'table'])
POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [np.nan, 0, 0], [5, 5, 5]], np.float32)
DENSE = DenseMap(
    POINTS,
    np.arange(15, dtype=np.uint8).reshape(5, 3),
    np.array([1, 1, 2, 2, 0], np.int32),
    np.array([7, 7, 9, 9, 0], np.int32),
)


def read(message, label_set=LABELS):
    return map_of_point_cloud(message, '/cloud', TopicOptions('dualmap', label_set))


@pytest.mark.parametrize('names', [{}, {'label': 'semantic', 'instance': 'object_id'}])
def test_labels_and_instances_become_a_map(names):
    made = read(point_cloud(DENSE, 3_000_000_005, '/odom', **names))
    assert (made.header.frame_id, made.header.stamp_ns) == ('odom', 3_000_000_005)
    assert made.header.provenance.method == 'dualmap'
    np.testing.assert_array_equal(made.dense.points, POINTS[[0, 1, 2, 4]])
    np.testing.assert_array_equal(made.dense.colors, DENSE.colors[[0, 1, 2, 4]])
    assert made.dense.labels.tolist() == [1, 1, 2, UNLABELLED]
    assert made.extras == {'points_dropped_because_not_finite': 1}
    assert [(node.id, node.label) for node in made.graph.nodes] == [(7, 'chair'), (9, 'table')]
    np.testing.assert_array_equal(made.graph.by_id[7].box.maximum, [1, 0, 0])
    assert made.graph.frame_id == 'odom'


def test_labels_without_meaning_keep_their_numbers():
    made = read(point_cloud(DENSE), None)
    assert [node.label for node in made.graph.nodes] == ['class 1', 'class 2']
    assert made.dense.labels.tolist() == [1, 1, 2, UNLABELLED]


def test_a_bare_cloud_is_geometry_only():
    """As RTAB-Map's cloud_map: x, y, z, rgb."""
    made = read(point_cloud(DenseMap(POINTS[:3], DENSE.colors[:3])), None)
    assert made.dense.labels is None
    assert made.dense.instances is None
    assert (made.graph.nodes, made.label_set) == ((), None)


def test_a_cloud_at_fault_is_named():
    unknown = dataclasses.replace(DENSE, labels=np.full(5, 40, np.int32))
    with pytest.raises(ContractError, match=r'"/cloud": label ids \[40\].*--labels'):
        read(point_cloud(unknown))
    message = point_cloud(DENSE)
    message.width = 900
    with pytest.raises(ContractError, match='"/cloud".*900 points'):
        read(message)
    with pytest.raises(ContractError, match='x, y, z are needed'):
        read(make('sensor_msgs/PointCloud2', point_step=4))


SIZES = {'width': 3, 'height': 2, 'point_step': 24, 'row_step': 72, 'is_bigendian': False}
X = PointFieldLayout('x', 0, 7)


def test_a_point_is_laid_out_as_pcl_expects_it():
    dense = DenseMap(
        np.array([[1.0, 2.0, 3.0]], np.float32),
        np.array([[17, 34, 51]], np.uint8),
        np.array([UNLABELLED], np.int32),
        np.array([7], np.int32),
    )
    expected = struct.pack('<fff', 1, 2, 3) + bytes([51, 34, 17, 0]) + struct.pack('<Ii', 65535, 7)
    assert make_records(dense).tobytes() == expected
    fields = [(f.name, f.offset, f.datatype) for f in list_fields(make_records(dense))]
    assert fields == [
        ('x', 0, 7), ('y', 4, 7), ('z', 8, 7), ('rgb', 12, 7), ('label', 16, 6),
        ('instance', 20, 5),
    ]  # fmt: skip


def test_a_map_survives_the_message_without_points_that_are_not_finite():
    given = sample_map().dense
    records = make_records(given)
    records['y'][1] = np.nan
    message = SimpleNamespace(data=records.tobytes(), fields=list_fields(records), **SIZES)
    dense, dropped = convert_records(read_records(message))
    assert dropped == 1
    for part in ('points', 'colors', 'labels', 'instances'):
        expected = np.delete(getattr(given, part), 1, axis=0)
        np.testing.assert_array_equal(getattr(dense, part), expected)


def test_parts_that_a_map_lacks_are_not_fields():
    records = make_records(dataclasses.replace(sample_map().dense, colors=None, labels=None))
    assert [field.name for field in list_fields(records)] == ['x', 'y', 'z', 'instance']
    dense, _ = convert_records(records)
    assert (dense.colors, dense.labels) == (None, None)


def test_padding_byte_order_and_other_fields_are_handled():
    point = struct.pack('>ddd4xfB3xh2x', 1, 2, 3, 0.5, 9, -1)
    row = point + point + b'padding!'
    fields = [
        PointFieldLayout('x', 0, 8), PointFieldLayout('y', 8, 8), PointFieldLayout('z', 16, 8),
        PointFieldLayout('intensity', 28, 7), PointFieldLayout('ring', 32, 2),
        PointFieldLayout('label', 36, 3), PointFieldLayout('normal', 0, 8, 3),
    ]  # fmt: skip
    message = SimpleNamespace(
        data=row * 2, fields=fields, width=2, height=2, point_step=40, row_step=88,
        is_bigendian=True,
    )  # fmt: skip
    dense, _ = convert_records(read_records(message))
    assert dense.points.tolist() == [[1.0, 2.0, 3.0]] * 4
    assert dense.labels.tolist() == [UNLABELLED] * 4


@pytest.mark.parametrize(
    ('changes', 'message'),
    [
        ({'width': 4}, 'but data has 144 bytes'),
        ({'height': 3}, 'but data has 144 bytes'),
        ({'row_step': 71}, '71 bytes'),
        ({'point_step': 20}, '"instance" ends at byte 24 of 20'),
        ({'point_step': 0}, '"x" ends at byte 4 of 0'),
        ({'fields': [PointFieldLayout('x', 0, 99)]}, '"x" has type 99'),
        ({'fields': [X, PointFieldLayout('x', 4, 7)]}, '"x" ends at byte 8 of 24, or repeats'),
        ({'fields': [PointFieldLayout('x', -4, 7)]}, '"x" ends at byte 0'),
        ({'fields': [X]}, r'x, y, z are needed, there are \[.x.\]'),
    ],
)
def test_layouts_that_do_not_fit_are_refused(changes, message):
    records = make_records(sample_map().dense)
    form = {'data': records.tobytes(), 'fields': list_fields(records), **SIZES, **changes}
    with pytest.raises(ContractError, match=message):
        convert_records(read_records(SimpleNamespace(**form)))
