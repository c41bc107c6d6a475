import pytest

from osmabench_ros.errors import ConfigError
from osmabench_ros.maps.importer import ImportOptions, find_importer, import_map, list_importers

METHODS = {
    'bbq', 'conceptfusion', 'conceptgraphs', 'dualmap', 'hovsg', 'hydra', 'khronos',
    'openfusion', 'openlex3d', 'openmask3d', 'openscene', 'ovo', 'pointcloud', 'rtabmap',
}  # fmt: skip


def test_every_importer_is_registered_and_loads():
    assert set(list_importers()) >= METHODS
    assert all(callable(find_importer(name)) for name in METHODS)
    with pytest.raises(ConfigError, match='Did you mean "conceptgraphs"'):
        find_importer('conceptgraph')


def test_an_importer_of_another_package_is_found_and_a_broken_one_named(tmp_path, monkeypatch):
    (tmp_path / 'their_importer.py').write_text(
        'from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap\n'
        'def import_map(path, options):\n'
        '    return SemanticMap(MapHeader(Provenance(path.name, scene=options.scene)))\n'
    )
    metadata = tmp_path / 'their_importer-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text('Metadata-Version: 2.1\nName: their-importer\nVersion: 1.0')
    (metadata / 'entry_points.txt').write_text(
        '[osmabench.map_importers]\ntheirs = their_importer:import_map\nbroken = no_such:thing\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    made = import_map('theirs', metadata, ImportOptions(scene='apt_0'))
    origin = made.header.provenance
    assert (origin.method, origin.scene) == (metadata.name, 'apt_0')
    with pytest.raises(ConfigError, match='"broken" cannot be imported from "no_such:thing"'):
        find_importer('broken')
