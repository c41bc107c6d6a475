"""What `osmabench doctor` finds on machines that lack something."""

import os
import re
import sys
from importlib import metadata
from pathlib import Path

import pytest
from typer.testing import CliRunner

from osmabench_ros.base import configuration
from osmabench_ros.bringup import preflight
from osmabench_ros.bringup.preflight import (
    DATA_SETS,
    Finding,
    Severity,
    data_folders,
    find_data_set,
)
from osmabench_ros.cli.main import app

REPLICA_CAD, AUGMENTED, HM3D = DATA_SETS
pytestmark = pytest.mark.usefixtures('small')


@pytest.fixture
def small(monkeypatch, tmp_path):
    """Start neither renderer nor Habitat-Sim; return the data folder of the machine."""
    for name in ('renderer', '_check_habitat'):
        monkeypatch.setattr(preflight, name, lambda: Finding('heavy', Severity.OK, 'fine'))
    monkeypatch.setenv('OSMABENCH_DATA', str(tmp_path / 'data'))
    monkeypatch.setenv('COLUMNS', '300')
    return tmp_path / 'data'


def lose(monkeypatch, lost):
    """Make a module impossible to import, as if it were not installed."""
    monkeypatch.setitem(sys.modules, lost, None)


def forbid_writing(monkeypatch):
    """Make every folder read-only; permissions would not stop root, which containers run as."""
    monkeypatch.setattr(os, 'access', lambda _path, mode: mode != os.W_OK)


def found(part, out):
    return next(item for item in preflight.examine(out) if item.part == part)


def write(file, content=b'{}'):
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)


def add_replica_cad(data):
    config = data / 'replica_cad' / 'replicaCAD.scene_dataset_config.json'
    write(config)
    write(data / 'replica_cad' / 'configs' / 'scenes' / 'apt_0.scene_instance.json')
    return config


@pytest.mark.parametrize(
    ('module', 'level', 'remedy'),
    [('torch', Severity.FAILED, 'beside_ros.txt'), ('rosbags', Severity.ABSENT, 'beside_ros.txt')],
)
def test_a_missing_module_is_named_with_its_remedy(module, level, remedy, monkeypatch, tmp_path):
    assert found(module, tmp_path).level is Severity.OK
    lose(monkeypatch, module)
    finding = found(module, tmp_path)
    assert finding.level is level
    assert module in finding.detail
    assert remedy in finding.remedy


def test_a_folder_that_cannot_be_written_to_fails_with_its_remedy(monkeypatch, tmp_path):
    assert found('disk', tmp_path / 'runs').level is Severity.OK
    forbid_writing(monkeypatch)
    result = CliRunner().invoke(app, ['doctor', '--out', str(tmp_path / 'runs')])
    assert result.exit_code != 0
    assert 'disk' in str(result.exception)
    assert str(tmp_path) in result.output
    assert 'choose another --out' in result.output


def test_the_command_prints_remedies_to_the_letter(monkeypatch, tmp_path):
    lose(monkeypatch, 'spark_dsg')
    result = CliRunner().invoke(app, ['doctor', '--out', str(tmp_path)])
    assert "pip install 'spark-dsg>=1.1'" in result.output
    lose(monkeypatch, 'tf2_ros')
    lose(monkeypatch, 'launch_ros')
    monkeypatch.setattr(sys, 'prefix', str(tmp_path))
    result = CliRunner().invoke(app, ['doctor', '--out', str(tmp_path)])
    assert 'sudo apt install ros-jazzy-tf2-ros' in result.output


@pytest.mark.parametrize(('here', 'reported'), [('1.10.14', '1.10.14'), (None, 'not installed')])
def test_a_package_that_is_too_old_or_missing_is_named_with_the_file_for_pip(
    here, reported, monkeypatch, tmp_path
):
    assert found('python packages', tmp_path).level is Severity.OK

    def version(name):
        if (name, here) == ('pydantic', None):
            raise metadata.PackageNotFoundError(name)
        return here if name == 'pydantic' else metadata.version(name)

    monkeypatch.setattr(configuration, 'installed_version', version)
    finding = found('python packages', tmp_path)
    assert finding.level is Severity.FAILED
    assert re.fullmatch(rf'pydantic>=[0-9.]+ \({reported}\)', finding.detail)
    assert f'pip install -r {configuration.requirements_file()}' in finding.remedy


def test_data_sets_are_optional_and_each_absent_one_has_a_remedy(small, tmp_path):
    for data_set in DATA_SETS:
        finding = found(data_set['name'], tmp_path)
        assert finding.level is Severity.ABSENT
        assert str(small) in finding.detail
        assert 'datasets_download' in finding.remedy or 'git clone' in finding.remedy


def test_data_sets_are_found_where_their_commands_put_them(small, tmp_path):
    config = add_replica_cad(small)
    write(small / 'Augmented_ReplicaCAD_dataset' / 'replicaCAD.scene_dataset_config.json')
    write(small / 'Augmented_ReplicaCAD_dataset' / 'objects' / 'chair.glb', b'glTF')
    hm3d = small / 'scene_datasets' / 'hm3d'
    write(hm3d / 'hm3d_annotated_basis.scene_dataset_config.json')
    write(hm3d / 'val' / '00800-TEEsavR23oF' / 'TEEsavR23oF.semantic.txt')
    findings = {item.part: item for item in preflight.examine(tmp_path)}
    assert {findings[item['name']].level for item in DATA_SETS} == {Severity.OK}
    assert findings[REPLICA_CAD['name']].detail == str(config)


def test_hm3d_without_semantics_is_told_apart(small):
    hm3d = small / 'scene_datasets' / 'hm3d'
    write(hm3d / 'hm3d_annotated_basis.scene_dataset_config.json')
    write(hm3d / 'val' / '00800-TEEsavR23oF' / 'TEEsavR23oF.basis.glb')
    finding = find_data_set(HM3D, [small])
    assert finding.level is Severity.ABSENT
    assert '*.semantic.txt' in finding.detail


def test_a_clone_without_lfs_is_told_apart(small):
    folder = small / 'Augmented_ReplicaCAD_dataset'
    write(folder / 'replicaCAD.scene_dataset_config.json')
    write(folder / 'objects' / 'chair.glb', b'version https://git-lfs.github.com/spec/v1\n')
    finding = find_data_set(AUGMENTED, [small])
    assert finding.level is Severity.ABSENT
    assert 'chair.glb' in finding.detail
    assert 'lfs pull' in finding.remedy


def test_without_a_variable_data_is_looked_for_here_and_at_home(monkeypatch, tmp_path):
    monkeypatch.delenv('OSMABENCH_DATA', raising=False)
    monkeypatch.setenv('HOME', str(tmp_path))
    add_replica_cad(tmp_path / 'data')
    assert data_folders() == [Path('data'), tmp_path / 'data']
    assert find_data_set(REPLICA_CAD, data_folders()).level is Severity.OK
