from pathlib import Path

import pytest

from osmabench_ros.errors import ConfigError, MapError
from osmabench_ros.maps.importer import ImportOptions, find_importer, import_map, importer_names

METHODS = {
    'bbq', 'conceptfusion', 'conceptgraphs', 'dualmap', 'hovsg', 'hydra', 'khronos',
    'openfusion', 'openlex3d', 'openmask3d', 'openscene', 'ovo', 'pointcloud', 'rtabmap',
}  # fmt: skip


def test_every_importer_is_registered_and_loads() -> None:
    assert set(importer_names()) >= METHODS
    for name in METHODS:
        assert callable(find_importer(name))


def test_an_unknown_method_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match='Did you mean "conceptgraphs"'):
        find_importer('conceptgraph')


@pytest.mark.parametrize('method', sorted(METHODS))
def test_an_empty_folder_is_an_error_that_names_it(tmp_path: Path, method: str) -> None:
    with pytest.raises(MapError, match=str(tmp_path)):
        import_map(method, tmp_path)


@pytest.mark.parametrize('method', sorted(METHODS))
def test_a_missing_path_is_an_error_that_names_it(tmp_path: Path, method: str) -> None:
    with pytest.raises(MapError, match='nothing does not exist'):
        import_map(method, tmp_path / 'nothing')


@pytest.fixture
def other_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a package with an importer of its own, and one that cannot be loaded."""
    (tmp_path / 'their_importer.py').write_text(
        'from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap\n'
        'def import_map(path, options):\n'
        '    return SemanticMap(MapHeader(Provenance(path.name, scene=options.scene)))\n'
    )
    metadata = tmp_path / 'their_importer-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: their-importer\nVersion: 1.0\n'
    )
    (metadata / 'entry_points.txt').write_text(
        '[osmabench.map_importers]\ntheirs = their_importer:import_map\nbroken = no_such:thing\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures('other_package')
def test_an_importer_of_another_package_is_found(tmp_path: Path) -> None:
    (tmp_path / 'output').mkdir()
    made = import_map('theirs', tmp_path / 'output', ImportOptions(scene='apt_0'))
    assert made.header.provenance.method == 'output'
    assert made.header.provenance.scene == 'apt_0'


@pytest.mark.usefixtures('other_package')
def test_an_importer_that_cannot_be_loaded_is_named() -> None:
    with pytest.raises(ConfigError, match='"broken" cannot be imported from "no_such:thing"'):
        find_importer('broken')
