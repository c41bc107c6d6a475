"""Unpacks sensor_msgs/CompressedImage: JPEG and PNG colour, PNG depth; needs no ROS."""

from __future__ import annotations

import io
import struct
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.base.image_codec import image_fields

MAX_PIXELS = 2**26
_DEPTH_HEADER = struct.Struct('<iff')
"""Before the picture of compressed_depth_image_transport: its format, and two numbers."""
_PNG = b'\x89PNG\r\n\x1a\n'


@dataclass(frozen=True, eq=False)
class UnpackedImage:
    """The fields of a sensor_msgs/Image with the same pixels."""

    header: Any
    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: NDArray[np.uint8]


def unpacked_image(message: Any) -> UnpackedImage:
    """Decode a CompressedImage of image_transport's plugins.

    Colour becomes rgb8. Depth keeps its encoding: 16UC1 in millimetres, or 32FC1 in metres, which
    the plugin keeps as inverse depth. Raises ValueError if the format is unknown, or the picture
    damaged or too large.
    """
    encoding, _, rest = (part.strip() for part in message.format.partition(';'))
    data = bytes(message.data)
    if 'compressedDepth' in message.format:
        return _depth(message.header, encoding, rest, data)
    pixels = _picture(data, message.format)
    if pixels.dtype != np.uint8:
        return _image(message.header, pixels, '16UC1')
    if encoding in ('8UC1', '32SC1', '16UC1', 'mono16', '32FC1'):
        raise ValueError(f'format "{message.format}" holds pixels of 8 bits')
    color = np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels
    # OpenCV writes its first channel as blue, whatever it is.
    if rest.rpartition(' ')[2] in ('rgb8', 'rgba8'):
        color = color[..., ::-1]
    return _image(message.header, color, 'rgb8')


def _depth(header: Any, encoding: str, rest: str, data: bytes) -> UnpackedImage:
    place = _DEPTH_HEADER.size
    if data[place : place + len(_PNG)] != _PNG:
        raise ValueError(
            f'format "{encoding}; {rest}" is not PNG; record depth with compressedDepth.format '
            'png, or plain'
        )
    _, scale, offset = _DEPTH_HEADER.unpack_from(data)
    pixels = _picture(data[place:], rest)
    if pixels.dtype != np.uint16 or pixels.ndim != 2:
        raise ValueError(f'depth has {pixels.dtype} pixels, expected one channel of 16 bits')
    if encoding != '32FC1':
        return _image(header, pixels, '16UC1')
    with np.errstate(divide='ignore'):
        depth_m = np.float32(scale) / (pixels.astype(np.float32) - np.float32(offset))
    return _image(header, np.where(pixels == 0, np.float32(np.nan), depth_m), '32FC1')


def _picture(data: bytes, form: str) -> NDArray[Any]:
    """Return pixels: (height, width) of 16 bits or 8, or (height, width, 3) of 8 bits, RGB."""
    try:
        with warnings.catch_warnings():
            # Its size is checked here.
            warnings.simplefilter('ignore', Image.DecompressionBombWarning)
            picture = Image.open(io.BytesIO(data), formats=('JPEG', 'PNG'))
        if picture.width * picture.height > MAX_PIXELS:
            raise ValueError(f'{picture.width} x {picture.height} pixels are too many')
        if picture.mode.startswith('I'):
            return np.asarray(picture).astype(np.uint16)
        return np.asarray(picture if picture.mode == 'L' else picture.convert('RGB'), np.uint8)
    except Exception as error:  # decoders raise whatever they meet in damaged data
        raise ValueError(f'format "{form}" is no JPEG or PNG picture: {error}') from error


def _image(header: Any, pixels: NDArray[Any], encoding: str) -> UnpackedImage:
    return UnpackedImage(header, **image_fields(pixels, encoding))
