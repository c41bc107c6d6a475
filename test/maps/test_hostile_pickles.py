"""Pickles that run nothing, yet would take all memory or time, by what they share or claim."""

import gzip
import io
import pickle
import tracemalloc
import uuid
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.maps.importer import import_map
from osmabench_ros.maps.importers.source_files import is_image_mask
from osmabench_ros.maps.untrusted.unpickling import load_pickle, load_torch

SMALL = Allowance(memory_mib=2, memory_ratio=8, seconds=20)
PEAK_BYTES = 32 << 20
START = b'\x80\x04'
NESTED = b')' + b'2\x86' * 60
"""A tuple that holds a tuple twice, and so on, 2^60 in all, of 121 bytes."""


def text(value: str) -> bytes:
    data = value.encode()
    return b'X' + len(data).to_bytes(4, 'little') + data


def name(module: str, attribute: str) -> bytes:
    return text(module) + text(attribute) + b'\x93'


def tensor(storage: bytes, offset: bytes, size: bytes, strides: bytes) -> bytes:
    arguments = b'(' + storage + offset + size + strides + b'\x89}t'
    return name('torch._utils', '_rebuild_tensor_v2') + arguments + b'R'


def storage(kind: bytes = name('torch', 'FloatStorage'), count: bytes = b'K\x08') -> bytes:
    return b'(' + text('storage') + kind + text('0') + text('cpu') + count + b'tQ'


def views(count: int) -> bytes:
    view = tensor(b'h\x00', b'K\x00', b'M\x00\x40\x85', b'K\x01\x85')
    return storage(count=b'M\x00\x40') + b'q\x000](' + view * count + b'e'


def array(shape: bytes, data: bytes) -> bytes:
    kind = name('numpy', 'dtype') + text('f8') + b'\x85R(K\x03' + text('<') + b'NNNtb'
    made = name('numpy.core.multiarray', '_reconstruct') + b')R'
    return made + b'(K\x01' + shape + kind + b'\x89' + data + b'tb'


def repeated(item: bytes, count: int = 1000) -> bytes:
    """Return a list that holds an item again and again."""
    return item + b'q\x000](' + b'h\x00' * count + b'e'


