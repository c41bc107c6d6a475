"""A bomb of each format is one error that names it, in under 20 s and 2 GiB, at default limits."""

import gzip
import json
import os
import resource
import sqlite3
import struct
import subprocess
import sys
import zipfile
import zlib
from contextlib import closing

import pytest
import zstandard
from PIL import Image
from rosbags.rosbag2 import StoragePlugin
from support.gltf_files import write_glb, write_gltf
from support.mcap_files import built, channel, chunk, message, schema, write_mcap
from support.sizes import few
from support.world.bags import write_bag

# 20 for the file, and some for the imports of a library on a slow machine.
MAX_PROCESSOR_S = 25
MAX_BYTES = 2 * 2**30
GIB = 2**30

RUN = """
import sys, warnings
from pathlib import Path
from osmabench_ros.errors import MapError, OsmabenchError
warnings.simplefilter('ignore')
path = Path(sys.argv[1])
try:
    {}
    print('it was read')
except OsmabenchError as error:
    print(type(error).__name__, error)
"""
JSON = 'from osmabench_ros.base.documents import read_json; read_json(path, MapError)'
YAML = 'from osmabench_ros.base.documents import read_yaml; read_yaml(path, MapError)'
XML = 'from osmabench_ros.base.documents import read_xml; read_xml(path, MapError)'
NPY = 'from osmabench_ros.base.reading import read_npy; read_npy(path, MapError)'
NPZ = 'from osmabench_ros.base.reading import read_npz; read_npz(path, MapError)'
PICKLE = 'from osmabench_ros.maps.pickles import load_pickle; load_pickle(path)'
TORCH = 'from osmabench_ros.maps.pickles import load_torch; load_torch(path)'
MAP = 'from osmabench_ros.maps.storage import unpack_map; unpack_map(path.read_bytes())'
IMAGE = 'from osmabench_ros.base.images import read_image; read_image(path, MapError)'
MESH = 'from osmabench_ros.scenes.assets import load_meshes; load_meshes(path)'
POINTS = "from osmabench_ros.maps.importer import import_map; import_map('pointcloud', path)"
BAG = (
    'from osmabench_ros.sequences.bags.bag import open_bag; bag = open_bag(path)\n'
    '    for item in bag.messages(): item.deserialise()\n'
    '    print("damage:", bag.cut_off)'
)


def writing(content):
    data = content.encode() if isinstance(content, str) else content
    return lambda path: path.write_bytes(data)


def zipping(name, start, size=GIB):
    """Return a maker of an archive with one member: `start`, and zeros up to a size."""

    def make(path):
        with (
            zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
            archive.open(name, 'w') as member,
        ):
            member.write(start)
            for _ in range(size // 2**24):
                member.write(bytes(2**24))

    return make


def zeros_in_gzip(path):
    with gzip.open(path, 'wb', 1) as stream:
        stream.write(START + b'\x8e' + GIB.to_bytes(8, 'little'))
        for _ in range(GIB // 2**24):
            stream.write(bytes(2**24))
        stream.write(b'.')


def npy_header(count):
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({count},)}}\n".encode()
    return b'\x93NUMPY\1\0' + len(text).to_bytes(2, 'little') + text


def torch_archive(path):
    """Write a tensor of few numbers with a storage of 1 GiB."""
    torch = pytest.importorskip('torch')
    small = path.with_suffix('.small')
    torch.save(torch.zeros(8), small)
    with zipfile.ZipFile(small) as source:
        members = {info.filename: source.read(info) for info in source.infolist()}
    (data,) = (name for name in members if name.endswith('/data/0'))
    zipping(data, members.pop(data))(path)
    with zipfile.ZipFile(path, 'a') as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def png(width, height):
    size = struct.pack('>II5B', width, height, 8, 2, 0, 0, 0)
    check = struct.pack('>I', zlib.crc32(b'IHDR' + size))
    head = b'\x89PNG\r\n\x1a\n' + struct.pack('>I', len(size)) + b'IHDR' + size + check
    return head + bytes(4) + b'IDAT'


def zeros_as_png(path):
    Image.new('L', (14_000, 14_000)).save(path, 'PNG', compress_level=1)


def changing_gltf(change):
    def make(path):
        write_gltf(path, '', images=[], textures=[], materials=[{}])
        document = json.loads(path.read_text())
        change(document)
        path.write_text(json.dumps(document))

    return make


def add_chain(document):
    nodes = [{'mesh': 0, 'children': [index + 1]} for index in range(20_000)]
    document['nodes'] = [*nodes, {'mesh': 0}]


def claim_zeros(document):
    document['accessors'].append({'componentType': 5126, 'type': 'VEC3', 'count': 600_000_000})


def point_ply(path):
    """Write a file of another byte order, which is read in the fence, with false numbers."""
    header = 'ply\nformat binary_big_endian 1.0\nelement vertex 9999999999\n'
    path.write_text(header + 'property float x\nproperty float y\nproperty float z\nend_header\n')


def computed_rows(folder):
    write_bag(folder, StoragePlugin.SQLITE3, count=1)
    with closing(sqlite3.connect(next(folder.glob('*.db3')))) as connection:
        connection.execute('DROP TABLE messages')
        connection.execute(
            'CREATE TABLE messages (id INTEGER PRIMARY KEY, topic_id, timestamp, '
            'data AS (zeroblob(1000000000)))'
        )
        connection.execute('INSERT INTO messages (topic_id, timestamp) VALUES (1, 1)')
        connection.commit()


