import io

import numpy as np
import pytest

from osmabench_ros.errors import OsmabenchError, PointFileError
from osmabench_ros.geometry.point_files import read_ply, read_ply_elements, write_ply

KINDS = {
    'char': 'i1', 'uchar': 'u1', 'short': 'i2', 'ushort': 'u2', 'int': 'i4', 'uint': 'u4',
    'float': 'f4', 'double': 'f8',
}  # fmt: skip
ROWS = np.array(
    [(0, 0, 0, *(np.iinfo(kind).min if kind[0] != 'f' else -0.5 for kind in KINDS.values())),
     (1, 0, 0, *(np.iinfo(kind).max if kind[0] != 'f' else 0.1 for kind in KINDS.values())),
     (0, 1, 0, *range(8))],
    [(axis, 'f4') for axis in 'xyz'] + [(f'a_{name}', kind) for name, kind in KINDS.items()],
)  # fmt: skip
FACES = [((0, 1, 2), 7), ((2, 1, 0), 65536)]


HEADER = (
    b'ply\nformat binary_little_endian 1.0\nelement vertex 2\nproperty double x\n'
    b'property uchar red\n'
)
END = b'end_header\n'


def third_party_file(form):
    """Return vertices with every scalar type and faces with an object_id, as in Replica."""
    properties = ''.join(f'property {name} a_{name}\n' for name in KINDS)
    header = (
        f'ply\nformat {form} 1.0\ncomment by hand\nelement vertex 3\n'
        f'property float x\nproperty float y\nproperty float z\n{properties}'
        'element face 2\nproperty list uchar int vertex_indices\nproperty int object_id\n'
        'end_header\n'
    ).encode()
    if form == 'ascii':
        lines = [' '.join(str(value) for value in row.tolist()) for row in ROWS]
        lines += [f'3 {a} {b} {c} {owner}' for (a, b, c), owner in FACES]
        return header + '\n'.join(lines).encode() + b'\n'
    order = '<' if 'little' in form else '>'
    kind = [('n', 'u1'), ('corners', f'{order}i4', (3,)), ('owner', f'{order}i4')]
    faces = np.array([(3, *face) for face in FACES], kind)
    return header + ROWS.astype(ROWS.dtype.newbyteorder(order)).tobytes() + faces.tobytes()


FORMS = ('ascii', 'binary_little_endian', 'binary_big_endian')


@pytest.mark.parametrize('form', FORMS)
def test_third_party_files_keep_every_type_and_face_properties(tmp_path, write_file, form):
    elements = read_ply_elements(write_file('cloud.ply', third_party_file(form)))
    assert list(elements) == ['vertex', 'face']
    for name in ROWS.dtype.names or ():
        column = elements['vertex'][name]
        assert column.dtype == ROWS.dtype[name]
        np.testing.assert_array_equal(column, ROWS[name])
    assert elements['face']['vertex_indices'].tolist() == [[0, 1, 2], [2, 1, 0]]
    assert elements['face']['object_id'].tolist() == [7, 65536]
    assert list(read_ply(tmp_path / 'cloud.ply')) == list(ROWS.dtype.names or ())


@pytest.mark.parametrize('form', FORMS)
def test_a_truncated_third_party_file_is_an_error(write_file, form):
    whole = third_party_file(form)
    body = whole.index(b'end_header') + len(b'end_header\n')
    # A digit less of the last number of a text is not noticed by any reader.
    for end in (0, 10, body - 15, body, body + 5, (body + len(whole)) // 2, len(whole) - 8):
        with pytest.raises(PointFileError, match=r'cloud\.ply cannot be read as PLY'):
            read_ply_elements(write_file('cloud.ply', whole[:end]))


def test_a_third_party_file_without_numbers_or_sizes_is_an_error(tmp_path, write_file):
    whole = third_party_file('ascii')
    for old, new in ((b'65536', b'many'), (b'vertex 3', b'vertex 999999999999'), (b'uint', b'u')):
        with pytest.raises(PointFileError, match='cannot be read as PLY'):
            read_ply_elements(write_file('cloud.ply', whole.replace(old, new)))
    with pytest.raises(PointFileError, match='does not exist'):
        read_ply_elements(tmp_path / 'none.ply')


@pytest.mark.parametrize('kind', ['i1', 'u1', 'i2', 'u2', 'i4', 'u4', 'f4', 'f8'])
def test_every_type_survives(write_file, kind):
    columns = {'x': np.array([0, 1, 2], kind), 'label': np.array([5, 6, 7], np.int32)}
    stream = io.BytesIO()
    write_ply(stream, columns)
    again = read_ply(write_file('cloud.ply', stream.getvalue()))
    assert {name: column.dtype for name, column in again.items()} == {
        name: column.dtype for name, column in columns.items()
    }
    for name, column in columns.items():
        np.testing.assert_array_equal(again[name], column)


@pytest.mark.parametrize(
    ('text', 'message'),
    [
        (b'', 'cannot be read as PLY'),
        (HEADER, 'cannot be read as PLY'),
        (HEADER + END + b'00', 'cut off: 2 vertices need 18 bytes, 2 are there'),
        (HEADER.replace(b'vertex 2', b'vertex ' + b'9' * 30) + END, 'cut off'),
        (HEADER + b'property list uchar int x\n' + END, 'cannot be read as PLY'),
        (HEADER.replace(b'vertex 2', b'vertex two') + END, 'two'),
        (HEADER[: HEADER.index(b'element')] + END, 'has no vertices'),
    ],
)  # fmt: skip
def test_a_malformed_file_is_named(write_file, text, message):
    path = write_file('cloud.ply', text)
    with pytest.raises(PointFileError, match=message) as caught:
        read_ply(path)
    assert str(path) in str(caught.value)
    assert isinstance(caught.value, OsmabenchError)
