import builtins
import collections
import contextlib
import gzip
import io
import os
import pathlib
import pickle
import sys
import types
import typing
import uuid
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import LimitError, MapError, UnsafePickleError
from osmabench_ros.maps.untrusted.pickle_machine import PickleMachine
from osmabench_ros.maps.untrusted.pickle_names import Inert
from osmabench_ros.maps.untrusted.unpickling import load_pickle, names_of_torch


class Calls:
    """Pickles as a call of any function with any arguments."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def written(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / 'map.pkl'
    path.write_bytes(data)
    return path


def loads(data: bytes) -> Any:
    meter = Meter('the test', len(data))
    return PickleMachine(io.BytesIO(data), names_of_torch(meter), meter).load()


PLAIN = {
    'numbers': [0, -1, 255, 65536, 2**31, -(2**40), 2**100, 1.5, float('inf'), True, None],
    'texts': ['', 'a', 'naïve \U0001f600', 'x' * 300, b'', b'bytes', b'y' * 70000],
    'nested': [{'a': (1, 2, 3, 4)}, (), ((),), {1: {2: []}}],
    'other': [collections.OrderedDict(a=1), uuid.UUID(int=77)],
}


@pytest.mark.parametrize('protocol', range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_plain_data_comes_out_as_python_would_load_it(protocol: int) -> None:
    assert loads(pickle.dumps(PLAIN, protocol)) == PLAIN


@pytest.mark.parametrize('protocol', [0, 1])
@pytest.mark.parametrize('key', ['numbers', 'nested'])
def test_the_text_protocols_are_read_too(protocol: int, key: str) -> None:
    assert loads(pickle.dumps(PLAIN[key], protocol)) == PLAIN[key]


def test_sets_and_byte_arrays_come_out() -> None:
    data = [{1, 2}, frozenset({3}), bytearray(b'z')]
    assert loads(pickle.dumps(data, 5)) == data


@pytest.mark.parametrize('protocol', range(5))
@pytest.mark.parametrize(
    'array',
    [
        np.arange(6, dtype=np.float64).reshape(2, 3),
        np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
        np.arange(4, dtype='>f4'),
        np.array([True, False]),
        np.zeros((0, 3), np.float32),
        np.array(['ab', 'c']),
        np.array(5, np.uint8),
        np.arange(100000, dtype=np.float32),
    ],
    ids=str,
)
def test_arrays_come_out_as_they_were(protocol: int, array: np.ndarray) -> None:
    loaded = loads(pickle.dumps([array, array], protocol))
    assert loaded[0] is loaded[1]
    np.testing.assert_array_equal(loaded[0], array)
    assert loaded[0].dtype == array.dtype.newbyteorder('=')


def test_scalars_of_numpy_become_python_numbers() -> None:
    values = [np.float32(0.5), np.int64(-3), np.bool_(True), np.str_('cup')]
    loaded = loads(pickle.dumps(values, 4))
    assert loaded == [0.5, -3, True, 'cup']
    assert [type(value) for value in loaded] == [float, int, bool, str]


def test_shared_values_stay_so() -> None:
    shared: list[Any] = [1]
    loaded = loads(pickle.dumps({'a': shared, 'b': shared}))
    assert loaded['a'] is loaded['b']


def test_a_value_that_contains_itself_is_refused() -> None:
    endless: list[Any] = [1]
    endless.append({'a': endless})
    with pytest.raises(MapError, match='contains itself'):
        loads(pickle.dumps(endless))


def test_a_default_dict_keeps_no_factory() -> None:
    loaded = loads(pickle.dumps(collections.defaultdict(list, a=[1])))
    assert type(loaded) is dict
    assert loaded == {'a': [1]}


def test_foreign_objects_become_inert_but_keep_their_state(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = types.ModuleType('omegaconf.dictconfig')
    config = type('DictConfig', (), {'__module__': 'omegaconf.dictconfig'})
    module.DictConfig = config  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, 'omegaconf', types.ModuleType('omegaconf'))
    monkeypatch.setitem(sys.modules, 'omegaconf.dictconfig', module)
    value = config()
    value.__dict__ |= {'_content': {'voxel': 0.02}, 'kind': typing.Any}
    loaded = loads(pickle.dumps({'cfg': value, 'path': pathlib.PurePosixPath('/a/b')}))
    assert isinstance(loaded['cfg'], Inert)
    assert str(loaded['cfg'].name) == 'omegaconf.dictconfig.DictConfig'
    assert loaded['cfg'].state['_content'] == {'voxel': 0.02}
    assert str(loaded['cfg'].state['kind']) == 'typing.Any'
    assert 'PurePosixPath' in loaded['path'].name.name


def test_arrays_can_be_dropped_while_reading(tmp_path: Path) -> None:
    data = {'mask': [np.ones((50, 60), bool)] * 2, 'points': np.ones((4, 3))}
    path = written(tmp_path, pickle.dumps(data))
    loaded = load_pickle(path, drop=lambda dtype, shape: dtype.kind == 'b' and len(shape) == 2)
    assert loaded['mask'] == [None, None]
    assert loaded['points'].shape == (4, 3)


@pytest.mark.parametrize('protocol', range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize(
    ('function', 'name'),
    [(os.system, 'system'), (builtins.eval, 'eval'), (builtins.exec, 'exec'), (os.popen, 'popen')],
)
def test_a_malicious_pickle_runs_nothing_and_is_named(
    tmp_path: Path, protocol: int, function: Callable[..., Any], name: str
) -> None:
    marker = tmp_path / 'ran'
    python = f'open({str(marker)!r}, "w").close()'
    argument = python if name in ('eval', 'exec') else f'touch {marker}'
    data = pickle.dumps({'objects': [Calls(function, argument)]}, protocol)
    with pytest.raises(UnsafePickleError, match=name) as caught:
        load_pickle(written(tmp_path, data))
    assert 'map.pkl' in str(caught.value)
    assert not marker.exists()


def test_the_malicious_pickles_would_run_in_the_plain_unpickler(tmp_path: Path) -> None:
    marker = tmp_path / 'ran'
    pickle.loads(pickle.dumps(Calls(os.system, f'touch {marker}')))
    assert marker.exists()


@pytest.mark.parametrize(
    'data',
    [
        b'cos\nsystem\n(S"true"\ntR.',
        b'(cos\nsystem\nS"true"\no.',
        b'(S"true"\nios\nsystem\n.',
        b'\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.',
        b'\x80\x02cnumpy.testing._private.utils\nrunstring\n.',
        b'\x80\x02cbuiltins\ngetattr\n.',
        b'\x80\x02c__builtin__\neval\n.',
        b'\x80\x02comegaconf_evil\nX\n.',
        b'\x80\x02cpathlib\nos.system\n.',
        b'\x80\x02ctyping\nre\n.',
        b'\x80\x02\x82\x01.',
        b'\x80\x02Pab\n.',
        b'\x80\x02]}b.',
        b'\x80\x02]]\x81.',
        b'\x80\x02cnumpy\ndtype\n}b.',
        b'\x80\x02cbuiltins\ndict\n}K\x01K\x02sb.',
    ],
)
def test_every_way_to_a_forbidden_name_is_refused(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UnsafePickleError):
        load_pickle(written(tmp_path, data))


def test_an_array_of_objects_cannot_be_made_from_raw_pointers() -> None:
    array = pickle.dumps(np.zeros(2), 2)
    forged = array.replace(b'X\x02\x00\x00\x00f8', b'X\x02\x00\x00\x00O8')
    assert forged != array
    with pytest.raises(UnsafePickleError, match='objects'):
        loads(forged)


def test_structured_arrays_are_refused() -> None:
    with pytest.raises(UnsafePickleError, match='only numbers'):
        loads(pickle.dumps(np.zeros(2, [('a', 'f4')]), 4))


@pytest.mark.parametrize('cut', [1, 5, 100, 1000, -1, -2])
@pytest.mark.parametrize('packed', [False, True])
def test_a_cut_off_file_is_an_error(tmp_path: Path, cut: int, packed: bool) -> None:
    data = pickle.dumps({'points': np.random.default_rng(0).normal(size=(200, 3))})
    data = gzip.compress(data, mtime=0) if packed else data
    with pytest.raises(MapError, match=r'map\.pkl'):
        load_pickle(written(tmp_path, data[:cut]))


def test_a_gzip_bomb_stops_at_the_cap(tmp_path: Path) -> None:
    content = pickle.dumps(bytes(1 << 24))
    path = written(tmp_path, gzip.compress(content))
    assert path.stat().st_size < 1 << 16
    with (
        limited_to(Allowance(memory_mib=1)),
        pytest.raises(LimitError, match=r'map\.pkl: unpacks to more than 1 MiB.*memory_mib'),
    ):
        load_pickle(path)
    assert load_pickle(path) == bytes(1 << 24)


def test_a_claim_of_more_bytes_than_there_are_allocates_nothing(tmp_path: Path) -> None:
    huge = b'\x80\x04\x8e' + (1 << 50).to_bytes(8, 'little') + b'abc'
    with pytest.raises(LimitError, match='more than 512 MiB'):
        load_pickle(written(tmp_path, huge))


@pytest.mark.parametrize('depth', [66, 100_000])
def test_deep_nesting_is_refused_without_recursion(tmp_path: Path, depth: int) -> None:
    data = b'\x80\x04' + b']' * depth + b'a' * (depth - 1) + b'.'
    with pytest.raises(LimitError, match='deeper than 64 levels'):
        load_pickle(written(tmp_path, data))


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(MapError, match=r'none\.pkl does not exist'):
        load_pickle(tmp_path / 'none.pkl')


SEEDS = [
    pickle.dumps(PLAIN, 4),
    pickle.dumps({'a': np.arange(9.0), 'b': np.float32(1)}, 2),
    pickle.dumps([Calls(os.getcwd), {'x': (1, 'y')}], 4),
]


@settings(
    max_examples=400, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
)
@given(st.data())
def test_no_bytes_do_anything_but_load_or_raise_a_map_error(data: st.DataObject) -> None:
    seed = bytearray(data.draw(st.sampled_from(SEEDS)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(seed) - 1))
        seed[at : at + data.draw(st.integers(0, 3))] = data.draw(st.binary(max_size=4))
        if not seed:
            break
    with contextlib.suppress(MapError, LimitError):
        loads(bytes(seed))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.binary(max_size=200))
def test_no_random_bytes_do_anything_but_load_or_raise_a_map_error(data: bytes) -> None:
    with contextlib.suppress(MapError, LimitError):
        loads(data)


def test_a_broken_gzip_stream_is_an_error(tmp_path: Path) -> None:
    data = bytearray(gzip.compress(pickle.dumps(list(range(5000)))))
    data[200] ^= 0xFF
    with pytest.raises(MapError):
        load_pickle(written(tmp_path, bytes(data)))
    assert zlib.crc32(data)
