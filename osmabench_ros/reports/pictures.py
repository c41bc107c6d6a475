"""Images as data URIs, so that a page needs no file beside it."""

from __future__ import annotations

import base64
import io
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.base.limits.images import read_image
from osmabench_ros.errors import RunError

_COLORS = 255
_JPEG_QUALITY = 82


def png_uri(image: NDArray[np.uint8]) -> str:
    """Return RGBA (height, width, 4) as a PNG with a palette; alpha is all or nothing."""
    indexed = Image.fromarray(np.ascontiguousarray(image[..., :3])).quantize(
        _COLORS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE
    )
    indices = np.where(image[..., 3] > 0, np.asarray(indexed), _COLORS).astype(np.uint8)
    paletted = Image.fromarray(indices, mode='P')
    palette = indexed.getpalette() or []
    paletted.putpalette(palette + [0] * (3 * (_COLORS + 1) - len(palette)))
    buffer = io.BytesIO()
    paletted.save(buffer, 'PNG', transparency=_COLORS, optimize=True)
    return _uri('png', buffer)


def photo_uri(path: Path, width: int) -> str:
    """Return an image file as a JPEG at most `width` pixels wide.

    Raises RunError, which names the file, if it is no image.
    """
    photo = read_image(path, RunError).convert('RGB')
    if photo.width > width:
        height = max(1, round(photo.height * width / photo.width))
        photo = photo.resize((width, height), Image.Resampling.LANCZOS)
    buffer = io.BytesIO()
    photo.save(buffer, 'JPEG', quality=_JPEG_QUALITY, optimize=True)
    return _uri('jpeg', buffer)


def _uri(kind: str, buffer: io.BytesIO) -> str:
    return f'data:image/{kind};base64,{base64.b64encode(buffer.getvalue()).decode()}'
