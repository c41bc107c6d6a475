"""Maps of methods that map objects: ConceptGraphs, BBQ, DualMap, HOV-SG."""

import json
import uuid

import numpy as np
import pytest
from maps.importers.method_files import (
    CHAIR,
    CLIP,
    TABLE,
    write_ali_dev,
    write_bbq,
    write_conceptgraphs,
    write_dualmap,
    write_hovsg_flat,
    write_hovsg_graph,
    write_pickle,
    z_up,
)
from support.libraries import needs
from support.published_data import SCENE_GRAPHS

from osmabench_ros.maps.importer import ImportOptions, World, import_map
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import NodeKind

LABELS = LabelSet.from_names('small', ['chair', 'table', 'cup'])


def test_objects_come_out_z_up_with_features_labels_and_captions(tmp_path):
    write_conceptgraphs(tmp_path)
    made = import_map('conceptgraphs', tmp_path, ImportOptions(label_set=LABELS, scene='apt_0'))
    chair, pruned, table, cup, wall = made.graph.nodes
    assert [node.source_id for node in made.graph.nodes] == ['0', '1', '2', '3', 'background 0']
    assert [label.name for label in chair.labels] == ['chair', 'seat']
    assert chair.labels[0].class_id == LABELS.id_of('chair')
    assert (chair.captions, chair.observations) == (('a wooden chair',), 5)
    assert (cup.label, table.label, wall.kind) == ('cup', 'table', NodeKind.BACKGROUND)
    np.testing.assert_allclose(made.dense.points[:40], z_up(CHAIR), rtol=1e-6)
    assert (made.dense.colors == 128).all()
    assert np.bincount(made.dense.instances).tolist() == [0, 40, 40, 60, 40, 60]
    assert set(made.dense.labels[made.dense.instances == pruned.id]) == {UNLABELLED}
    space = made.feature_spaces['clip']
    assert (space.model, space.pretrained) == ('ViT-H-14', 'laion2b_s32b_b79k')
    assert (space.templates, space.normalised) == (('an image of {}',), True)
    np.testing.assert_array_equal(space.vectors[chair.feature_row], CLIP[0])
    # Boxes turn with the points.
    placed = z_up(CHAIR)
    np.testing.assert_allclose(chair.box.minimum, placed.min(axis=0), rtol=1e-6)
    np.testing.assert_allclose(chair.oriented_box.axis_aligned().maximum, placed.max(axis=0))
    assert np.linalg.det(chair.oriented_box.pose.rotation) == pytest.approx(1)
    # Objects left out of the scene graph say so, and keep the votes of the detector.
    flags = [node.attributes.get('in_scene_graph') for node in made.graph.nodes]
    assert flags == [True, False, True, True, None]
    votes = [(label.name, label.score) for label in pruned.labels]
    assert votes == [('item', 0.5), ('wall', 0.5)]
    # Relations follow the numbering of the scene graph.
    names = {node.id: node.label for node in made.graph.nodes}
    found = [(names[e.source], e.type, names[e.target], e.text) for e in made.graph.edges]
    assert found == [
        ('cup', 'on', 'table', 'it stands on the table'), ('cup', 'in', 'chair', 'inside')
    ]  # fmt: skip
    assert made.extras == {
        'relations_without_an_edge': {'none of these': 1, 'FAIL': 1},
        'cfg': {'voxel': 0.025},
        'class_names': ['item', 'chair', 'table', 'wall'],
    }


def test_data_that_is_not_understood_survives_and_points_that_are_not_finite_do_not(tmp_path):
    points = np.array([[0, 0, 0], [np.nan, 0, 0]])
    item = {'pcd_np': TABLE, 'affordance': 'sit', 'matrix': np.eye(2), 'bad': float('nan')}
    write_pickle(tmp_path / 'full_pcd_x.pkl.gz', {'objects': [{'pcd_np': points}, item]})
    made = import_map('conceptgraphs', tmp_path)
    kept = {'affordance': 'sit', 'matrix': [[1.0, 0.0], [0.0, 1.0]], 'bad': None}
    assert made.extras == {'objects': {'1': kept}, 'points_dropped_because_not_finite': 1}
    assert len(made.dense.points) == 61


def test_world_and_unit_may_be_given_and_the_detector_names_objects_without_a_graph(tmp_path):
    write_conceptgraphs(tmp_path, graph=False)
    options = ImportOptions(world=World.Z_UP, metres_per_unit=0.5)
    made = import_map('conceptgraphs', tmp_path, options)
    np.testing.assert_allclose(made.dense.points[:40], CHAIR / 2, rtol=1e-6)
    best = made.graph.nodes[0].labels[0]
    assert (best.name, best.score, made.graph.edges) == ('chair', pytest.approx(0.8), ())
    assert 'in_scene_graph' not in made.graph.nodes[0].attributes


@pytest.mark.parametrize('edge_file', [True, False])
def test_ali_dev_relations_use_the_objects_own_numbers(tmp_path, edge_file):
    write_ali_dev(tmp_path, edge_file)
    made = import_map('conceptgraphs', tmp_path)
    chair, table = made.graph.nodes
    assert [(n.source_id, n.label) for n in made.graph.nodes] == [('11', 'chair'), ('4', 'table')]
    assert chair.attributes['uuid'] == '00000000-0000-0000-0000-00000000000b'
    assert (chair.captions, table.captions) == (('a wooden chair',), ('a low table',))
    (edge,) = made.graph.edges
    text = 'chair on top of table (seen 3 times)' if edge_file else ''
    kind = 'on' if edge_file else 'on top of'
    assert (edge.source, edge.target, edge.type, edge.text) == (chair.id, table.id, kind, text)


