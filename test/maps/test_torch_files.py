import collections
import contextlib
import io
import os
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from maps.test_unpickling import Calls

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.errors import LimitError, MapError, UnsafePickleError
from osmabench_ros.maps.untrusted.unpickling import load_pickle, load_torch

torch = pytest.importorskip('torch')

KINDS = [
    'float16', 'float32', 'float64', 'uint8', 'int8', 'int16', 'int32', 'int64', 'bool',
]  # fmt: skip


def saved(path: Path, value: Any, zip_form: bool) -> Path:
    torch.save(value, path, _use_new_zipfile_serialization=zip_form)
    return path


@pytest.mark.parametrize('zip_form', [True, False])
@pytest.mark.parametrize('kind', KINDS)
def test_tensors_of_every_type_come_out(tmp_path: Path, kind: str, zip_form: bool) -> None:
    tensor = torch.arange(12).reshape(3, 4).to(getattr(torch, kind))
    loaded = load_torch(saved(tmp_path / 'a.pt', {'x': tensor}, zip_form))
    np.testing.assert_array_equal(loaded['x'], tensor.numpy())
    assert loaded['x'].dtype == np.dtype(kind)


@pytest.mark.parametrize('zip_form', [True, False])
def test_views_shapes_and_shared_storages_come_out(tmp_path: Path, zip_form: bool) -> None:
    base = torch.arange(24.0)
    value = {
        'transposed': base.reshape(4, 6).T,
        'slice': base[5:9],
        'strided': base.reshape(4, 6)[1:3, ::2],
        'scalar': torch.tensor(2.5),
        'empty': torch.zeros(0, 7),
        'parameter': torch.nn.Parameter(torch.ones(2)),
        'nested': [collections.OrderedDict(a=torch.ones(1)), (torch.zeros(2), 'text', 3)],
    }
    loaded = load_torch(saved(tmp_path / 'a.pt', value, zip_form))
    for key in ('transposed', 'slice', 'strided', 'scalar', 'empty'):
        np.testing.assert_array_equal(loaded[key], value[key].numpy())
    np.testing.assert_array_equal(loaded['parameter'], [1.0, 1.0])
    assert loaded['nested'][1][1:] == ('text', 3)


@pytest.mark.parametrize('zip_form', [True, False])
def test_bfloat16_comes_as_float32(tmp_path: Path, zip_form: bool) -> None:
    tensor = torch.tensor([1.0, -2.5, 3e38, 1e-30], dtype=torch.bfloat16)
    loaded = load_torch(saved(tmp_path / 'a.pt', tensor, zip_form))
    np.testing.assert_array_equal(loaded, tensor.float().numpy())


@pytest.mark.parametrize('zip_form', [True, False])
def test_numpy_arrays_that_torch_saved_come_out(tmp_path: Path, zip_form: bool) -> None:
    masks = (np.random.default_rng(0).random((500, 7)) > 0.5).astype(np.float16)
    np.testing.assert_array_equal(load_torch(saved(tmp_path / 'm.pt', masks, zip_form)), masks)


def test_a_tensor_in_a_plain_pickle_is_parsed_not_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'object.pkl'
    path.write_bytes(pickle.dumps({'clip_ft': torch.arange(5.0)}))
    assert b'_load_from_bytes' in path.read_bytes()

    def forbidden(*_: Any, **__: Any) -> None:
        raise AssertionError('torch.load was called')

    monkeypatch.setattr(torch, 'load', forbidden)
    monkeypatch.setattr(torch.storage, '_load_from_bytes', forbidden)
    np.testing.assert_array_equal(load_pickle(path)['clip_ft'], np.arange(5.0))


def test_a_nested_storage_with_a_call_inside_is_refused(tmp_path: Path) -> None:
    marker = tmp_path / 'ran'
    inner = io.BytesIO()
    torch.save(Calls(os.system, f'touch {marker}'), inner, _use_new_zipfile_serialization=False)
    outer = pickle.dumps(Calls(torch.storage._load_from_bytes, inner.getvalue()))
    path = tmp_path / 'object.pkl'
    path.write_bytes(outer)
    with pytest.raises(UnsafePickleError, match='system'):
        load_pickle(path)
    assert not marker.exists()


