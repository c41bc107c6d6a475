import dataclasses
import struct
from types import SimpleNamespace

import numpy as np
import pytest
from support.world.maps import sample_map

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.maps.standard_messages import (
    PointFieldLayout,
    convert_records,
    list_fields,
    make_records,
    read_records,
)
from osmabench_ros.semantics.labels import UNLABELLED

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
