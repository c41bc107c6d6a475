"""Unpacks gzip streams and zip archives within the limits of memory and time."""

from __future__ import annotations

import gzip
import io
import stat
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.meter import Meter
from osmabench_ros.base.limits.reading import opened
from osmabench_ros.errors import MapError, OsmabenchError

_GZIP_MAGIC = b'\x1f\x8b'
_BLOCK_BYTES = 1 << 20
_MEMBER_BYTES = 1 << 10
"""What an archive's entry takes in memory, about."""
_MAX_SHOWN = 80


class _TimedStream(io.RawIOBase):
    """Passes on decompressed data until the time is used up."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self._stream = stream
        self._meter = meter

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer."""
        self._meter.check_time()
        data = self._stream.read(min(len(buffer), _BLOCK_BYTES))
        buffer[: len(data)] = data
        return len(data)


def maybe_gzip(stream: IO[bytes], meter: Meter) -> io.RawIOBase:
    """Return the content of a file, unpacked if it is gzip; the caller counts memory."""
    packed = stream.read(len(_GZIP_MAGIC)) == _GZIP_MAGIC
    stream.seek(0)
    unpacked: Any = gzip.GzipFile(fileobj=stream) if packed else stream
    return _TimedStream(unpacked, meter)


def read_unpacked(path: Path, error: type[OsmabenchError]) -> bytes:
    """Read a text, maybe gzip; raises `error` if it is damaged, LimitError if too large."""
    most = allowance().document_bytes()
    with opened(path, error) as (file, size):
        unpacked = maybe_gzip(file, Meter(path, size))
        data = bytearray()
        try:
            while block := unpacked.read(_BLOCK_BYTES):
                data += block
                if len(data) > most:
                    raise exceeded(path, f'has more than {most} bytes', 'document_mib')
        except (EOFError, zlib.error, gzip.BadGzipFile) as fault:
            raise error(f'{path} is damaged: {fault}; copy it anew') from fault
    return bytes(data)


@contextmanager
def checked_zip(stream: IO[bytes] | Path, meter: Meter) -> Iterator[zipfile.ZipFile]:
    """Open a zip archive of plain files within the limits; raises MapError for hostile entries."""
    with zipfile.ZipFile(stream) as archive:
        infos = archive.infolist()
        meter.take(_MEMBER_BYTES * len(infos))
        names = {info.filename for info in infos}
        if len(names) != len(infos):
            raise MapError('is malformed: it holds a file twice')
        for info in infos:
            _check_entry(info)
        if sum(info.file_size for info in infos) > meter.memory_bytes:
            raise meter.too_large()
        yield archive


def _check_entry(info: zipfile.ZipInfo) -> None:
    name, kind = info.filename[:_MAX_SHOWN], stat.S_IFMT(info.external_attr >> 16)
    path = PurePosixPath(info.filename.replace('\\', '/'))
    if path.is_absolute() or '..' in path.parts or '\0' in info.filename:
        raise MapError(f'holds "{name}", which leads out of the archive')
    if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
        raise MapError(f'holds "{name}", which is no plain file')
    if info.flag_bits & 1:
        raise MapError(f'holds "{name}" encrypted')
    if info.compress_type == zipfile.ZIP_STORED and info.file_size != info.compress_size:
        raise MapError(f'is malformed: "{name}" is not as large as it claims')


def read_member(archive: zipfile.ZipFile, name: str, meter: Meter) -> bytes:
    """Return the content of an entry, never more than it declares; may raise MapError."""
    try:
        info = archive.getinfo(name)
    except KeyError as error:
        raise MapError(f'is malformed: it lacks "{name[:_MAX_SHOWN]}"') from error
    meter.take(info.file_size)
    blocks = []
    for block in blocks_of(archive, info, meter):
        blocks.append(block)
    return b''.join(blocks)


def blocks_of(archive: zipfile.ZipFile, info: zipfile.ZipInfo, meter: Meter) -> Iterator[bytes]:
    """Yield the content of an entry piece by piece; raises MapError if it has another size."""
    left = info.file_size
    with archive.open(info) as stream:
        while block := stream.read(_BLOCK_BYTES):
            meter.check_time()
            left -= len(block)
            if left < 0:
                break
            yield block
    if left:
        raise MapError(
            f'is malformed: "{info.filename[:_MAX_SHOWN]}" unpacks to another size than declared'
        )
