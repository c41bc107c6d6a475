import io
import zipfile
from collections.abc import Callable

import pytest
from maps.test_storage import assert_equal
from support.world.maps import sample_map

from osmabench_ros.errors import MapError
from osmabench_ros.maps.disk.storage import pack_map, unpack_map


def repacked(
    change: Callable[[zipfile.ZipInfo, bytes], tuple[zipfile.ZipInfo, bytes] | None],
    extra: tuple[tuple[str, bytes], ...] = (),
    method: int = zipfile.ZIP_STORED,
) -> bytes:
    """Return the sample's archive with its members changed and others added."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(pack_map(sample_map()))) as source,
        zipfile.ZipFile(target, 'w', method) as archive,
    ):
        for info in source.infolist():
            changed = change(info, source.read(info))
            if changed:
                archive.writestr(*changed, compress_type=method)
        for name, data in extra:
            archive.writestr(name, data)
    return target.getvalue()


def test_a_map_survives_packing() -> None:
    assert_equal(unpack_map(pack_map(sample_map())), sample_map())


def test_a_deflated_archive_is_taken() -> None:
    packed = repacked(lambda info, data: (info, data), method=zipfile.ZIP_DEFLATED)
    assert_equal(unpack_map(packed), sample_map())


@pytest.mark.parametrize(
    'name', ['../map.json', '/etc/passwd', 'dense/../../x.npy', 'run.sh', 'dense\\x.npy', 'a/']
)
def test_a_path_that_no_map_has_is_refused(name: str) -> None:
    with pytest.raises(MapError, match='the packed map holds .*not a file of a map'):
        unpack_map(repacked(lambda info, data: (info, data), ((name, b'x'),)))


def test_too_large_a_map_is_refused_before_it_is_unpacked() -> None:
    with pytest.raises(MapError, match='at most 1000 are allowed'):
        unpack_map(pack_map(sample_map()), max_bytes=1000)


def test_an_archive_of_very_many_files_is_refused() -> None:
    many = tuple((f'features/x{i}.npy', b'') for i in range(1001))
    with pytest.raises(MapError, match='at most 1000 are unpacked'):
        unpack_map(repacked(lambda info, data: (info, data), many))


def test_a_member_that_lies_about_its_size_is_refused() -> None:
    data = repacked(lambda info, data: (info, data), method=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        size = archive.getinfo('map.json').file_size
    lie = data.replace(size.to_bytes(4, 'little'), (8).to_bytes(4, 'little'))
    with pytest.raises(MapError, match=r'no readable zip archive: .*map\.json'):
        unpack_map(lie)


@pytest.mark.filterwarnings('ignore:Duplicate name')
def test_a_member_twice_is_refused() -> None:
    with pytest.raises(MapError, match='twice'):
        unpack_map(repacked(lambda info, data: (info, data), (('cloud.ply', b''),)))


@pytest.mark.parametrize('cut', [0, 10, 500, -1, -30])
def test_a_cut_off_archive_is_refused(cut: int) -> None:
    with pytest.raises(MapError, match='no readable zip archive'):
        unpack_map(pack_map(sample_map())[:cut])
