import pickle
import sys
import types
import uuid
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP, TABLE

from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.dualmap import import_map


def write(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write two objects as DualMap's save_to_disk does: pickles of its class GlobalObject."""
    module = types.ModuleType('utils.object')
    kind = type('GlobalObject', (), {'__module__': 'utils.object'})
    module.GlobalObject = kind  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, 'utils', types.ModuleType('utils'))
    monkeypatch.setitem(sys.modules, 'utils.object', module)
    folder.mkdir(parents=True)
    for number, points in ((2, CHAIR), (5, TABLE)):
        item: Any = kind()
        item.__dict__ |= {
            'uid': uuid.UUID(int=number),
            'pcd_points': points.tolist(),
            'pcd_colors': np.full(points.shape, 0.25).tolist(),
            'clip_ft': CLIP[number % 3, :512].tolist(),
            'class_id': number,
            'nav_goal': number == 5,
        }
        with (folder / f'{item.uid}.pkl').open('wb') as stream:
            pickle.dump(item, stream)


def test_objects_come_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / 'in', monkeypatch)
    (tmp_path / 'in' / 'class_names.txt').write_text('wall\nfloor\nchair\nbed\nsofa\ntable\n')
    write_map(import_map(tmp_path / 'in', ImportOptions()), tmp_path / 'map')
    made = read_map(tmp_path / 'map')
    chair, table = made.graph.nodes
    assert chair.source_id == str(uuid.UUID(int=2))
    assert (chair.label, table.label) == ('chair', 'table')
    assert 'navigation_goal' not in chair.attributes
    assert table.attributes['navigation_goal'] is True
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points[: len(CHAIR)], CHAIR, rtol=1e-6)
    assert made.dense.colors is not None
    assert (made.dense.colors == 64).all()
    np.testing.assert_allclose(made.feature_spaces['clip'].vectors, CLIP[[2, 2], :512])


def test_without_names_the_class_ids_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / 'in', monkeypatch)
    nodes = import_map(tmp_path / 'in', ImportOptions()).graph.nodes
    assert [node.labels for node in nodes] == [(), ()]
    assert [node.attributes['source_class_id'] for node in nodes] == [2.0, 5.0]