SIZE = b'K\x08\x85'
BLOCK = b'B' + (60000).to_bytes(4, 'little') + bytes(60000)
ENCODED = name('_codecs', 'encode') + text('x' * 60000) + text('latin1') + b'\x86'
PICKLES = {
    'shared_as_target': NESTED + b')R',
    'shared_as_target_with_keywords': NESTED + b')}' + b'\x92',
    'shared_as_class': b'(' + NESTED + b'o',
    'shared_as_name': NESTED + text('a') + b'\x93',
    'shared_as_reference': NESTED + b'Q',
    'shared_as_key': b'}' + NESTED + b'K\x01s',
    'shared_as_keys': b'}(' + (NESTED + b'N') * 3 + b'u',
    'shared_as_key_of_a_dict': b'(' + NESTED + b'Nd',
    'shared_in_a_short_key': b'}' + NESTED + b'\x85K\x01s',
    'shared_in_a_set': b'\x8f(' + NESTED + b'\x90',
    'shared_in_a_frozen_set': b'(' + NESTED + b'\x91',
    'shared_as_key_of_pairs': name('builtins', 'dict') + b'](' + NESTED + b'N\x86e\x85R',
    'shared_as_value': b'}' + text('cfg') + NESTED + b's',
    'shared_as_state': name('utils.object', 'LocalObject') + b')R' + NESTED + b'b',
    'shared_as_element_type': name('numpy', 'dtype') + NESTED + b'\x85R',
    'shared_as_encoding': name('_codecs', 'encode') + text('a') + NESTED + b'\x86R',
    'shared_as_shape': array(NESTED, BLOCK),
    'shared_lists': b']q\x00' + b'0](h\x00h\x00eq\x00' * 50,
    'array_used_often': repeated(array(b'M\x4c\x1d\x85', BLOCK)),
    'dict_of_an_array_used_often': repeated(
        b'}' + text('pcd') + array(b'M\x4c\x1d\x85', BLOCK) + b's'
    ),
    'bytes_used_often': repeated(BLOCK),
    'encoded_often': ENCODED[:-1] + b'\x86q\x00' + b'0]('
    + (name('_codecs', 'encode') + b'h\x00R') * 1000 + b'e',
    'listed_often': b'](' + b'K\x01' * 5000 + b'e\x85q\x00' + b'0]('
    + (name('builtins', 'list') + b'h\x00R') * 5000 + b'e',
    'array_of_endless_rows': array(b'J\xff\xff\xff\x7fK\x00\x86', b'C\x00'),
    'array_of_a_negative_size': array(b'J\xff\xff\xff\xffK\x00\x86', b'C\x00'),
    'number_of_many_digits': b'\x8b' + (1 << 20).to_bytes(4, 'little') + b'\x7f' * (1 << 20),
    'number_written_with_many_digits': b'I' + b'9' * 4000 + b'\n',
    'list_of_a_million': b'](' + b']' * 10**6 + b'e',
    'memo_of_a_million': b'N' + b''.join(b'r' + i.to_bytes(4, 'little') for i in range(300000)),
    'deep': b']' * 1000 + b'a' * 999,
    'claims_bytes': b'\x8e' + (1 << 60).to_bytes(8, 'little'),
    'claims_text': b'\x8d' + (1 << 60).to_bytes(8, 'little'),
}  # fmt: skip
COLLIDING = [i * (2**61 - 1) for i in range(1, 5000)]
OBJECTS = {
    'colliding_keys': lambda: dict.fromkeys(COLLIDING),
    'colliding_set': lambda: set(COLLIDING),
    'colliding_frozen_set': lambda: frozenset(COLLIDING),
    'colliding_keys_in_tuples': lambda: {(i, 'a'): 0 for i in COLLIDING},
    'colliding_uuids': lambda: {uuid.UUID(int=i): 0 for i in COLLIDING},
}
TENSORS = {
    'shared_as_kind_of_storage': storage(NESTED),
    'shared_as_count': storage(count=NESTED),
    'shared_as_storage': tensor(NESTED, b'K\x00', SIZE, b'K\x01\x85'),
    'shared_as_size': tensor(storage(), b'K\x00', NESTED, b'K\x01\x85'),
    'shared_as_strides': tensor(storage(), b'K\x00', SIZE, NESTED),
    'shared_as_offset': tensor(storage(), NESTED, SIZE, b'K\x01\x85'),
    'views_of_one_storage': views(10000),
    'negative_stride': tensor(storage(), b'K\x00', SIZE, b'J\xff\xff\xff\xff\x85'),
    'negative_offset': tensor(storage(), b'J\xff\xff\xff\xff', SIZE, b'K\x01\x85'),
    'negative_size': tensor(storage(), b'K\x00', b'J\xff\xff\xff\xff\x85', b'K\x01\x85'),
    'beyond': tensor(storage(), b'K\x01', SIZE, b'K\x01\x85'),
    'expanded': tensor(storage(), b'K\x00', b'J\xff\xff\xff\x7f\x85', b'K\x00\x85'),
    'endless_rows': tensor(storage(), b'K\x00', b'J\xff\xff\xff\x7fK\x00\x86', b'K\x00K\x00\x86'),
    'fewer_strides': tensor(storage(), b'K\x00', SIZE, b')'),
    'huge_offset': tensor(storage(), b'\x8a\x09' + b'\xff' * 8 + b'\x00', SIZE, b'K\x01\x85'),
}


def refused(load: Callable[[], Any], path: Path) -> None:
    """See that a file is refused with a short error that names it, without much memory."""
    tracemalloc.start()
    try:
        with limited_to(SMALL), pytest.raises(OsmabenchError) as caught:
            load()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert path.name in str(caught.value)
    assert len(str(caught.value)) < 1000
    assert peak < PEAK_BYTES + 8 * path.stat().st_size


@pytest.mark.parametrize('case', [*PICKLES, *OBJECTS])
def test_a_hostile_pickle_is_refused_within_its_limits(tmp_path: Path, case: str) -> None:
    path = tmp_path / 'map.pkl'
    hostile = START + PICKLES[case] + b'.' if case in PICKLES else pickle.dumps(OBJECTS[case]())
    path.write_bytes(hostile)
    refused(lambda: load_pickle(path), path)


def torch_file(path: Path, content: bytes) -> Path:
    with zipfile.ZipFile(path, 'w') as archive:
        archive.writestr('archive/data.pkl', START + content + b'.')
        archive.writestr('archive/data/0', bytes(4 * (0x4000 if b'M\x00\x40' in content else 8)))
    return path


def test_the_file_of_the_tensor_cases_is_read_where_it_is_right(tmp_path: Path) -> None:
    right = tensor(storage(), b'K\x00', SIZE, b'K\x01\x85')
    assert load_torch(torch_file(tmp_path / 'map.pt', right)).tolist() == [0.0] * 8
    assert len(load_torch(torch_file(tmp_path / 'few.pt', views(3)))) == 3


@pytest.mark.parametrize('case', TENSORS)
def test_a_hostile_tensor_is_refused_within_its_limits(tmp_path: Path, case: str) -> None:
    path = torch_file(tmp_path / 'map.pt', TENSORS[case])
    refused(lambda: load_torch(path), path)


