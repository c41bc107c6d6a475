import json
from pathlib import Path

import numpy as np
import pytest
from maps.importers.method_files import write_conceptgraphs
from maps.sample_maps import sample_map
from typer.testing import CliRunner

from osmabench_ros.cli.map import app
from osmabench_ros.errors import ConfigError
from osmabench_ros.maps.storage import read_map, write_map

RUNNER = CliRunner()


def test_a_sound_map_passes_the_check(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    result = RUNNER.invoke(app, ['check', str(tmp_path / 'map')])
    assert result.exit_code == 0
    assert 'sound' in result.output


def test_faults_are_listed_with_exit_code_1(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    (tmp_path / 'map' / 'cloud.ply').unlink()
    (tmp_path / 'map' / 'features' / '0.npy').unlink()
    result = RUNNER.invoke(app, ['check', str(tmp_path / 'map')])
    assert result.exit_code == 1
    assert result.output.count('does not exist') == 2


def test_a_map_is_imported_described_and_exported(tmp_path: Path) -> None:
    write_conceptgraphs(tmp_path / 'in')
    (tmp_path / 'pose.txt').write_text('1 0 0 5\n0 1 0 0\n0 0 1 0\n0 0 0 1\n')
    arguments = ['import', 'conceptgraphs', str(tmp_path / 'in'), '--out', str(tmp_path / 'map')]
    pose = ['--pose', str(tmp_path / 'pose.txt'), '--world', 'z_up', '--scene', 'apt_0']
    result = RUNNER.invoke(app, arguments + pose)
    assert result.exit_code == 0, result.output
    made = read_map(tmp_path / 'map')
    assert made.header.provenance.scene == 'apt_0'
    assert made.dense is not None
    assert made.dense.points[:, 0].min() > 5.5
    shown = RUNNER.invoke(app, ['info', str(tmp_path / 'map')])
    assert shown.exit_code == 0
    assert '5 (4 object, 1 background)' in shown.output
    assert 'ViT-H-14 laion2b_s32b_b79k, comparable with text' in shown.output
    out = tmp_path / 'openlex3d'
    exported = RUNNER.invoke(
        app, ['export', 'openlex3d', str(tmp_path / 'map'), '--out', str(out)]
    )
    assert exported.exit_code == 0
    assert sorted(path.name for path in out.iterdir()) == [
        'embeddings.npy', 'index.npy', 'point_cloud.pcd',
    ]  # fmt: skip


def test_a_map_is_labelled_by_text_features(tmp_path: Path) -> None:
    write_map(sample_map(), tmp_path / 'map')
    np.save(tmp_path / 'text.npy', np.random.default_rng(0).normal(size=(2, 5)))
    classes = {'classes': [{'id': 4, 'name': 'desk'}, {'id': 8, 'name': 'cup'}]}
    (tmp_path / 'classes.json').write_text(json.dumps(classes))
    result = RUNNER.invoke(
        app,
        [
            'label', str(tmp_path / 'map'), '--out', str(tmp_path / 'out'),
            '--text-features', str(tmp_path / 'text.npy'),
            '--label-set', str(tmp_path / 'classes.json'),
        ],
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    made = read_map(tmp_path / 'out')
    assert made.label_set is not None
    assert made.label_set.ids.tolist() == [4, 8]
    assert made.graph.by_id[4].class_id in (4, 8)


def test_methods_are_listed() -> None:
    assert 'conceptgraphs\n' in RUNNER.invoke(app, ['methods']).output


def test_an_unknown_method_is_a_config_error(tmp_path: Path) -> None:
    result = RUNNER.invoke(app, ['import', 'x', str(tmp_path), '--out', str(tmp_path / 'map')])
    assert isinstance(result.exception, ConfigError)


@pytest.mark.parametrize('text', ['1 2', 'x', '2 0 0 0\n0 1 0 0\n0 0 1 0\n0 0 0 1'])
def test_a_pose_that_is_no_rigid_matrix_is_a_config_error(tmp_path: Path, text: str) -> None:
    (tmp_path / 'pose.txt').write_text(text)
    result = RUNNER.invoke(
        app,
        ['import', 'x', '.', '--out', str(tmp_path / 'm'), '--pose', str(tmp_path / 'pose.txt')],
    )
    assert isinstance(result.exception, ConfigError)
    assert 'pose.txt' in str(result.exception)
