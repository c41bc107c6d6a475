"""Records of MCAP files, whose lengths and sizes are checked before use."""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.errors import needing

MAGIC = b'\x89MCAP0\r\n'
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 1, 2, 3, 4, 5, 6
CHUNK_INDEX, STATISTICS = 8, 11
MAX_LOG_NS = 2**63 - 1
_READ = (HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK, CHUNK_INDEX, STATISTICS)
"""Records of other kinds, such as attachments, are passed over."""
_FRAME = struct.Struct('<BQ')
_MESSAGE = struct.Struct('<HIQQ')
_MESSAGE_OBJECT_BYTES = 200
"""About what a message takes in memory beside its data."""

_MAX_NAME = 20
_CHUNK_HEAD, _LENGTH = struct.Struct('<QQQII'), struct.Struct('<Q')

Message = tuple[int, int, int, int]
"""Of a chunk: log time, place of the record, channel, and end of the data."""


@dataclass(frozen=True)
class PackedChunk:
    """A chunk as stored, compressed by lz4, zstd or ''; `crc` is 0 if it has none."""

    compression: str
    data: memoryview
    size_bytes: int
    crc: int


class McapRecords:
    """An open MCAP file as a series of records; ValueError without the magic of MCAP."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parsers = _parsers()
        self.size_bytes = path.stat().st_size
        self.place = 0
        """Where the record begins that `read` has yielded last."""
        self._stream = path.open('rb')
        if self._stream.read(len(MAGIC)) != MAGIC:
            self.close()
            raise ValueError('it does not begin with MCAP0')

    def read(self, start: int = len(MAGIC)) -> Iterator[tuple[int, Any]]:
        """Yield kinds and records from a place to the footer; ValueError if one is malformed."""
        while True:
            kind, body, following = self._body(start)
            self.place = start
            if kind in _READ:
                yield kind, body if kind == MESSAGE else self._parsed(kind, body)
            if kind == FOOTER:
                return
            start = following

    def summary_start(self) -> int:
        """Return where the summary begins; ValueError if there is none."""
        end = self.size_bytes - len(MAGIC) - _FRAME.size - 20
        kind, body, following = self._body(max(end, 0))
        self._stream.seek(following)
        if kind != FOOTER or self._stream.read(len(MAGIC) + 1) != MAGIC:
            raise ValueError('it does not end with a footer')
        start: int = self._parsed(FOOTER, body).summary_start
        if not start:
            raise ValueError('it has no summary')
        return start

    def chunk_at(self, start: int) -> PackedChunk:
        """Return the chunk that begins at a place."""
        kind, body, _ = self._body(start)
        if kind != CHUNK:
            raise ValueError(f'there is no chunk at byte {start}')
        return _chunk_of(body)

    def records_of(self, content: bytes | memoryview) -> Iterator[tuple[int, Any]]:
        """Yield kinds and records of an unpacked chunk; a message as `Message`."""
        place = 0
        while place < len(content):
            if len(content) - place < _FRAME.size:
                raise ValueError('a record is cut off at the end of its chunk')
            kind, length = _FRAME.unpack_from(content, place)
            start, place = place + _FRAME.size, place + _FRAME.size + length
            if place > len(content):
                raise ValueError(f'a record of {length} bytes reaches beyond its chunk')
            if kind == MESSAGE:
                channel, log_ns, data = _message_head(content, start)
                if data > place:
                    raise ValueError(f'a message of {length} bytes')
                yield kind, (log_ns, data, channel, place)
            elif kind in (SCHEMA, CHANNEL):
                yield kind, self._parsed(kind, bytes(content[start:place]))

    def unpacked(self, chunk: PackedChunk) -> bytes | memoryview:
        """Return a chunk's content; ValueError if damaged, LimitError if too large."""
        size = chunk.size_bytes
        if size > allowance().memory_bytes(self.size_bytes):
            raise exceeded(self.path, f'a chunk claims {size} bytes', 'memory_ratio')
        unpack = _UNPACKERS.get(chunk.compression)
        if unpack is None:
            raise ValueError(f'a chunk has unknown compression "{chunk.compression}"')
        content = unpack(chunk.data, size)
        if len(content) != size:
            raise ValueError(f'a chunk does not unpack to the {size} bytes that it claims')
        if chunk.crc not in (0, zlib.crc32(content)):
            raise ValueError('the checksum of a chunk is wrong')
        return content

    def close(self) -> None:
        """Close the file."""
        self._stream.close()

    def _body(self, start: int) -> tuple[int, bytes, int]:
        """Return the kind of a record, its body if needed, and where the next begins."""
        self._stream.seek(min(start, self.size_bytes))
        head = self._stream.read(_FRAME.size)
        if len(head) < _FRAME.size:
            raise ValueError(f'it is cut off at byte {start}')
        kind, length = _FRAME.unpack(head)
        following = start + _FRAME.size + length
        if following > self.size_bytes:
            raise ValueError(f'at byte {start} a record of {length} bytes is cut off')
        return kind, self._stream.read(length) if kind in _READ else b'', following

    def _parsed(self, kind: int, body: bytes) -> Any:
        from mcap.data_stream import ReadDataStream

        if kind == CHUNK:
            return _chunk_of(body)
        try:
            return self._parsers[kind].read(ReadDataStream(io.BytesIO(body)))
        except Exception as error:  # mcap and struct have errors of their own
            raise ValueError(f'a record is malformed: {error or type(error).__name__}') from error


