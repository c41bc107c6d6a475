"""Pickles and torch files: saved data come out, nothing is run, and bombs are one error."""

import builtins
import collections
import gzip
import io
import os
import pathlib
import pickle
import typing
import uuid
import zipfile

import numpy as np
import pytest
from maps.importers.method_files import other_class

from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import LimitError, MapError, UnsafePickleError
from osmabench_ros.maps.pickles import CLASS, load_pickle, load_torch, read_pickle

torch = pytest.importorskip('torch')


class Calls:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


@pytest.fixture
def path(tmp_path):
    return tmp_path / 'map.pkl'


def loads(path, data):
    """Read a pickle in this process; `load_pickle` does so in the fence."""
    path.write_bytes(data)
    return read_pickle(path, drop_masks=False)


PLAIN = {
    'numbers': [0, -1, 255, 65536, 2**31, -(2**40), 1.5, float('inf'), True, None],
    'texts': ['', 'a', 'naïve \U0001f600', 'x' * 300, b'', b'bytes', b'y' * 70000],
    'nested': [{'a': (1, 2, 3, 4)}, (), ((),), {1: {2: []}}],
    'other': [collections.OrderedDict(a=1), collections.defaultdict(list, a=[1]), {1, 2}],
    'id': uuid.UUID(int=77),
}


