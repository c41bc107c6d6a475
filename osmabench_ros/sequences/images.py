"""Depth, class and instance images as 16-bit PNG, colour as JPEG or PNG."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from osmabench_ros.base.limits.images import read_image
from osmabench_ros.errors import OsmabenchError, SequenceError
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

SATURATED = 65535
JPEG_QUALITY = 95
PNG_EFFORT = 1
"""Of 0 to 9; more costs time and hardly saves space in synthetic images."""


def encoded_depth(depth_m: NDArray[np.floating], scale: float) -> NDArray[np.uint16]:
    """Return depth pixels; 0 where there is none, or it is too far for 16 bits: no wall."""
    with np.errstate(invalid='ignore'):
        values = np.rint(depth_m.astype(np.float64) * scale)
        usable = (values > 0) & (values < SATURATED)
    return np.where(usable, values, 0).astype(np.uint16)


def decoded_depth(pixels: NDArray[np.uint16], scale: float) -> NDArray[np.float32]:
    """Return metres; NaN for pixels that are 0 or saturated."""
    valid = (pixels > 0) & (pixels < SATURATED)
    return np.where(valid, pixels / scale, np.nan).astype(np.float32)


def encoded_classes(semantic: NDArray[np.uint16], label_set: LabelSet) -> NDArray[np.uint16]:
    """Return class pixels in which 0 is unlabelled, unless it is the id of a class."""
    if 0 in label_set.by_id:
        return semantic
    return np.where(semantic == UNLABELLED, 0, semantic).astype(np.uint16)


def decoded_classes(pixels: NDArray[np.uint16], label_set: LabelSet | None) -> NDArray[np.uint16]:
    """Return class ids; undo `encoded_classes`."""
    if label_set is not None and 0 in label_set.by_id:
        return pixels
    return np.where(pixels == 0, UNLABELLED, pixels).astype(np.uint16)


def encoded_instances(instance: NDArray[np.int32], frame: int) -> NDArray[np.uint16]:
    """Return instance pixels; SequenceError names a frame with an id that needs over 16 bits."""
    if instance.size and (instance.min() < 0 or instance.max() > 65535):
        raise SequenceError(
            f'frame {frame}: instance ids {instance.min()} to {instance.max()} do not fit into '
            '16 bits; number the objects of the scene from 1 on, or write a bag'
        )
    return instance.astype(np.uint16)


def write_image(path: Path, pixels: NDArray[Any]) -> None:
    """Write an image in the format of the file name; SequenceError if it cannot be written."""
    picture = Image.fromarray(np.ascontiguousarray(pixels))
    try:
        if path.suffix == '.jpg':
            picture.save(path, quality=JPEG_QUALITY, subsampling=0)
        else:
            picture.save(path, compress_level=PNG_EFFORT)
    except OSError as error:
        raise SequenceError(f'{path} cannot be written: {error}; choose another place') from error


def read_color(path: Path, frame: int) -> NDArray[np.uint8]:
    """Read RGB, shape (height, width, 3)."""
    return np.asarray(_opened(path, frame).convert('RGB'), np.uint8)


def read_16_bit(path: Path, frame: int) -> NDArray[np.uint16]:
    """Read a picture of one channel of up to 16 bits; else SequenceError with file and frame."""
    pixels = np.asarray(_opened(path, frame))
    if pixels.ndim != 2 or pixels.dtype.kind not in 'ui':
        raise SequenceError(f'frame {frame}: {path} must be an image of one channel of 16 bits')
    return pixels.astype(np.uint16)


def _opened(path: Path, frame: int) -> Image.Image:
    try:
        return read_image(path, SequenceError)
    except OsmabenchError as error:
        raise type(error)(
            f'frame {frame}: {error}; copy or generate the sequence again'
        ) from error
