"""Zstandard as rosbag2 applies it to whole files or to single messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osmabench_ros.base.limits.allowance import allowance, exceeded
from osmabench_ros.base.limits.stopwatch import Stopwatch
from osmabench_ros.errors import MissingDependencyError, SequenceError

ZSTD_SUFFIX = '.zstd'
MAGIC = b'\x28\xb5\x2f\xfd'
BLOCK_BYTES = 2**20


def unpacked(data: bytes, topic: str) -> bytes:
    """Return a message as published; SequenceError if it is damaged, LimitError if too large."""
    if data[:4] != MAGIC:
        return data
    zstandard = _zstandard()
    try:
        limit = allowance().memory_bytes(len(data))
        size = zstandard.frame_content_size(data)
        if size > limit:
            raise exceeded(
                f'topic "{topic}"', f'a compressed message claims {size} bytes', 'memory_ratio'
            )
        unknown = limit if size < 0 else 0
        return bytes(zstandard.ZstdDecompressor().decompress(data, max_output_size=unknown))
    except zstandard.ZstdError as error:
        raise SequenceError(
            f'topic "{topic}": a compressed message is damaged: {error}'
        ) from error


def unpack_file(source: Path, target: Path) -> str:
    """Unpack a file as far as it goes, and return why it ended early, empty if it did not.

    Raises SequenceError if the disk is full, LimitError if it unpacks to more than is allowed.
    """
    zstandard = _zstandard()
    size_bytes = source.stat().st_size
    limit = allowance().memory_bytes(size_bytes)
    watch = Stopwatch(source, size_bytes)
    with source.open('rb') as packed, target.open('wb') as plain:
        reader = zstandard.ZstdDecompressor().stream_reader(packed, read_across_frames=True)
        while True:
            try:
                with watch.running():
                    block = reader.read(BLOCK_BYTES)
            except zstandard.ZstdError as error:
                return f'{source.name}: {error}'
            if not block:
                return ''
            limit -= len(block)
            if limit < 0:
                raise exceeded(source, 'it unpacks to far more than its size', 'memory_ratio')
            try:
                plain.write(block)
            except OSError as error:
                raise SequenceError(
                    f'{source} cannot be unpacked to {target.parent}: {error.strerror}; free '
                    'disk space, or set TMPDIR to another disk'
                ) from error


def _zstandard() -> Any:
    try:
        import zstandard
    except ImportError as error:
        raise MissingDependencyError(
            f'compressed bags need zstandard ({error}); pip install osmabench_ros[bags]'
        ) from error
    return zstandard
