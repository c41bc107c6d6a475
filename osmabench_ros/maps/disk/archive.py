"""Semantic maps as one block of bytes, for topics and transfer."""

from __future__ import annotations

import contextlib
import io
import re
import stat
import tempfile
import zipfile
from pathlib import Path

from osmabench_ros.base.limits.compressed import blocks_of, checked_zip
from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.errors import LimitError, MapError
from osmabench_ros.maps.disk.storage import files_of, read_map
from osmabench_ros.maps.semantic_map import SemanticMap

MAX_BYTES = 4 << 30
"""Largest content of an archive that is unpacked by default."""
MAX_FILES = 1000

_DATE = (1980, 1, 1, 0, 0, 0)
_NAME = re.compile(
    r'map\.json|cloud\.ply|(dense|features)/[A-Za-z0-9_-]+\.npy|extras/extras\.json|'
    r'trajectory\.tum'
)
_WHAT = 'the packed map'


def pack_map(semantic_map: SemanticMap) -> bytes:
    """Pack a map into a zip archive; equal maps give equal bytes; raises MapError for faults."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, 'w', zipfile.ZIP_STORED) as archive:
        for name, write in files_of(semantic_map):
            info = zipfile.ZipInfo(name, _DATE)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.create_system = 3
            with archive.open(info, 'w', force_zip64=True) as stream:
                write(stream)
    return packed.getvalue()


def unpack_map(
    packed: bytes, *, max_bytes: int = MAX_BYTES, folder: Path | None = None
) -> SemanticMap:
    """Unpack and check an untrusted archive; deflated files are accepted too.

    An empty `folder` gets the files, to be kept. Raises MapError if it is no zip archive, holds
    anything but files of a map, unpacks to more than `max_bytes`, or the map has faults;
    LimitError if it takes more memory or time than its size allows; OSError if the disk is full.
    """
    meter = Meter(_WHAT, len(packed))
    with contextlib.ExitStack() as stack:
        place = folder or Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix='osmabench_map_'))
        )
        try:
            with checked_zip(io.BytesIO(packed), meter) as archive:
                _check(archive.infolist(), max_bytes)
                for info in archive.infolist():
                    _extract(archive, info, place, meter)
        except MapError as error:
            raise MapError(f'{_WHAT} {error}') from error
        except LimitError:
            raise
        except Exception as error:  # zipfile has many ways to dislike hostile bytes
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise MapError(f'{_WHAT} is no readable zip archive: {error}') from error
        return read_map(place)


def _check(infos: list[zipfile.ZipInfo], max_bytes: int) -> None:
    if len(infos) > MAX_FILES:
        raise MapError(f'has {len(infos)} files; at most {MAX_FILES} are unpacked')
    total = sum(info.file_size for info in infos)
    if total > max_bytes:
        raise MapError(f'unpacks to {total} bytes; at most {max_bytes} are allowed')
    for info in infos:
        if not _NAME.fullmatch(info.filename):
            raise MapError(f'holds "{info.filename[:80]}", which is no file of a map')


def _extract(archive: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path, meter: Meter) -> None:
    path = folder / info.filename
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open('wb') as target:
        for block in blocks_of(archive, info, meter):
            target.write(block)
