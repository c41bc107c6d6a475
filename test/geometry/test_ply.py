import io
from pathlib import Path

import numpy as np
import pytest

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.geometry.point_files import PlyError, read_ply, write_ply

HEADER = 'ply\nformat {}\nelement vertex 2\nproperty double x\nproperty uchar red\n'


def written(tmp_path: Path, text: bytes) -> Path:
    path = tmp_path / 'cloud.ply'
    path.write_bytes(text)
    return path


@pytest.mark.parametrize('kind', ['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'f4', 'f8'])
def test_every_type_survives(tmp_path: Path, kind: str) -> None:
    columns = {'x': np.array([0, 1, 2], kind), 'label': np.array([5, 6, 7], np.int32)}
    stream = io.BytesIO()
    write_ply(stream, columns)
    again = read_ply(written(tmp_path, stream.getvalue()))
    assert {name: column.dtype for name, column in again.items()} == {
        name: column.dtype for name, column in columns.items()
    }
    for name, column in columns.items():
        np.testing.assert_array_equal(again[name], column)


def test_ascii_and_big_endian_hold_the_same(tmp_path: Path) -> None:
    ascii_file = HEADER.format('ascii 1.0') + 'end_header\n0.5 7\n-1e3 255\n'
    rows = np.array([(0.5, 7), (-1000.0, 255)], [('x', '>f8'), ('red', 'u1')])
    big = (HEADER.format('binary_big_endian 1.0') + 'end_header\n').encode() + rows.tobytes()
    for text in (ascii_file.encode(), big):
        columns = read_ply(written(tmp_path, text))
        assert columns['x'].tolist() == [0.5, -1000.0]
        assert columns['red'].tolist() == [7, 255]
        assert columns['red'].dtype == np.uint8


def test_faces_behind_the_vertices_are_passed_over(tmp_path: Path) -> None:
    trimesh = pytest.importorskip('trimesh')
    box = trimesh.creation.box()
    box.export(tmp_path / 'box.ply')
    columns = read_ply(tmp_path / 'box.ply')
    vertices = np.stack([columns[name] for name in 'xyz'], axis=1)
    np.testing.assert_allclose(vertices, box.vertices)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (b'', 'no PLY file'),
        (b'ply\nformat ascii 1.0\n', 'no end'),
        (HEADER.format('ascii 1.0').encode() + b'end_header\n0 1\n', 'cut off: 1 of 2'),
        (HEADER.format('ascii 1.0').encode() + b'end_header\n0 1\n0\n', 'does not have 2'),
        (HEADER.format('ascii 1.0').encode() + b'end_header\n0 1\n0 a\n', 'no number'),
        (HEADER.format('binary_little_endian 1.0').encode() + b'end_header\n00', 'cut off'),
        (HEADER.format('utf 1.0').encode() + b'end_header\n', 'format utf'),
        (b'ply\nformat ascii 1.0\nelement vertex 1\nproperty list uchar int x\nend_header\n1 1\n',
         'property list'),
        (b'ply\nformat ascii 1.0\nelement face 1\nelement vertex 1\n', 'before the vertices'),
        (b'ply\nformat ascii 1.0\nend_header\n', 'must declare vertices'),
        (b'ply\nelement vertex -2\nend_header\n', 'must declare vertices'),
    ],
)  # fmt: skip
def test_a_malformed_file_is_named(tmp_path: Path, text: bytes, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(PlyError, match=message) as caught:
        read_ply(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, OsmabenchError)


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(PlyError, match='"label"'):
        write_ply(io.BytesIO(), {'x': np.zeros(3), 'label': np.zeros(2, np.int32)})
    with pytest.raises(PlyError, match='"label" is int64'):
        write_ply(io.BytesIO(), {'x': np.zeros(3), 'label': np.zeros(3, np.int64)})
