"""Maps and sources of maps that are sound in form and absurd in content, or no files at all."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, write_cloud
from support.world.maps import sample_map

from osmabench_ros.errors import MapError, OsmabenchError
from osmabench_ros.maps.disk import document
from osmabench_ros.maps.disk.storage import faults_of_directory, write_map
from osmabench_ros.maps.importer import import_map, importer_names
from osmabench_ros.maps.importers import assembly


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_map(sample_map(), tmp_path / 'map')
    return tmp_path / 'map'


def changed(directory: Path, **parts: Any) -> Path:
    path = directory / 'map.json'
    path.write_text(json.dumps({**json.loads(path.read_text()), **parts}))
    return directory


def node(number: int, **parts: Any) -> dict[str, Any]:
    return {'id': number, **parts}


def test_many_faults_of_form_are_not_all_listed(directory: Path) -> None:
    changed(directory, nodes=[{}] * (document.MAX_FORM_FAULTS + 1))
    (fault,) = faults_of_directory(directory)
    assert str(fault) == 'map.json: has more than 1000 faults; is it a map?'


@pytest.mark.parametrize(
    ('parts', 'words'),
    [
        ({'nodes': [node(1, captions=[1] * 2000)]}, 'captions: List should have at most 1000'),
        ({'nodes': [node(1, observations=2**40)]}, 'observations'),
    ],
)
def test_absurd_counts_are_named(directory: Path, parts: dict[str, Any], words: str) -> None:
    faults = faults_of_directory(changed(directory, **parts))
    assert any(words in str(fault) for fault in faults)


def test_ancestors_are_found_in_long_chains_and_circles(directory: Path) -> None:
    chain = [node(i, parent=i + 1) for i in range(1, 20000)]
    circle = [node(20000, parent=20001), node(20001, parent=20002), node(20002, parent=20001)]
    faults = faults_of_directory(changed(directory, nodes=[*chain, *circle], edges=[]))
    own = [str(fault) for fault in faults if 'own ancestor' in str(fault)]
    assert len(own) == 2
    assert 'node 20001 is its own' in own[0]
    assert 'node 20002 is its own' in own[1]


@pytest.mark.parametrize('method', importer_names())
@pytest.mark.parametrize('path', ['a\0b', '/dev/zero', 'loop', '.'])
def test_a_path_that_holds_no_map_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str, path: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'loop').symlink_to('loop')
    with pytest.raises(OsmabenchError) as caught:
        import_map(method, Path(path))
    assert path[:100] in str(caught.value) or '\\x00' in str(caught.value)
    assert len(str(caught.value)) < 1500


def test_more_objects_than_a_map_may_have_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assembly, 'MAX_NODES', 30)
    instances = np.arange(1, len(CHAIR) + 1, dtype=np.int32)
    write_cloud(tmp_path / 'cloud.ply', CHAIR, instance=instances)
    with pytest.raises(MapError, match='40 objects; a map has at most 30'):
        import_map('pointcloud', tmp_path / 'cloud.ply')
