"""Memory and processor time that reading one file takes; unpacks gzip and zip within them."""

from __future__ import annotations

import gzip
import io
import resource
import stat
import threading
import time
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path, PurePosixPath
from typing import IO, Any

import numpy as np

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.reading import opened
from osmabench_ros.errors import LimitError, MapError, OsmabenchError

_LOCK = threading.Lock()


@contextmanager
def memory_headroom(max_bytes: int) -> Iterator[None]:
    """Limit the further memory of this process; beyond it, MemoryError is raised."""
    if resource.getrlimit(resource.RLIMIT_AS)[0] == resource.RLIM_INFINITY:
        _start_linear_algebra()  # a reader's process has one thread, and its own limit by now
    with _LOCK:
        soft, hard = resource.getrlimit(resource.RLIMIT_AS)
        pages = int(Path('/proc/self/statm').read_text().split()[0])
        limit = pages * resource.getpagesize() + max_bytes
        for earlier in (soft, hard):
            if earlier != resource.RLIM_INFINITY:
                limit = min(limit, earlier)
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@cache
def _start_linear_algebra() -> None:
    """Let BLAS take its memory, 32 MiB a processor, which is no file's; denied, it ends us."""
    from scipy.linalg.blas import dgemm

    square = np.ones((512, 512))
    np.matmul(square, square)
    dgemm(1.0, square, square)  # NumPy and SciPy bring one BLAS each


class Stopwatch:
    """Adds up processor time of this thread, up to a limit that grows with the file size."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._limit_s = allowance().time_s(size_bytes)
        self._left_s = self._limit_s

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time of a block; raises LimitError if the limit is then used up."""
        start_s = time.thread_time()
        try:
            yield
        finally:
            self._left_s -= time.thread_time() - start_s
            if self._left_s < 0:
                raise exceeded(self._path, f'reading it takes over {self._limit_s:g} s', 'seconds')


_MIB = 2**20
_SURELY_FREE_BYTES = 1 << 24


class Meter:
    """What reading one file has left of its allowance; memory is taken before it is allocated."""

    def __init__(self, source: Path | str, size_bytes: int) -> None:
        limits = allowance()
        self.source = source
        self.max_depth = limits.depth
        self.memory_bytes = limits.memory_bytes(size_bytes)
        if size_bytes > _SURELY_FREE_BYTES:  # a sparse file may have any size
            import psutil

            self.memory_bytes = min(self.memory_bytes, psutil.virtual_memory().available)
        self._left_bytes = self.memory_bytes
        self._time_s = limits.time_s(size_bytes)
        self._end_s = time.thread_time() + self._time_s

    def take(self, count_bytes: int) -> None:
        """Count memory about to be allocated; raises LimitError if it is more than is left."""
        if count_bytes > self._left_bytes:
            raise self.too_large()
        self._left_bytes -= count_bytes

    def give_back(self, count_bytes: int) -> None:
        """Count memory that was freed."""
        self._left_bytes += count_bytes

    def too_large(self) -> LimitError:
        """Return the error of a file that takes more memory than it may."""
        what = f'unpacks to more than {self.memory_bytes / _MIB:.0f} MiB'
        return exceeded(self.source, what, 'memory_mib')

    def too_deep(self) -> LimitError:
        """Return the error of a file that nests deeper than it may."""
        return exceeded(self.source, f'is nested deeper than {self.max_depth} levels', 'depth')

    def check_time(self) -> None:
        """Raise LimitError if the processor time of this thread is used up."""
        if time.thread_time() > self._end_s:
            raise exceeded(
                self.source, f'takes more than {self._time_s:.0f} s of processor time', 'seconds'
            )


_GZIP_MAGIC = b'\x1f\x8b'
_BLOCK_BYTES = 1 << 20
_MEMBER_BYTES = 1 << 10
"""What an archive's entry takes in memory, about."""
_MAX_SHOWN = 80


class _TimedStream(io.RawIOBase):
    """Passes on decompressed data until the time is used up."""

    def __init__(self, stream: IO[bytes], meter: Meter) -> None:
        self._stream, self._meter = stream, meter

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
    return b''.join(blocks_of(archive, info, meter))


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
