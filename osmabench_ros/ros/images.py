"""Images and camera information to messages and back."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.intrinsics import Intrinsics

MIN_FOCAL_PX, MAX_PX = 1e-3, 1e6
"""Of a camera matrix; beyond, directions of pixels are no longer exact."""

PIXEL_TYPES: dict[str, tuple[np.dtype[Any], int]] = {
    'rgb8': (np.dtype(np.uint8), 3),
    'bgr8': (np.dtype(np.uint8), 3),
    '32FC1': (np.dtype(np.float32), 1),
    '16UC1': (np.dtype(np.uint16), 1),
    'mono16': (np.dtype(np.uint16), 1),
    '32SC1': (np.dtype(np.int32), 1),
}
"""Element type and channels of the encodings that the contract knows."""


def image_to_message(image: NDArray[Any], encoding: str, stamp: Time, frame_id: str) -> Image:
    """Return an Image message.

    Parameters
    ----------
    image : ndarray, shape (height, width) or (height, width, 3)
        Pixels of the encoding's type.
    encoding : str
        A key of `PIXEL_TYPES`.
    stamp : Time
        Stamp of the frame.
    frame_id : str
        Optical frame.
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


def image_from_message(message: Image, topic: str) -> NDArray[Any]:
    """Return pixels of shape (height, width) or (height, width, 3).

    Raises
    ------
    ContractError
        If the encoding is unknown or the size of the data contradicts the header.
    """
    if message.encoding not in PIXEL_TYPES:
        raise ContractError(
            f'topic "{topic}": encoding "{message.encoding[:40]}" is not supported; '
            f'publish one of {", ".join(PIXEL_TYPES)}'
        )
    dtype, channels = PIXEL_TYPES[message.encoding]
    row = message.width * channels * dtype.itemsize
    filled = message.height > 0 and 0 < row <= message.step
    if not filled or len(message.data) != message.step * message.height:
        raise ContractError(
            f'topic "{topic}": {len(message.data)} bytes with a step of {message.step} do not '
            f'make {message.width} x {message.height} pixels of {message.encoding}'
        )
    rows = np.frombuffer(message.data, np.uint8).reshape(message.height, message.step)
    pixels = np.ascontiguousarray(rows[:, :row]).view(
        dtype.newbyteorder('>' if message.is_bigendian else '<')
    )
    pixels = pixels.astype(dtype, copy=False)
    if channels == 1:
        return pixels
    pixels = pixels.reshape(message.height, message.width, channels)
    return pixels[..., ::-1] if message.encoding == 'bgr8' else pixels


def depth_from_message(message: Image, topic: str) -> NDArray[np.float32]:
    """Return depth in metres with REP-118's meaning of NaN and infinity.

    16-bit images are millimetres, in which 0 is invalid.
    """
    depth = image_from_message(message, topic)
    if depth.dtype == np.uint16:
        return np.where(depth == 0, np.float32(np.nan), depth.astype(np.float32) / 1000)
    if depth.dtype != np.float32:
        raise ContractError(f'topic "{topic}": depth must be 32FC1 or 16UC1')
    return depth


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

    Raises
    ------
    ContractError
        If the camera is distorted or its matrix is not that of a pinhole.
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
