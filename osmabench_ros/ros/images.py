"""Images and camera information to messages and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base.image_codec import PIXEL_TYPES, depth_of, pixels_of
from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.intrinsics import Intrinsics

MIN_FOCAL_PX, MAX_PX = 1e-3, 1e6
"""Of a camera matrix; beyond, directions of pixels are no longer exact."""


def image_to_message(image: NDArray[Any], encoding: str, stamp: Time, frame_id: str) -> Image:
    """Return an Image message; ValueError if the pixels are not of the encoding's type.

    They have shape (height, width) or (height, width, channels); encodings are `PIXEL_TYPES`.
    """
    dtype, channels = PIXEL_TYPES[encoding]
    if image.dtype != dtype:
        raise ValueError(f'{encoding} needs {dtype}, not {image.dtype}')
    message = Image(
        height=image.shape[0],
        width=image.shape[1],
        encoding=encoding,
        is_bigendian=sys.byteorder == 'big',
        step=image.shape[1] * channels * dtype.itemsize,
    )
    message.header.stamp = stamp
    message.header.frame_id = frame_id
    # The message's own array is filled from the pixels' memory: one copy. Assigning would copy
    # once more, or check the bytes of a list one by one.
    message.data.frombytes(np.ascontiguousarray(image).reshape(-1).view(np.uint8).data)
    return message


def image_from_message(
    message: Image, topic: str, convert: Callable[[Image], NDArray[Any]] = pixels_of
) -> NDArray[Any]:
    """Return what a function of `image_codec` makes of an image.

    Raises ContractError if it does not take the encoding, or the size contradicts the header.
    """
    try:
        return convert(message)
    except ValueError as error:
        raise ContractError(f'topic "{topic}": {error}') from error


def depth_from_message(message: Image, topic: str) -> NDArray[np.float32]:
    """Return depth in metres; raises as `image_from_message`."""
    return image_from_message(message, topic, depth_of)


def camera_info_message(intrinsics: Intrinsics, stamp: Time, frame_id: str) -> CameraInfo:
    """Return CameraInfo with K, D, R and P of an undistorted pinhole camera."""
    message = CameraInfo(
        height=intrinsics.height, width=intrinsics.width, distortion_model='plumb_bob'
    )
    message.header.stamp = stamp
    message.header.frame_id = frame_id
    message.d = [0.0] * 5
    message.k = intrinsics.matrix.ravel().tolist()
    message.r = np.eye(3).ravel().tolist()
    message.p = np.hstack([intrinsics.matrix, np.zeros((3, 1))]).ravel().tolist()
    return message


def intrinsics_from_message(message: CameraInfo, topic: str) -> Intrinsics:
    """Return intrinsics.

    Raises ContractError if the camera is distorted or its matrix is not that of a pinhole.
    """
    if not all(abs(value) <= 1e-9 for value in message.d):
        raise ContractError(
            f'topic "{topic}": images must be rectified, D is {list(message.d[:8])}'
        )
    fx, fy, cx, cy = (float(message.k[place]) for place in (0, 4, 2, 5))
    lengths = all(MIN_FOCAL_PX <= value <= MAX_PX for value in (fx, fy))
    if not (lengths and all(abs(value) <= MAX_PX for value in (cx, cy, *message.k))):
        raise ContractError(
            f'topic "{topic}": K is {list(message.k)}; focal lengths must lie in {MIN_FOCAL_PX:g} '
            f'to {MAX_PX:g} pixels, and nothing may be beyond. Calibrate the camera'
        )
    try:
        return Intrinsics(message.width, message.height, fx, fy, cx, cy)
    except ValueError as error:
        raise ContractError(f'topic "{topic}": {error}') from error
