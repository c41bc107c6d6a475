import itertools
from dataclasses import replace

import pytest
from support.world.maps import labelled_map

from osmabench_ros.maps.storage import SnapshotFolder, list_snapshots


def at(stamp_ns):
    source = labelled_map()
    return replace(source, header=replace(source.header, stamp_ns=stamp_ns), dense=None)


@pytest.mark.parametrize('count', [1, 4, 5, 9, 40])
def test_what_is_kept_is_bounded_and_evenly_spaced(count, tmp_path):
    folder = SnapshotFolder(tmp_path / 'snapshots', limit=4)
    for second in range(count):
        folder.keep(at(second))
    stamps = [int(path.name) for path in list_snapshots(folder.directory)]
    assert len(stamps) == len(folder) <= 4
    assert stamps[0] == 0
    gaps = {later - earlier for earlier, later in itertools.pairwise(stamps)}
    assert len(gaps) <= 1
    assert count - stamps[-1] <= max(gaps, default=1)


def test_the_order_of_names_is_that_of_time(tmp_path):
    folder = SnapshotFolder(tmp_path, limit=10)
    for stamp_ns in (9, 10**18, 10, 999):
        assert folder.keep(at(stamp_ns))
    stamps = [int(path.name) for path in list_snapshots(tmp_path)]
    assert stamps == [9, 10, 999, 10**18]


def test_a_map_of_the_same_time_is_kept_once(tmp_path):
    folder = SnapshotFolder(tmp_path, limit=10)
    assert [folder.keep(at(5)) for _ in range(2)] == [True, False]


def test_a_run_without_snapshots_has_none(tmp_path):
    assert list_snapshots(tmp_path / 'map_snapshots') == []
