"""Array files are read as NumPy reads them, and refused if they claim more than they hold."""

import zipfile

import numpy as np
import pytest

from osmabench_ros.base.reading import read_npy, read_npz
from osmabench_ros.errors import LimitError, MapError

ARRAYS = [
    np.arange(12, dtype=np.float32).reshape(3, 4),
    np.asfortranarray(np.arange(12).reshape(3, 4)),
    np.arange(5, dtype='>i2'),
    np.array(3.5),
    np.zeros((0, 3)),
    np.array([True, False]),
    np.array(['chair', 'table']),
    np.array([(1, 2.5)], dtype=[('id', 'i4'), ('area', 'f8')]),
]


def npy(shape, descr="'<f4'", data=b'', version=1):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    length = len(header).to_bytes(2 if version == 1 else 4, 'little')
    return b'\x93NUMPY' + bytes([version, 0]) + length + header + data


HOSTILE = {
    'claims more than it holds': npy('(600000000, 3)'),
    'negative': npy('(-1, -4)', data=bytes(16)),
    'empty and too large': npy(f'(0, {10**30})'),
    'of nothing': npy(f'({10**12},)', "'|V0'"),
    'objects': npy('(1,)', "'|O'", bytes(8)),
    'objects in a field': npy('(1,)', "[('a', '|O')]", bytes(8)),
    'type unknown': npy('(1,)', "'9evil'", bytes(4)),
    'header nested': npy('(' * 3000),
    'empty file': b'',
    'pickle': b'\x80\x04.',
}


@pytest.mark.parametrize('array', ARRAYS, ids=str)
def test_reads_what_numpy_writes(tmp_path, array):
    np.save(tmp_path / 'a.npy', array)
    np.savez(tmp_path / 'a.npz', a=array)
    np.savez_compressed(tmp_path / 'b.npz', a=array, b=array)

    for read in (
        read_npy(tmp_path / 'a.npy', MapError),
        read_npz(tmp_path / 'a.npz', MapError)['a'],
        read_npz(tmp_path / 'b.npz', MapError, ['b', 'missing'])['b'],
    ):
        assert read.dtype == array.dtype.newbyteorder('=')
        assert read.shape == array.shape
        assert read.tolist() == array.tolist()
        assert read.flags.writeable


@pytest.mark.parametrize('name', HOSTILE)
def test_a_hostile_array_is_one_error(tmp_path, name):
    path = tmp_path / 'a.npy'
    path.write_bytes(HOSTILE[name])
    with pytest.raises(MapError, match=r'a\.npy') as caught:
        read_npy(path, MapError)
    assert '\n' not in str(caught.value)
    assert len(str(caught.value)) < 1000

    with zipfile.ZipFile(tmp_path / 'a.npz', 'w') as archive:
        archive.writestr('a.npy', HOSTILE[name])
    with pytest.raises((MapError, LimitError), match=r'a\.npz'):
        read_npz(tmp_path / 'a.npz', MapError)


def test_a_directory_that_lies_gives_no_more_than_it_says(tmp_path):
    path = tmp_path / 'a.npz'
    np.savez_compressed(path, a=np.zeros(10**6, np.uint8))
    size = (10**6 + 128).to_bytes(4, 'little')
    assert path.read_bytes().count(size) in (2, 3)  # Python 3.11.2 writes it in ZIP64's field too
    path.write_bytes(path.read_bytes().replace(size, (1000).to_bytes(4, 'little')))
    with pytest.raises(MapError, match=r'a\.npz'):
        read_npz(path, MapError)


@pytest.mark.parametrize('data', [b'', b'PK', npy('(1,)', data=bytes(4))], ids=len)
def test_a_file_that_is_not_an_archive_is_refused(tmp_path, data):
    (tmp_path / 'a.npz').write_bytes(data)
    with pytest.raises(MapError, match=r'a\.npz'):
        read_npz(tmp_path / 'a.npz', MapError)
