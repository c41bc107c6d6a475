from pathlib import Path

import pytest

from osmabench_ros.errors import ConfigError, MapError
from osmabench_ros.maps.registry import find_importer, import_map, importer_names

METHODS = {
    'bbq', 'conceptfusion', 'conceptgraphs', 'dualmap', 'hovsg', 'hydra', 'khronos',
    'openfusion', 'openlex3d', 'openmask3d', 'openscene', 'ovo', 'pointcloud',
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
