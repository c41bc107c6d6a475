import json
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import (
    CHAIR,
    CLIP,
    TABLE,
    write_ali_dev,
    write_conceptgraphs,
    write_pickle,
    z_up,
)
from support.published_data import SCENE_GRAPHS

from osmabench_ros.errors import MapError
from osmabench_ros.maps.importer import ImportOptions, World
from osmabench_ros.maps.importers.conceptgraphs import import_map
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind

DEFAULT = ImportOptions()
LABELS = LabelSet.from_names('small', ['chair', 'table', 'cup'])


def test_objects_come_out_z_up_with_features_labels_and_captions(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path)
    made = import_map(tmp_path, ImportOptions(label_set=LABELS, scene='apt_0'))
    assert [node.source_id for node in made.graph.nodes] == ['0', '1', '2', '3', 'background 0']
    chair, pruned, table, cup, wall = made.graph.nodes
    assert [label.name for label in chair.labels] == ['chair', 'seat']
    assert chair.labels[0].class_id == LABELS.id_of('chair')
    assert chair.captions == ('a wooden chair',)
    assert chair.observations == 5
    assert (cup.label, table.label) == ('cup', 'table')
    assert wall.kind is NodeKind.BACKGROUND
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points[:40], z_up(CHAIR), rtol=1e-6)
    assert (made.dense.colors == 128).all()
    assert made.dense.instances is not None
    assert np.bincount(made.dense.instances).tolist() == [0, 40, 40, 60, 40, 60]
    assert made.dense.labels is not None
    assert set(made.dense.labels[made.dense.instances == pruned.id]) == {UNLABELLED}
    space = made.feature_spaces['clip']
    assert (space.model, space.pretrained) == ('ViT-H-14', 'laion2b_s32b_b79k')
    assert space.templates == ('an image of {}',)
    assert space.normalised
    np.testing.assert_array_equal(space.vectors[chair.feature_row], CLIP[0])


def test_objects_that_the_graph_pruned_say_so_and_keep_the_detector_s_votes(
    tmp_path: Path,
) -> None:
    write_conceptgraphs(tmp_path)
    nodes = import_map(tmp_path, DEFAULT).graph.nodes
    flags = [node.attributes.get('in_scene_graph') for node in nodes]
    assert flags == [True, False, True, True, None]
    assert [(label.name, label.score) for label in nodes[1].labels] == [
        ('item', 0.5),
        ('wall', 0.5),
    ]


def test_relations_follow_the_pruned_numbering(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path)
    made = import_map(tmp_path, DEFAULT)
    names = {node.id: node.label for node in made.graph.nodes}
    found = [(names[e.source], e.type, names[e.target], e.text) for e in made.graph.edges]
    assert found == [
        ('cup', 'on', 'table', 'it stands on the table'),
        ('cup', 'in', 'chair', 'inside'),
    ]
    assert made.extras['relations_without_an_edge'] == {'none of these': 1, 'FAIL': 1}