def test_a_published_node_list_is_read():
    path = SCENE_GRAPHS / 'conceptgraphs_nodes.json'
    made = import_map('conceptgraphs', path)
    first, listed = made.graph.nodes[0], json.loads(path.read_text())[0]
    assert (len(made.graph.nodes), made.dense) == (64, None)
    assert (first.source_id, first.label) == (str(listed['id']), listed['object_tag'])
    assert first.captions == (listed['caption'],)
    (x, y, z), (width, height, depth) = listed['bbox_center'], listed['bbox_extent']
    np.testing.assert_allclose(first.box.center, [x, -z, y])
    np.testing.assert_allclose(first.box.size, [width, depth, height])


@pytest.mark.parametrize('name', ['', 'baseline_apt_0.pkl.gz'])
def test_a_bbq_map_has_captions_and_descriptors_that_text_cannot_query(tmp_path, name):
    write_bbq(tmp_path)
    made = import_map('bbq', tmp_path / name)
    chair, table = made.graph.nodes
    assert (chair.captions, table.captions) == (('a wooden chair',), ('a low table',))
    assert (chair.observations, table.observations, chair.labels) == (2, 3, ())
    (space,) = made.feature_spaces.values()
    assert (space.name, space.text_comparable) == ('dino', False)
    np.testing.assert_array_equal(space.vectors, CLIP[:2, :384])
    np.testing.assert_allclose(made.dense.points[: len(CHAIR)], z_up(CHAIR), rtol=1e-6)
    assert made.dense.colors is None
    assert made.extras['objects']['0'] == {'color_image_idx': 3}


@needs('torch')
def test_clip_features_that_osma_bench_adds_come_first(tmp_path):
    write_bbq(tmp_path, features=True, nodes=False)
    made = import_map('bbq', tmp_path)
    space = made.feature_spaces['clip']
    assert (space.model, space.vectors.shape) == ('EVA02-B-16', (2, 512))
    assert [(n.feature_space, n.captions) for n in made.graph.nodes] == [('clip', ())] * 2
    assert (made.dense.feature_space, sorted(made.feature_spaces)) == ('clip', ['clip', 'dino'])


NAMES = ['wall', 'floor', 'chair', 'bed', 'sofa', 'table']


@pytest.mark.parametrize(
    ('file', 'text', 'labels'),
    [
        ('class_names.txt', '\n'.join(NAMES), ['chair', 'table']),
        ('class_names.json', json.dumps(NAMES), ['chair', 'table']),
        ('class_names.json', '{"5": "table"}', ['', 'table']),
        ('other.txt', '', ['', '']),
    ],
)
def test_dualmap_objects_come_out(tmp_path, file, text, labels):
    write_dualmap(tmp_path)
    (tmp_path / file).write_text(text)
    made = import_map('dualmap', tmp_path)
    chair, table = made.graph.nodes
    assert chair.source_id == str(uuid.UUID(int=2))
    assert [chair.label, table.label] == labels
    assert chair.attributes == {'source_class_id': 2.0}
    assert table.attributes == {'source_class_id': 5.0, 'navigation_goal': True}
    np.testing.assert_allclose(made.dense.points[: len(CHAIR)], CHAIR, rtol=1e-6)
    assert (made.dense.colors == 64).all()
    np.testing.assert_allclose(made.feature_spaces['clip'].vectors, CLIP[[2, 2], :512])


@pytest.mark.parametrize('inside', ['', 'graph'])
def test_a_hovsg_graph_gives_floors_rooms_and_objects(tmp_path, inside):
    write_hovsg_graph(tmp_path)
    made = import_map('hovsg', tmp_path / inside)
    floor, room, chair, table = made.graph.nodes
    kinds = [NodeKind.FLOOR, NodeKind.ROOM, NodeKind.OBJECT, NodeKind.OBJECT]
    assert [node.kind for node in made.graph.nodes] == kinds
    assert (room.label, chair.label, table.label) == ('kitchen', 'chair', 'table')
    assert (room.parent, chair.parent, table.parent) == (floor.id, room.id, room.id)
    edges = {(edge.source, edge.type, edge.target) for edge in made.graph.edges}
    parents = ((room, floor), (chair, room), (table, room))
    assert edges == {(item.id, 'part of', above.id) for item, above in parents}
    assert room.attributes['room_height_m'] == 2.5
    assert made.extras['nodes']['room 0_0']['represent_images'] == [4, 9]
    assert (chair.feature_row, table.feature_row) == (0, None)
    np.testing.assert_allclose(made.feature_spaces['clip'].vectors, CLIP[:1], rtol=1e-6)
    # Only objects have points; rooms have bounds.
    np.testing.assert_allclose(made.dense.points[: len(CHAIR)], z_up(CHAIR), rtol=1e-6)
    assert np.unique(made.dense.instances).tolist() == [3, 4]
    lowest = z_up(np.concatenate([CHAIR, TABLE])).min(axis=0)
    np.testing.assert_allclose(room.box.minimum, lowest, rtol=1e-6)


@needs('torch')
def test_hovsg_segments_without_a_graph_are_read(tmp_path):
    write_hovsg_flat(tmp_path)
    made = import_map('hovsg', tmp_path)
    assert [node.source_id for node in made.graph.nodes] == ['0', '1']
    np.testing.assert_array_equal(made.feature_spaces['clip'].vectors, CLIP[:2])
    np.testing.assert_allclose(made.dense.points[len(CHAIR) :], z_up(TABLE), rtol=1e-6)
