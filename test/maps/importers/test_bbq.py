import json
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import CHAIR, CLIP, write_bbq, z_up

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import read_map, write_map
from osmabench_ros.maps.importer import ImportOptions
from osmabench_ros.maps.importers.bbq import import_map

DEFAULT = ImportOptions()


def test_a_raw_map_has_captions_and_descriptors_that_text_cannot_query(tmp_path: Path) -> None:
    write_bbq(tmp_path / 'bbq')
    made = import_map(tmp_path / 'bbq', DEFAULT)
    chair, table = made.graph.nodes
    assert (chair.captions, table.captions) == (('a wooden chair',), ('a low table',))
    assert (chair.observations, table.observations) == (2, 3)
    assert chair.labels == ()
    assert list(made.feature_spaces) == ['dino']
    assert not made.feature_spaces['dino'].text_comparable
    np.testing.assert_array_equal(made.feature_spaces['dino'].vectors, CLIP[:2, :384])
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points[: len(CHAIR)], z_up(CHAIR), rtol=1e-6)
    assert made.dense.colors is None
    assert made.extras['objects']['0'] == {'color_image_idx': 3}
    write_map(made, tmp_path / 'map')
    assert len(read_map(tmp_path / 'map').graph.nodes) == 2


def test_features_of_osma_bench_come_first(tmp_path: Path) -> None:
    pytest.importorskip('torch')
    write_bbq(tmp_path, features=True)
    made = import_map(tmp_path, DEFAULT)
    assert sorted(made.feature_spaces) == ['clip', 'dino']
    space = made.feature_spaces['clip']
    assert (space.model, space.vectors.shape) == ('EVA02-B-16', (2, 512))
    assert space.text_comparable
    assert [node.feature_space for node in made.graph.nodes] == ['clip', 'clip']
    assert made.dense is not None
    assert made.dense.feature_space == 'clip'


def test_a_map_without_captions_is_read(tmp_path: Path) -> None:
    write_bbq(tmp_path, nodes=False)
    assert [node.captions for node in import_map(tmp_path, DEFAULT).graph.nodes] == [(), ()]


def test_the_file_itself_can_be_given(tmp_path: Path) -> None:
    write_bbq(tmp_path)
    made = import_map(tmp_path / 'baseline_apt_0.pkl.gz', DEFAULT)
    assert made.graph.nodes[0].captions


def test_nodes_of_another_run_are_refused(tmp_path: Path) -> None:
    write_bbq(tmp_path)
    path = tmp_path / 'baseline_apt_0.json'
    path.write_text(json.dumps([{'id': 5, 'description': 'a lamp'}]))
    with pytest.raises(MapError, match='has id 5, but the map has 2 objects'):
        import_map(tmp_path, DEFAULT)
