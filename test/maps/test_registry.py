import pytest
from support.distributions import install_distribution

from osmabench_ros.base.configuration import MAP_IMPORTERS
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
    code = (
        'from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap\n'
        'def import_map(path, options):\n'
        '    return SemanticMap(MapHeader(Provenance(path.name, scene=options.scene)))\n'
    )
    lines = ['theirs = their_importer:import_map', 'broken = no_such:thing']
    install_distribution(tmp_path, monkeypatch, {MAP_IMPORTERS: lines}, their_importer=code)
    made = import_map('theirs', tmp_path, ImportOptions(scene='apt_0'))
    origin = made.header.provenance
    assert (origin.method, origin.scene) == (tmp_path.name, 'apt_0')
    with pytest.raises(ConfigError, match='"broken" cannot be imported from "no_such:thing"'):
        find_importer('broken')
