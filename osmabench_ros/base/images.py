"""The one reader of untrusted images: known formats only, and sizes that fit in memory."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from osmabench_ros.base.fence import limit_error, limit_factor
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import OsmabenchError

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ('PNG', 'JPEG', 'BMP', 'GIF', 'PPM', 'TGA', 'TIFF', 'WEBP')
"""Formats that are decoded; Pillow itself would also run Ghostscript on PostScript."""

_MAX_PIXELS = 1.5e8


def read_image(path: Path | str, error: type[OsmabenchError]) -> Image.Image:
    """Read the first frame of an untrusted image file; see `decoded_image`."""
    return decoded_image(read_bytes(path, error), path, error)


def decoded_image(
    data: bytes,
    source: Path | str,
    error: type[OsmabenchError],
    formats: tuple[str, ...] = FORMATS,
) -> Image.Image:
    """Return an image of one of the formats (Pillow's names); raises `error` or LimitError."""
    picture = undecoded_image(data, source, error, formats)
    try:
        picture.load()
    except Exception as fault:  # decoders raise whatever they meet in damaged data
        raise error(f'{source} is broken: {_text(fault)}') from fault
    return picture


def undecoded_image(
    data: bytes,
    source: Path | str,
    error: type[OsmabenchError],
    formats: tuple[str, ...] = FORMATS,
) -> Image.Image:
    """Open an image and check its size without reading its pixels; as `decoded_image`."""
    from PIL import Image, UnidentifiedImageError

    if not data:
        raise error(f'{source} is empty')
    Image.MAX_IMAGE_PIXELS = int(limit_factor() * _MAX_PIXELS / 2)  # Pillow refuses twice as many
    try:
        picture = Image.open(io.BytesIO(data), formats=formats)
    except UnidentifiedImageError as fault:
        names = ', '.join(formats)
        raise error(f'{source} is not an image of a format that is read ({names})') from fault
    except Image.DecompressionBombError as fault:
        raise limit_error(source, f'has too many pixels ({fault})') from fault
    except Exception as fault:  # as above
        raise error(f'{source} is broken: {_text(fault)}') from fault
    if not picture.width * picture.height:
        raise error(f'{source} is an image without pixels')
    return picture


def _text(fault: Exception) -> str:
    return ' '.join(str(fault).split())[:200]