def test_a_packed_bomb_is_refused(tmp_path: Path) -> None:
    for number, content in enumerate(
        (
            b'\x8e' + (1 << 27).to_bytes(8, 'little') + bytes(1 << 27),
            b'](' + b'N' * (1 << 23),
        )
    ):
        path = tmp_path / f'{number}.pkl.gz'
        path.write_bytes(gzip.compress(START + content + b'.', 1))
        refused(lambda path=path: load_pickle(path), path)


def test_masks_that_are_left_out_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / 'map.pkl.gz'
    masks = [np.zeros((1000, 1000), bool) for _ in range(20)]
    path.write_bytes(gzip.compress(pickle.dumps({'mask': masks, 'xyz': np.ones(3)}), 1))
    with limited_to(SMALL):
        data = load_pickle(path, drop=is_image_mask)
        assert data['mask'] == [None] * 20
    refused(lambda: load_pickle(path), path)


def test_what_is_left_out_cannot_be_given_back_twice(tmp_path: Path) -> None:
    path = tmp_path / 'map.pkl'
    kind = name('numpy', 'dtype') + text('b1') + b'\x85R(K\x03' + text('|') + b'NNNtb'
    block = b'B' + (70000).to_bytes(4, 'little') + bytes(70000)
    state = b'(K\x01J' + (70000).to_bytes(4, 'little') + b'K\x01\x86' + kind + b'\x89' + block
    for again in (b't2', b'tq\x00h\x00', b't\x85q\x000h\x00'):
        made = name('numpy.core.multiarray', '_reconstruct') + b')R'
        path.write_bytes(START + made + state + again + b'b.')
        with pytest.raises(OsmabenchError, match=r'twice|malformed'):
            load_pickle(path, drop=is_image_mask)


def test_shared_parts_in_what_an_importer_keeps_are_refused(tmp_path: Path) -> None:
    points = pickle.dumps([{'pcd_np': np.zeros((4, 3)), 'bbox_np': np.zeros((8, 3))}], 4)[2:-1]
    content = b'}(' + text('objects') + points + text('cfg') + NESTED + b'u'
    path = tmp_path / 'pcd_map.pkl.gz'
    path.write_bytes(gzip.compress(START + content + b'.'))
    refused(lambda: import_map('conceptgraphs', path), path)


ENTRIES = {
    'twice': [('a/data.pkl', b'N.'), ('a/x', b''), ('a/x', b'')],
    'climbs': [('a/data.pkl', b'N.'), ('a/../../x', b'')],
    'absolute': [('a/data.pkl', b'N.'), ('/tmp/x', b'')],
    'two_pickles': [('a/data.pkl', b'N.'), ('b/data.pkl', b'N.')],
}


@pytest.mark.filterwarnings('ignore:Duplicate name')
@pytest.mark.parametrize('case', ENTRIES)
def test_an_archive_with_hostile_names_is_refused(tmp_path: Path, case: str) -> None:
    path = tmp_path / 'map.pt'
    with zipfile.ZipFile(path, 'w') as archive:
        for entry, data in ENTRIES[case]:
            archive.writestr(entry, data)
    refused(lambda: load_torch(path), path)


@pytest.mark.parametrize(('field', 'size'), [(20, 4), (24, 4)])
def test_an_archive_that_lies_about_sizes_is_refused(
    tmp_path: Path, field: int, size: int
) -> None:
    path = torch_file(tmp_path / 'map.pt', b'N')
    data = bytearray(path.read_bytes())
    entry = data.rindex(b'PK\x01\x02')  # of data/0 in the directory at the end
    data[entry + field : entry + field + size] = (1 << 30).to_bytes(size, 'little')
    path.write_bytes(data)
    refused(lambda: load_torch(path), path)


def test_many_entries_of_the_same_bytes_are_refused(tmp_path: Path) -> None:
    content = io.BytesIO()
    count, size = 200, 1 << 20
    with zipfile.ZipFile(content, 'w') as archive:
        archive.writestr('a/data.pkl', START + b'](' + b''.join(
            tensor(
                storage(count=b'J' + (size // 4).to_bytes(4, 'little')).replace(
                    text('0'), text(f'{i:04d}')
                ),
                b'K\x00', SIZE, b'K\x01\x85',
            )
            for i in range(count)
        ) + b'e.')  # fmt: skip
        archive.writestr('a/data/0000', bytes(size))
        first = archive.infolist()[-1]
        for i in range(1, count):
            again = zipfile.ZipInfo(f'a/data/{i:04d}')
            for key in ('header_offset', 'CRC', 'compress_size', 'file_size'):
                setattr(again, key, getattr(first, key))
            archive.filelist.append(again)
            archive.NameToInfo[again.filename] = again
    path = tmp_path / 'map.pt'
    path.write_bytes(content.getvalue())
    refused(lambda: load_torch(path), path)