def mcap(content, compression, *, summary, size=None):
    return lambda path: write_mcap(
        path, schema(), channel(), chunk(content(), compression, size), summary=summary
    )


LAUGHS = 'a0: &a0 [x, x]\n' + ''.join(
    f'a{level}: &a{level} [{", ".join([f"*a{level - 1}"] * 9)}]\n' for level in range(1, 10)
)
MERGES = (
    'a0: &a0 {' + ', '.join(f'k{index}: 1' for index in range(1000)) + '}\n'
    + ''.join(f'b{index}: {{<<: *a0}}\n' for index in range(2000))
)  # fmt: skip
ENTITIES = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x "xxxxxxxxxx">'
    + ''.join(f'<!ENTITY x{i} "{f"&x{i - 1 or str()};" * 10}">' for i in range(1, 10))
    + ']><COLLADA>&x9;</COLLADA>'
)
START = b'\x80\x04'
# Keys of one hash, each with None.
COLLIDING = b''.join(
    b'\x8a\x0a' + (i * (2**61 - 1)).to_bytes(10, 'little') + b'N' for i in range(1, 100_000)
)

BOMBS = {
    'json, deep': ('a.json', JSON, writing('{"a":' * 10**6), 'recursion limit'),
    'yaml, deep': ('a.yaml', YAML, writing('[' * 10**6), 'deeper than 64 levels'),
    'yaml, aliases': ('a.yaml', YAML, writing(LAUGHS), 'aliases'),
    'yaml, merges': ('a.yaml', YAML, writing(MERGES), 'aliases'),
    'xml, deep': ('a.xml', XML, writing(b'<a>' * 10**6), 'is not valid XML'),
    'xml, entities': ('a.xml', XML, writing(ENTITIES), 'entities'),
    'npy': ('a.npy', NPY, writing(npy_header(2**40)), 'greater than file size'),
    'npz': ('a.npz', NPZ, zipping('a.npy', npy_header(GIB)), 'MiB of memory'),
    'packed map': ('a.zip', MAP, zipping('features/9.npy', b''), 'unpacks to 1073741824 bytes'),
    'pickle, gzip': ('a.pkl', PICKLE, zeros_in_gzip, 'of memory'),
    'pickle, keys': ('a.pkl', PICKLE, writing(START + b'}(' + COLLIDING + b'u.'), 'LimitError'),
    'pickle, claim': (
        'a.pkl', PICKLE, writing(START + b'\x8e' + (1 << 50).to_bytes(8, 'little') + b'abc'),
        'a.pkl',
    ),
    'torch': ('a.pt', TORCH, torch_archive, 'a.pt'),
    'image, claim': ('a.png', IMAGE, writing(png(50_000, 50_000)), 'pixels'),
    'image, zeros': ('a.png', IMAGE, zeros_as_png, 'pixels'),
    'texture': ('a.glb', MESH, lambda path: write_glb(path, png(50_000, 50_000)), 'pixels'),
    'gltf, chain': ('a.gltf', MESH, changing_gltf(add_chain), 'more than 100 levels'),
    'gltf, zeros': ('a.gltf', MESH, changing_gltf(claim_zeros), 'MiB of memory'),
    'collada': ('a.dae', MESH, writing(ENTITIES), 'document type'),
    'ply': ('a.ply', POINTS, point_ply, 'a.ply'),
    'bag, packed': (
        'a.mcap.zstd', BAG,
        lambda path: path.write_bytes(zstandard.ZstdCompressor().compress(bytes(GIB))),
        'unpacks to far more than its size',
    ),
    'bag, sqlite': ('bag', BAG, computed_rows, '"messages" is not a plain table'),
    'bag, zstd': (
        'a.mcap', BAG, mcap(lambda: bytes(GIB), 'zstd', summary=False), 'chunk that claims',
    ),
    'bag, false size': (
        'a.mcap', BAG, mcap(lambda: bytes(GIB), 'lz4', summary=True, size=100), 'the 100 bytes',
    ),
    'bag, tiny messages': (
        'a.mcap', BAG,
        mcap(lambda: built(message(data=b'')) * 3_000_000, 'zstd', summary=True), 'of one time',
    ),
}  # fmt: skip

# More bombs of a format, for `make test-all`.
FURTHER = {
    'yaml, deep', 'yaml, merges', 'xml, deep', 'pickle, gzip', 'pickle, keys', 'image, zeros',
    'gltf, chain', 'bag, false size', 'bag, tiny messages',
}  # fmt: skip


@pytest.mark.parametrize('case', few(BOMBS, *(BOMBS.keys() - FURTHER)))
def test_a_bomb_is_one_error_within_20_seconds_and_2_gib(tmp_path, case):
    name, statement, make, words = BOMBS[case]
    make(tmp_path / name)
    output = tmp_path / 'output.txt'
    with output.open('w') as stream:
        child = subprocess.Popen(
            [sys.executable, '-c', RUN.format(statement), str(tmp_path / name)],
            stdout=stream, stderr=stream,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (60, 60)),
        )  # fmt: skip
        # Of the child, and of the processes that it started and waited for.
        _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    printed = output.read_text()
    assert child.returncode == 0, printed
    assert words in printed
    assert 'it was read' not in printed or case.startswith('bag')
    assert name in printed or 'the packed map' in printed
    assert usage.ru_utime + usage.ru_stime < MAX_PROCESSOR_S
    assert usage.ru_maxrss * 1024 < MAX_BYTES