def message_of(body: bytes) -> tuple[int, int, bytes]:
    """Return channel, log time and data of a message outside chunks."""
    channel, log_ns, start = _message_head(body, 0)
    return channel, log_ns, body[start:]


def memory_of(content: bytes | memoryview, messages: list[Message]) -> int:
    """Return the approximate memory of the messages of an unpacked chunk."""
    return len(content) + _MESSAGE_OBJECT_BYTES * len(messages)


def _chunk_of(body: bytes) -> PackedChunk:
    try:
        _, _, size, crc, length = _CHUNK_HEAD.unpack_from(body)
        compression = body[_CHUNK_HEAD.size : _CHUNK_HEAD.size + min(length, _MAX_NAME)]
        start = _CHUNK_HEAD.size + length + _LENGTH.size
        (count,) = _LENGTH.unpack_from(body, start - _LENGTH.size)
    except struct.error as error:
        raise ValueError('a chunk is cut off') from error
    return PackedChunk(
        compression.decode(errors='replace'), memoryview(body)[start : start + count], size, crc
    )


def _message_head(content: bytes | memoryview, start: int) -> tuple[int, int, int]:
    try:
        channel, _, log_ns, _ = _MESSAGE.unpack_from(content, start)
    except struct.error as error:
        raise ValueError('a message is cut off') from error
    if log_ns > MAX_LOG_NS:
        raise ValueError(f'a message has log time {log_ns}')
    return channel, log_ns, start + _MESSAGE.size


def _unpacked_zstd(data: memoryview, size: int) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            return bytes(reader.read(size + 1))
    except zstandard.ZstdError as error:
        raise ValueError(f'a chunk is damaged: {error}') from error


def _unpacked_lz4(data: memoryview, size: int) -> bytes:
    import lz4.frame

    try:
        return bytes(lz4.frame.LZ4FrameDecompressor().decompress(data, size + 1))
    except (RuntimeError, EOFError) as error:
        raise ValueError(f'a chunk is damaged: {error}') from error


_UNPACKERS: dict[str, Callable[[memoryview, int], bytes | memoryview]] = {
    '': lambda data, _: data,
    'zstd': _unpacked_zstd,
    'lz4': _unpacked_lz4,
}


def _parsers() -> dict[int, Any]:
    with needing('bags need mcap', extra('bags')):
        from mcap import records
    return {
        HEADER: records.Header,
        FOOTER: records.Footer,
        SCHEMA: records.Schema,
        CHANNEL: records.Channel,
        CHUNK_INDEX: records.ChunkIndex,
        STATISTICS: records.Statistics,
    }
