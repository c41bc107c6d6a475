"""Mesh files made to harm: one error that names the file, and nothing else is read."""

import numpy as np
import pytest
import trimesh

from osmabench_ros.base.fence import VARIABLE
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.scenes.assets import load_meshes, load_painted_meshes

pytest.importorskip('collada')


OUTSIDE = (
    '<?xml version="1.0"?><!DOCTYPE a [<!ENTITY x SYSTEM "file://{}">]><COLLADA>&x;</COLLADA>'
)
HOSTILE = {
    'an entity elsewhere': ('dae', OUTSIDE),
    'an index beyond': ('obj', 'v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 99999999\n'),
    'numbers of 400 digits': ('obj', f'v {"9" * 400} 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n'),
    'nothing': ('obj', b''),
}  # fmt: skip


@pytest.mark.parametrize(('suffix', 'content'), HOSTILE.values(), ids=HOSTILE)
def test_hostile_meshes_are_refused(tmp_path, monkeypatch, suffix, content):
    monkeypatch.setenv(VARIABLE, '0.5')
    (tmp_path / 'secret.txt').write_text('secret')
    path = tmp_path / f'bad.{suffix}'
    if isinstance(content, str):
        content = content.replace('{}', str(tmp_path / 'secret.txt')).encode()
    path.write_bytes(content)
    for read in (load_meshes, load_painted_meshes):
        try:
            found = read(path)
        except OsmabenchError as error:
            assert 'bad.' in str(error)  # noqa: PT017 - no triangles is an answer, too
            assert 'secret' not in str(error)  # noqa: PT017
        else:
            assert not found


@pytest.mark.parametrize('suffix', ['obj', 'ply'])
def test_damaged_meshes_load_or_are_refused(tmp_path, suffix):
    path = tmp_path / f'box.{suffix}'
    trimesh.creation.box((1, 2, 3)).export(path)
    sound, rng = path.read_bytes(), np.random.default_rng(1)
    outcomes = set()
    for _ in range(8):
        damaged = bytearray(sound)
        for place in rng.integers(0, len(sound), 8):
            damaged[place] = rng.integers(0, 256)
        path.write_bytes(damaged[: rng.integers(len(sound) // 2, 2 * len(sound))])
        try:
            load_meshes(path)
            outcomes.add('read')
        except OsmabenchError as error:
            assert 'box.' in str(error)  # noqa: PT017
            outcomes.add('refused')
    assert 'refused' in outcomes
