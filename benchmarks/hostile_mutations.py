"""Damages files the way chance and malice do; the same seed and number give the same damage."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

NUMBER = re.compile(rb'-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?')
TEXT = re.compile(rb'"[^"\n]{1,60}"')
GROWN_TEXTS = (
    b'-1', b'0', b'1e999', b'nan', b'2147483648', b'4294967295', b'18446744073709551615',
    b'600000000', b'1e308', b'-1e-320', b'true', b'null', b'[]', b'9' * 400,
)  # fmt: skip
GROWN_NUMBERS = (2**31 - 1, 2**31, 2**32 - 1, 600_000_000, 2**63 - 1, 2**63, 2**64 - 1, 0, 1)
ELSEWHERE = (b'../outside/secret', b'/etc/passwd', b'/dev/zero', b'/proc/self/mem', b'..', b'')
HEADER_BYTES = 512
PACKED = {b'\x1f\x8b': gzip.compress, b'BZh': bz2.compress}

Damage = Callable[[bytearray, np.random.Generator], None]


def place(data: bytearray, rng: np.random.Generator) -> int:
    """Return an offset, half of the time where headers are."""
    end = len(data) if rng.random() < 0.5 else min(len(data), HEADER_BYTES)
    return int(rng.integers(0, max(end, 1)))


def flip_bits(data: bytearray, rng: np.random.Generator) -> None:
    """Flip one to sixteen bits."""
    for _ in range(rng.integers(1, 17)):
        if data:
            data[place(data, rng)] ^= 1 << int(rng.integers(8))


def cut(data: bytearray, rng: np.random.Generator) -> None:
    """Cut the end off, or a piece out of the middle."""
    start = place(data, rng)
    end = len(data) if rng.random() < 0.5 else start + int(rng.integers(1, 64))
    del data[start:end]


def splice(data: bytearray, rng: np.random.Generator) -> None:
    """Put a piece of the file somewhere else, once or often."""
    start = place(data, rng)
    piece = bytes(data[start : start + int(rng.integers(1, 256))])
    times = 1 if rng.random() < 0.7 else int(rng.integers(2, 2000))
    at = place(data, rng)
    data[at : at + int(rng.integers(0, 64))] = piece * times


def grow_text(data: bytearray, rng: np.random.Generator) -> None:
    """Replace a written number by a large or odd one, or a text by a path that leads elsewhere."""
    pattern = NUMBER if rng.random() < 0.7 else TEXT
    found = list(pattern.finditer(data))
    if not found:
        grow_field(data, rng)
        return
    chosen = found[int(rng.integers(len(found)))]
    if pattern is NUMBER:
        made = GROWN_TEXTS[int(rng.integers(len(GROWN_TEXTS)))]
    else:
        made = b'"' + ELSEWHERE[int(rng.integers(len(ELSEWHERE)))] + b'"'
    data[chosen.start() : chosen.end()] = made


def grow_field(data: bytearray, rng: np.random.Generator) -> None:
    """Put a large number of 1, 2, 4 or 8 bytes somewhere, least byte first."""
    size = int(rng.choice([1, 2, 4, 8]))
    at = place(data, rng)
    number = GROWN_NUMBERS[int(rng.integers(len(GROWN_NUMBERS)))]
    data[at : at + size] = (number & (2 ** (8 * size) - 1)).to_bytes(size, 'little')


DAMAGES: tuple[Damage, ...] = (flip_bits, cut, splice, grow_text, grow_field)


def damage_file(path: Path, rng: np.random.Generator) -> str:
    """Damage a file, as it is or the content that is packed in it; say what was done."""
    damage = DAMAGES[int(rng.integers(len(DAMAGES)))]
    inside = rng.random() < 0.7
    data = path.read_bytes()
    what = 'the file'
    packed = next((pack for magic, pack in PACKED.items() if data.startswith(magic)), None)
    if inside and packed is gzip.compress:
        content = bytearray(gzip.decompress(data))
        damage(content, rng)
        data, what = gzip.compress(bytes(content), 1), 'what gzip packs'
    elif inside and data.startswith(b'PK'):
        data, name = _with_damaged_member(data, damage, rng)
        what = f'member {name}'
    else:
        changed = bytearray(data)
        damage(changed, rng)
        data = bytes(changed)
    path.write_bytes(data)
    return f'{damage.__name__} in {what} of {path.name}'


def _with_damaged_member(
    data: bytes, damage: Damage, rng: np.random.Generator
) -> tuple[bytes, str]:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as source, zipfile.ZipFile(made, 'w') as target:
        chosen = source.namelist()[int(rng.integers(len(source.namelist())))]
        for info in source.infolist():
            content = bytearray(source.read(info))
            if info.filename == chosen:
                damage(content, rng)
            target.writestr(info.filename, bytes(content), info.compress_type)
    return made.getvalue(), chosen


def mutate(folder: Path, reader: str, seed: int, number: int) -> str:
    """Damage one file of a folder; say which and how."""
    rng = np.random.default_rng([seed, zlib.crc32(reader.encode()), number])
    files = sorted(path for path in folder.rglob('*') if path.is_file())
    return damage_file(files[int(rng.integers(len(files)))], rng)