def test_boxes_turn_with_the_points(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path)
    chair = import_map(tmp_path, DEFAULT).graph.nodes[0]
    placed = z_up(CHAIR)
    assert chair.box is not None
    assert chair.oriented_box is not None
    np.testing.assert_allclose(chair.box.minimum, placed.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(chair.oriented_box.axis_aligned().maximum, placed.max(axis=0))
    assert np.linalg.det(chair.oriented_box.pose.rotation) == pytest.approx(1)


def test_the_configuration_survives_as_extras(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path)
    made = import_map(tmp_path, DEFAULT)
    assert made.extras['cfg'] == {'voxel': 0.025}
    assert 'objects' not in made.extras
    assert made.extras['class_names'] == ['item', 'chair', 'table', 'wall']


def test_what_is_not_understood_survives_as_extras(tmp_path: Path) -> None:
    item = {'pcd_np': TABLE, 'affordance': 'sit', 'matrix': np.eye(2), 'bad': float('nan')}
    write_pickle(tmp_path / 'full_pcd_x.pkl.gz', {'objects': [{'pcd_np': CHAIR}, item]})
    kept = import_map(tmp_path, DEFAULT).extras['objects']
    expected = {'affordance': 'sit', 'matrix': [[1.0, 0.0], [0.0, 1.0]], 'bad': None}
    assert kept == {'1': expected}


def test_without_a_scene_graph_the_detector_names_objects(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path, graph=False)
    made = import_map(tmp_path, DEFAULT)
    assert made.graph.nodes[0].labels[0].name == 'chair'
    assert made.graph.nodes[0].labels[0].score == pytest.approx(0.8)
    assert made.graph.edges == ()
    assert 'in_scene_graph' not in made.graph.nodes[0].attributes


@pytest.mark.parametrize('edge_file', [True, False])
def test_ali_dev_relations_use_the_objects_own_numbers(tmp_path: Path, edge_file: bool) -> None:
    write_ali_dev(tmp_path, edge_file)
    made = import_map(tmp_path, DEFAULT)
    chair, table = made.graph.nodes
    assert (chair.source_id, table.source_id) == ('11', '4')
    assert chair.attributes['uuid'] == '00000000-0000-0000-0000-00000000000b'
    assert (chair.label, table.label) == ('chair', 'table')
    assert (chair.captions, table.captions) == (('a wooden chair',), ('a low table',))
    (edge,) = made.graph.edges
    assert (edge.source, edge.target) == (chair.id, table.id)
    assert edge.type == ('on' if edge_file else 'on top of')
    if edge_file:
        assert edge.text == 'chair on top of table (seen 3 times)'


def test_the_world_and_the_unit_can_be_told(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path)
    made = import_map(tmp_path, ImportOptions(world=World.Z_UP, metres_per_unit=0.5))
    assert made.dense is not None
    np.testing.assert_allclose(made.dense.points[:40], CHAIR / 2, rtol=1e-6)


def test_points_that_are_not_finite_are_dropped_and_counted(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path, graph=False)
    file = next((tmp_path / 'pcd_saves').iterdir())
    data = {'objects': [{'pcd_np': np.array([[0, 0, 0], [np.nan, 0, 0]]), 'clip_ft': CLIP[0]}]}
    write_pickle(file, data)
    made = import_map(tmp_path, DEFAULT)
    assert made.dense is not None
    assert len(made.dense.points) == 1
    assert made.extras['points_dropped_because_not_finite'] == 1


def test_a_real_node_list_is_read() -> None:
    path = SCENE_GRAPHS / 'conceptgraphs_nodes.json'
    made = import_map(path, DEFAULT)
    listed = json.loads(path.read_text())
    assert len(made.graph.nodes) == 64
    first = made.graph.nodes[0]
    assert (first.source_id, first.label) == (str(listed[0]['id']), listed[0]['object_tag'])
    assert first.captions == (listed[0]['caption'],)
    x, y, z = listed[0]['bbox_center']
    assert first.box is not None
    np.testing.assert_allclose(first.box.center, [x, -z, y])
    width, height, depth = listed[0]['bbox_extent']
    np.testing.assert_allclose(first.box.size, [width, depth, height])
    assert made.dense is None


def test_two_maps_in_a_folder_are_refused(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path, graph=False)
    file = next((tmp_path / 'pcd_saves').iterdir())
    (file.parent / 'full_pcd_other_post.pkl.gz').write_bytes(file.read_bytes())
    with pytest.raises(MapError, match='more than one ConceptGraphs map'):
        import_map(tmp_path, DEFAULT)


def test_a_graph_of_another_run_is_refused(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path)
    path = tmp_path / 'sg_cache' / 'scene_graph.json'
    listed = json.loads(path.read_text())
    listed[1]['id'] = 40
    path.write_text(json.dumps(listed))
    with pytest.raises(MapError, match='names object 40'):
        import_map(tmp_path, DEFAULT)


@pytest.mark.parametrize(
    ('data', 'message'),
    [
        ({'objects': [{'pcd_np': np.zeros((2, 4))}]}, r'\[0\]: "pcd_np" has shape \(2, 4\)'),
        ({'objects': [{}]}, r'objects\[0\] has no numbers "pcd_np"'),
        ({'objects': [3]}, r'objects\[0\] is no dictionary'),
        ({'things': []}, 'no list "objects"'),
        ({'objects': [{'pcd_np': TABLE, 'clip_ft': CLIP[0]}, {'pcd_np': TABLE,
                       'clip_ft': CLIP[0][:5]}]}, 'different lengths'),
        ({'objects': [{'pcd_np': TABLE, 'clip_ft': CLIP[0] * np.nan}]}, 'NaN or infinite'),
    ],
)  # fmt: skip
def test_malformed_pickles_are_named(tmp_path: Path, data: object, message: str) -> None:
    write_pickle(tmp_path / 'full_pcd_x.pkl.gz', data)
    with pytest.raises(MapError, match=message):
        import_map(tmp_path, DEFAULT)
