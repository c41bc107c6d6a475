"""Images and camera information to messages and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base.image_codec import depth_of, image_fields, pixels_of
from osmabench_ros.errors import ContractError, errors_as
from osmabench_ros.geometry.intrinsics import Intrinsics


def image_to_message(image: NDArray[Any], encoding: str, stamp: Time, frame_id: str) -> Image:
    """Return an Image message; pixels, encodings and errors are those of `image_fields`."""
    fields = image_fields(image, encoding)
    data = fields.pop('data')
    message = Image(**fields)
    message.header.stamp = stamp
    message.header.frame_id = frame_id
    # The message's own array is filled from the pixels' memory: one copy. Assigning would copy
    # once more, or check the bytes of a list one by one.
    message.data.frombytes(data.data)
    return message


def image_from_message(
    message: Image, topic: str, convert: Callable[[Image], NDArray[Any]] = pixels_of
) -> NDArray[Any]:
    """Return what a function of `image_codec` makes of an image; ContractError if malformed."""
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        return convert(message)


def depth_from_message(message: Image, topic: str) -> NDArray[np.float32]:
    """Return depth in metres; raises as `image_from_message`."""
    return image_from_message(message, topic, depth_of)


def camera_info_message(intrinsics: Intrinsics, stamp: Time, frame_id: str) -> CameraInfo:
    """Return CameraInfo with K, D, R and P of an undistorted pinhole camera."""
    message = CameraInfo(**intrinsics.camera_info_fields())
    message.header.stamp = stamp
    message.header.frame_id = frame_id
    return message


def intrinsics_from_message(message: CameraInfo, topic: str) -> Intrinsics:
    """Return intrinsics; ContractError if the camera is distorted or no pinhole."""
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        return Intrinsics.from_camera_info(message)