@pytest.mark.parametrize('packed', [False, True])
@pytest.mark.parametrize('protocol', range(4, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_comes_out_as_it_was(path, protocol, packed):
    data = pickle.dumps(PLAIN, protocol)
    path.write_bytes(gzip.compress(data) if packed else data)
    found = load_pickle(path)
    assert found == PLAIN
    assert [type(item) for item in found['other']] == [dict, dict, set]


@pytest.mark.parametrize('protocol', range(5))
def test_arrays_and_scalars_come_out_as_they_were(path, protocol):
    arrays = [
        np.arange(6, dtype=np.float64).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        np.arange(4, dtype='>f4'),
        np.array([True, False]),
        np.zeros((0, 3), np.float32),
        np.array(['ab', 'c']),
        np.array([{'a': 1}, None], object),
        np.array(5, np.uint8),
        np.arange(100000, dtype=np.float32),
    ]
    found = loads(path, pickle.dumps([*arrays, arrays[2]], protocol))
    for loaded, array in zip(found, [*arrays, arrays[2]], strict=True):
        np.testing.assert_array_equal(loaded, array)
        assert loaded.dtype == array.dtype.newbyteorder('=')
    scalars = [np.float32(0.5), np.int64(-3), np.bool_(True), np.str_('cup')]
    assert loads(path, pickle.dumps(scalars, protocol)) == [0.5, -3, True, 'cup']


def test_objects_of_other_packages_come_as_their_state(path):
    value = other_class('omegaconf.dictconfig', 'DictConfig')()
    state = {'_content': {'voxel': 0.02}, 'kind': typing.Any}
    value.__dict__ |= {**state, '_parent': [value]}
    path.write_bytes(pickle.dumps({'cfg': value, 'path': pathlib.PurePosixPath('/a/b')}))
    shown = state | {CLASS: 'omegaconf.dictconfig.DictConfig', 'kind': 'typing.Any'}
    assert load_pickle(path) == {'cfg': shown, 'path': '/a/b'}


def test_masks_are_dropped_without_their_memory(path, monkeypatch):
    masks = [np.zeros((4000, 5000), bool) for _ in range(15)]
    path.write_bytes(gzip.compress(pickle.dumps({'mask': masks, 'points': np.ones((4, 3))}), 1))
    assert path.stat().st_size < 2**23
    monkeypatch.setenv(VARIABLE, '0.2')
    found = load_pickle(path, drop_masks=True)
    assert found['mask'] == [None] * 15
    assert found['points'].shape == (4, 3)
    with pytest.raises(LimitError, match=f'map.pkl .*{VARIABLE}'):
        load_pickle(path)


TENSORS = {
    **{
        kind: torch.arange(12).reshape(3, 4).to(getattr(torch, kind))
        for kind in ('float16', 'float32', 'float64', 'uint8', 'int8', 'int16', 'int32', 'int64',
                     'bool', 'bfloat16')
    },
    'transposed': torch.arange(24.0).reshape(4, 6).T,
    'strided': torch.arange(24.0).reshape(4, 6)[1:3, ::2],
    'scalar': torch.tensor(2.5),
    'empty': torch.zeros(0, 7),
    'parameter': torch.nn.Parameter(torch.ones(2)),
}  # fmt: skip


@pytest.mark.parametrize('form', ['zip', 'legacy', 'pickle'])
def test_tensors_come_out_as_arrays(path, form):
    value = {**TENSORS, 'nested': [collections.OrderedDict(a=torch.ones(1)), ('text', 3)]}
    if form == 'pickle':
        path.write_bytes(pickle.dumps(value))
        assert b'_load_from_bytes' in path.read_bytes()
    else:
        torch.save(value, path, _use_new_zipfile_serialization=form == 'zip')
    found = load_pickle(path) if form == 'pickle' else load_torch(path)
    for name, tensor in TENSORS.items():
        expected = tensor.detach().float() if name == 'bfloat16' else tensor.detach()
        np.testing.assert_array_equal(found[name], expected.numpy())
        assert found[name].dtype == expected.numpy().dtype
    assert found['nested'] == [{'a': np.ones(1)}, ('text', 3)]


@pytest.mark.parametrize('module', ['numpy.core', 'numpy._core'])
@pytest.mark.parametrize('zip_form', [True, False])
def test_arrays_that_torch_saved_come_out(path, zip_form, module):
    masks = (np.random.default_rng(0).random((500, 7)) > 0.5).astype(np.float16)
    torch.save((masks, np.float64(2)), path, _use_new_zipfile_serialization=zip_form)
    if not zip_form:
        data = path.read_bytes().replace(
            b'numpy._core.multiarray', f'{module}.multiarray'.encode()
        )
        path.write_bytes(data)
    found = load_torch(path)
    np.testing.assert_array_equal(found[0], masks)
    assert found[1] == 2


@pytest.mark.parametrize('form', ['zip', 'legacy', 'pickle', 'storage', 0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize('function', [os.system, builtins.eval])
def test_a_malicious_file_runs_nothing_and_is_named(path, form, function):
    marker = path.with_name('ran')
    python = f'open({str(marker)!r}, "w").close()'
    argument = python if function in (eval, exec) else f'touch {marker}'
    payload = {'x': [1.5], 'y': Calls(function, argument)}
    if isinstance(form, int):
        path.write_bytes(pickle.dumps(payload, form))
    elif form == 'storage':
        inner = io.BytesIO()
        torch.save(payload, inner, _use_new_zipfile_serialization=False)
        path.write_bytes(pickle.dumps(Calls(torch.storage._load_from_bytes, inner.getvalue())))
    elif form == 'pickle':
        path.write_bytes(gzip.compress(pickle.dumps(payload)))
    else:
        torch.save(payload, path, _use_new_zipfile_serialization=form == 'zip')
    with pytest.raises(MapError, match=rf'map\.pkl.*{function.__name__}'):
        load_torch(path) if form in ('zip', 'legacy') else load_pickle(path)
    assert not marker.exists()


FORBIDDEN = [
    b'cos\nsystem\n(S"true"\ntR.',
    b'(cos\nsystem\nS"true"\no.',
    b'(S"os.system"\nS"true"\no.',
    b'(S"true"\nios\nsystem\n.',
    b'S"os.system"\n(S"true"\ntR.',
    b'\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.',
    b'\x80\x02cnumpy.testing._private.utils\nrunstring\n.',
    b'\x80\x02cbuiltins\ngetattr\n.',
    b'\x80\x02c__builtin__\neval\n.',
    b'\x80\x02comegaconf_evil\nX\n.',
    b'\x80\x02cpathlib\nos.system\n.',
    b'\x80\x02ctyping\nre\n.',
    b'\x80\x02]}b.',
    b'\x80\x02]]\x81.',
    b'\x80\x02cnumpy\nndarray\n)R.',
    b'\x80\x02cnumpy\ndtype\n}b.',
    pickle.dumps(np.zeros(2, [('a', 'f4')]), 4),
]


@pytest.mark.parametrize('data', FORBIDDEN)
def test_every_way_to_a_forbidden_name_is_refused(path, data):
    with pytest.raises(UnsafePickleError, match='; nothing was run'):
        loads(path, data)


def test_an_array_of_objects_cannot_be_made_from_raw_pointers(path):
    array = pickle.dumps(np.zeros(2), 2)
    forged = array.replace(b'X\x02\x00\x00\x00f8', b'X\x02\x00\x00\x00O8')
    assert forged != array
    with pytest.raises(MapError, match='cut off or malformed'):
        loads(path, forged)


@pytest.mark.parametrize('zip_form', [True, False])
def test_a_tensor_beyond_its_storage_is_refused(path, zip_form):
    torch.save(torch.arange(8.0), path, _use_new_zipfile_serialization=zip_form)
    data = path.read_bytes()
    size, larger = b'K\x00K\x08\x85', b'K\x00K\xff\x85'
    if zip_form:
        target = io.BytesIO()
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, 'w') as archive:
            for info in source.infolist():
                archive.writestr(info.filename, source.read(info).replace(size, larger))
        path.write_bytes(target.getvalue())
    else:
        assert size in data
        path.write_bytes(data.replace(size, larger))
    with pytest.raises(MapError, match='beyond its storage'):
        load_torch(path)


@pytest.mark.parametrize('load', [load_pickle, load_torch])
@pytest.mark.parametrize('data', [None, b'', b'hello', b'PK\x03\x04', b'\x80\x02.', b'\x1f\x8b'])
def test_something_else_is_one_error(path, load, data):
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(MapError, match=r'map\.pkl'):
        load(path)