@pytest.mark.parametrize('zip_form', [True, False])
@pytest.mark.parametrize('function', [os.system, eval])
def test_a_malicious_file_runs_nothing_and_is_named(
    tmp_path: Path, zip_form: bool, function: Callable[..., Any]
) -> None:
    marker = tmp_path / 'ran'
    value = {'x': torch.ones(2), 'y': Calls(function, f'touch {marker}')}
    with pytest.raises(UnsafePickleError, match=function.__name__) as caught:
        load_torch(saved(tmp_path / 'a.pt', value, zip_form))
    assert 'a.pt' in str(caught.value)
    assert not marker.exists()


@pytest.mark.parametrize('zip_form', [True, False])
@pytest.mark.parametrize('part', [0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_cut_off_file_is_an_error(tmp_path: Path, zip_form: bool, part: float) -> None:
    path = saved(tmp_path / 'a.pt', {'x': torch.arange(1000.0)}, zip_form)
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * part)])
    with pytest.raises(MapError, match=r'a\.pt'):
        load_torch(path)


def test_a_compressed_archive_is_refused_as_a_bomb(tmp_path: Path) -> None:
    path = tmp_path / 'bomb.pt'
    with zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED) as archive:
        archive.writestr('bomb/data.pkl', pickle.dumps(None))
        archive.writestr('bomb/data/0', bytes(1 << 24))
    assert path.stat().st_size < 1 << 16
    with pytest.raises(MapError, match='compressed'):
        load_torch(path)


@pytest.mark.parametrize('zip_form', [True, False])
def test_tensors_beyond_the_allowance_are_refused(tmp_path: Path, zip_form: bool) -> None:
    path = saved(tmp_path / 'a.pt', torch.zeros(100000), zip_form)
    with (
        limited_to(Allowance(memory_mib=0.1, memory_ratio=0.1)),
        pytest.raises(LimitError, match=r'a\.pt'),
    ):
        load_torch(path)


@pytest.mark.parametrize('zip_form', [True, False])
def test_a_tensor_that_reaches_beyond_its_storage_is_refused(
    tmp_path: Path, zip_form: bool
) -> None:
    path = saved(tmp_path / 'a.pt', torch.arange(10.0)[2:6], zip_form)
    data = path.read_bytes()
    size = b'QK\x02K\x04\x85'
    assert data.count(size) == 1
    patched = data.replace(size, b'QK\x02K\xff\x85')
    if zip_form:
        target = io.BytesIO()
        with zipfile.ZipFile(path) as source, zipfile.ZipFile(target, 'w') as archive:
            for info in source.infolist():
                archive.writestr(
                    info.filename, source.read(info).replace(size, b'QK\x02K\xff\x85')
                )
        patched = target.getvalue()
    path.write_bytes(patched)
    with pytest.raises(MapError, match='beyond its storage'):
        load_torch(path)


@pytest.mark.parametrize(
    'data', [b'', b'hello', b'PK\x03\x04', pickle.dumps({'a': 1}), pickle.dumps(5), b'\x80\x02.']
)
def test_a_file_of_something_else_is_an_error(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / 'a.pt'
    path.write_bytes(data)
    with pytest.raises(MapError, match=r'a\.pt'):
        load_torch(path)


@pytest.mark.parametrize('zip_form', [True, False])
def test_damaged_files_load_or_raise_a_map_error(tmp_path: Path, zip_form: bool) -> None:
    path = saved(tmp_path / 'a.pt', {'x': torch.arange(50.0), 'y': [1, 'b']}, zip_form)
    whole = path.read_bytes()
    random = np.random.default_rng(0)
    for _ in range(300):
        data = bytearray(whole)
        for at in random.integers(0, len(data), 3):
            data[at] = random.integers(0, 256)
        path.write_bytes(data)
        with contextlib.suppress(MapError, LimitError):
            load_torch(path)
