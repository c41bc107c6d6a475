"""Semantic maps as one block of bytes, for topics and for sending around."""

from __future__ import annotations

import io
import re
import stat
import tempfile
import zipfile
from pathlib import Path

from osmabench_ros.errors import MapError
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.maps.storage import files_of, read_map

MAX_BYTES = 4 << 30
"""Largest content of an archive that is unpacked by default."""
MAX_RATIO = 200
"""Largest ratio of unpacked to packed size of archives above `SMALL_BYTES`; points and features
of real scenes stay below 20."""
SMALL_BYTES = 16 << 20
MAX_FILES = 1000

_DATE = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(
    r'map\.json|cloud\.ply|(dense|features)/[A-Za-z0-9_-]+\.npy|extras/extras\.json'
)
_BLOCK = 1 << 20


def pack_map(semantic_map: SemanticMap) -> bytes:
    """Pack a map into a zip archive; equal maps give equal bytes.

    Files are stored, not deflated: coordinates and features hardly shrink, and the result does
    not depend on the version of zlib.

    Raises
    ------
    MapError
        If the map has faults.
    """
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_STORED) as archive:
        for name, write in files_of(semantic_map):
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.create_system = 3
            with archive.open(info, 'w', force_zip64=True) as stream:
                write(stream)
    return packed.getvalue()


def unpack_map(packed: bytes, *, max_bytes: int = MAX_BYTES) -> SemanticMap:
    """Unpack and check an archive from anywhere.

    Parameters
    ----------
    packed : bytes
        As `pack_map` gives it; deflated files are taken too.
    max_bytes : int
        Largest sum of unpacked sizes.

    Returns
    -------
    SemanticMap

    Raises
    ------
    MapError
        If it is no zip archive, holds a file that no map has, a link or a path that leads
        elsewhere, unpacks to more than allowed, or the map has faults.
    """
    with tempfile.TemporaryDirectory(prefix='osmabench_map_') as folder:
        try:
            with zipfile.ZipFile(io.BytesIO(packed)) as archive:
                _check(archive.infolist(), len(packed), max_bytes)
                for info in archive.infolist():
                    _extract(archive, info, Path(folder))
        except MapError:
            raise
        except Exception as error:  # zipfile has many ways to dislike hostile bytes
            raise MapError(f'the packed map is no readable zip archive: {error}') from error
        return read_map(Path(folder))


def _check(infos: list[zipfile.ZipInfo], packed_bytes: int, max_bytes: int) -> None:
    if len(infos) > MAX_FILES:
        raise MapError(f'the packed map has {len(infos)} files; at most {MAX_FILES} are unpacked')
    names = [info.filename for info in infos]
    if len(set(names)) != len(names):
        raise MapError('the packed map holds a file twice')
    total = sum(info.file_size for info in infos)
    if total > max_bytes:
        raise MapError(f'the packed map unpacks to {total} bytes; at most {max_bytes} are allowed')
    if total > max(SMALL_BYTES, MAX_RATIO * packed_bytes):
        raise MapError(
            f'the packed map unpacks from {packed_bytes} to {total} bytes: refused as a zip bomb'
        )
    for info in infos:
        kind = stat.S_IFMT(info.external_attr >> 16)
        if not _NAME.fullmatch(info.filename) or kind not in (0, stat.S_IFREG):
            raise MapError(f'the packed map holds "{info.filename}", which is no file of a map')
        if info.flag_bits & 1:
            raise MapError(f'the packed map holds "{info.filename}" encrypted')


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    path = folder / info.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    left = info.file_size
    with archive.open(info) as source, path.open('wb') as target:
        while block := source.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise MapError(f'"{info.filename}" unpacks to more bytes than it declares')
            target.write(block)
