"""Images from outside, of limited size; pixels of sensor_msgs/Image; sRGB and linear light.

Formats are known ones. The curve of sRGB is of IEC 61966-2-1.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.fence import limit_error, limit_factor
from osmabench_ros.base.reading import read_bytes
from osmabench_ros.errors import OsmabenchError

if TYPE_CHECKING:
    from PIL import Image

# Element type and channels of the encodings that are read.
PIXEL_TYPES: dict[str, tuple[np.dtype[Any], int]] = {
    'rgb8': (np.dtype(np.uint8), 3),
    'bgr8': (np.dtype(np.uint8), 3),
    'rgba8': (np.dtype(np.uint8), 4),
    'bgra8': (np.dtype(np.uint8), 4),
    'mono8': (np.dtype(np.uint8), 1),
    '32FC1': (np.dtype(np.float32), 1),
    '16UC1': (np.dtype(np.uint16), 1),
    'mono16': (np.dtype(np.uint16), 1),
    '32SC1': (np.dtype(np.int32), 1),
}

COLOR_ENCODINGS = ('rgb8', 'bgr8', 'rgba8', 'bgra8', 'mono8')
DEPTH_ENCODINGS = ('32FC1', '16UC1', 'mono16')
SEMANTIC_ENCODINGS = ('16UC1', 'mono16')
INSTANCE_ENCODINGS = ('32SC1', *SEMANTIC_ENCODINGS)
# Formats that are decoded; Pillow itself would also run Ghostscript on PostScript.
FORMATS = ('PNG', 'JPEG', 'BMP', 'GIF', 'PPM', 'TGA', 'TIFF', 'WEBP')

_MAX_PIXELS = 1.5e8

Item = TypeVar('Item')


def read_image(path: Path | str, error: type[OsmabenchError]) -> Image.Image:
    """Read the first frame of an untrusted image file; see `decoded_image`."""
    return decoded_image(read_bytes(path, error), path, error)


def select_evenly(items: Sequence[Item], most: int) -> list[Item]:
    """Return at most `most` of some images or poses, evenly spread, the first and last too."""
    if len(items) <= most:
        return list(items)
    places = np.linspace(0, len(items) - 1, most).round().astype(int)
    return [items[place] for place in places.tolist()]


def encode_image(image: Image.Image, kind: str, **options: int) -> bytes:
    """Return an image as a file of a kind."""
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


def decoded_image(
    data: bytes,
    source: Path | str,
    error: type[OsmabenchError],
    formats: tuple[str, ...] = FORMATS,
    *,
    load: bool = True,
) -> Image.Image:
    """Return an image of one of the formats (Pillow's names); raises `error` or LimitError.

    Without `load` its pixels are not read.
    """
    from PIL import Image, UnidentifiedImageError

    if not data:
        raise error(f'{source} is empty')
    Image.MAX_IMAGE_PIXELS = int(limit_factor() * _MAX_PIXELS / 2)  # Pillow refuses twice as many
    try:
        picture = Image.open(io.BytesIO(data), formats=formats)
        is_blank = not picture.width * picture.height
        if load and not is_blank:
            picture.load()
    except UnidentifiedImageError as fault:
        names = ', '.join(formats)
        raise error(f'{source} is not an image of a format that is read ({names})') from fault
    except Image.DecompressionBombError as fault:
        raise limit_error(source, f'has too many pixels ({fault})') from fault
    except Exception as fault:  # decoders raise whatever they meet in damaged data
        text = ' '.join(str(fault).split())[:200]
        raise error(f'{source} is broken: {text}') from fault
    if is_blank:
        raise error(f'{source} is an image without pixels')
    return picture


def pixels_of(message: Any, encodings: Sequence[str] = tuple(PIXEL_TYPES)) -> NDArray[Any]:
    """Return the pixels of an image as they are encoded: (height, width), maybe with channels.

    `message` has the fields of sensor_msgs/Image. Raises ValueError if its encoding is none of
    `encodings`, or the size of its data contradicts its header.
    """
    if message.encoding not in encodings:
        known = ', '.join(encodings)
        raise ValueError(f'encoding "{message.encoding[:40]}" is not supported; publish {known}')
    dtype, channels = PIXEL_TYPES[message.encoding]
    row = message.width * channels * dtype.itemsize
    filled = message.height > 0 and 0 < row <= message.step
    if not filled or len(message.data) != message.step * message.height:
        size = f'{message.width} x {message.height} pixels of {message.encoding}'
        data = f'{len(message.data)} bytes with a step of {message.step}'
        raise ValueError(f'{data} do not make {size}')
    rows = np.frombuffer(message.data, np.uint8).reshape(message.height, message.step)
    stored = dtype.newbyteorder('>' if message.is_bigendian else '<')
    # Those of a bag can be read-only and out of line; then, and only then, they are copied.
    pixels = np.require(np.ascontiguousarray(rows[:, :row]).view(stored), dtype, ['C', 'A', 'W'])
    return pixels if channels == 1 else pixels.reshape(message.height, message.width, channels)


def image_fields(pixels: NDArray[Any], encoding: str) -> dict[str, Any]:
    """Return the fields of an image, save the header, by name; the data are bytes, shape (N,)."""
    dtype, channels = PIXEL_TYPES[encoding]
    if pixels.dtype != dtype:
        raise ValueError(f'{encoding} needs {dtype}, not {pixels.dtype}')
    height, width = pixels.shape[:2]
    return {
        'height': height,
        'width': width,
        'encoding': encoding,
        'is_bigendian': 0,
        'step': width * channels * dtype.itemsize,
        'data': np.ascontiguousarray(pixels, dtype.newbyteorder('<')).reshape(-1).view(np.uint8),
    }


def color_of(message: Any) -> NDArray[np.uint8]:
    """Return a colour or grey image as RGB, shape (height, width, 3); raises as `pixels_of`."""
    pixels = pixels_of(message, COLOR_ENCODINGS)
    if message.encoding == 'mono8':
        return np.repeat(pixels[..., None], 3, axis=2)
    return pixels[..., 2::-1] if message.encoding.startswith('bgr') else pixels[..., :3]


def depth_of(message: Any) -> NDArray[np.float32]:
    """Return depth in metres (NaN, inf as in REP-118); 16-bit images are mm, 0 invalid."""
    depth = pixels_of(message, DEPTH_ENCODINGS)
    if depth.dtype == np.uint16:
        return np.where(depth == 0, np.float32(np.nan), depth.astype(np.float32) / 1000)
    return depth


def classes_of(message: Any) -> NDArray[np.uint16]:
    """Return the class ids of a semantic image; raises as `pixels_of`."""
    return pixels_of(message, SEMANTIC_ENCODINGS)


def instances_of(message: Any) -> NDArray[np.int32]:
    """Return the ids of an instance image; raises as `pixels_of`."""
    return pixels_of(message, INSTANCE_ENCODINGS).astype(np.int32, copy=False)


Number = TypeVar('Number', bound=np.floating)


def decode_srgb(srgb: NDArray[Number]) -> NDArray[Number]:
    """Return linear values of sRGB-encoded ones, both in [0, 1]."""
    return np.where(srgb <= 0.04045, srgb / 12.92, ((srgb + 0.055) / 1.055) ** 2.4)


def encode_srgb(linear: NDArray[Number]) -> NDArray[Number]:
    """Return sRGB-encoded values of linear ones, both in [0, 1]."""
    curved = 1.055 * np.maximum(linear, 0.0031308) ** (1 / 2.4) - 0.055
    return np.where(linear <= 0.0031308, 12.92 * linear, curved)


# Linear value of each 8-bit code, shape (256,).
LINEAR_OF_CODE: NDArray[np.float32] = decode_srgb(np.arange(256) / 255.0).astype(np.float32)


def decode_srgb_image(image: NDArray[np.uint8]) -> NDArray[np.float32]:
    """Return linear light in [0, 1] of an 8-bit sRGB image."""
    return LINEAR_OF_CODE[image]


def encode_srgb_image(linear: NDArray[np.floating]) -> NDArray[np.uint8]:
    """Return the 8-bit sRGB image of linear light, clipped to [0, 1]."""
    return np.asarray(np.rint(encode_srgb(np.clip(linear, 0.0, 1.0)) * 255.0), np.uint8)
