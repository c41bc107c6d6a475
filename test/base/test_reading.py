"""Whatever a path or an array file holds, reading ends at once: with it, or with one line."""

import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from osmabench_ros.base.reading import opened, read_bytes, read_npy, read_npz
from osmabench_ros.errors import LimitError, MapError, SceneError


def make_pipe(folder):
    os.mkfifo(folder / 'pipe')
    return folder / 'pipe'


def make_loop(folder):
    (folder / 'loop').symlink_to(folder / 'loop')
    return folder / 'loop'


PATHS = {
    'missing': (lambda folder: folder / 'missing', 'missing does not exist'),
    'folder': (lambda folder: folder, 'is a folder; give a readable file'),
    'pipe': (make_pipe, 'is not an ordinary file'),
    '/dev/zero': (lambda _: Path('/dev/zero'), 'is not an ordinary file'),
    'loop': (make_loop, 'loop cannot be read: Too many levels of symbolic links'),
    'NUL': (lambda folder: folder / 'a\0b', 'not a path: embedded null byte'),
    '5,000 characters': (lambda folder: folder / ('a/' * 2500), r'\.\.\.'),
    'surrogate': (lambda folder: f'{folder}/\ud800', 'not a path: .* surrogates not allowed'),
    'control characters': (lambda folder: folder / 'a\x1b[2J', r'a\\x1b\[2J does not exist'),
}


def file_in(folder):
    (folder / 'file').write_bytes(b'abc')
    return folder / 'file'


@pytest.mark.parametrize('name', PATHS)
def test_a_path_that_gives_no_file_is_one_line(tmp_path, name):
    made, expected = PATHS[name]
    with pytest.raises(SceneError, match=expected) as caught:
        read_bytes(made(tmp_path), SceneError)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 600


def test_a_file_within_the_limit_is_read_also_through_a_link(tmp_path):
    (tmp_path / 'link').symlink_to(file_in(tmp_path))
    assert read_bytes(tmp_path / 'link', SceneError) == b'abc'
    assert read_bytes(str(tmp_path / 'file'), SceneError, 3) == b'abc'
    with pytest.raises(LimitError, match=r'file has 3 bytes; .*OSMABENCH_LIMITS'):
        read_bytes(tmp_path / 'file', SceneError, 2)


def test_an_error_of_reading_in_the_block_is_one_line(tmp_path):
    refused = pytest.raises(SceneError, match='file cannot be read: Input/output error')
    with refused, opened(file_in(tmp_path), SceneError):
        raise OSError(5, 'Input/output error')


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
