"""Images as messages and back, and the classes that they show."""

from collections.abc import Callable
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image
from std_msgs.msg import ColorRGBA

from osmabench_ros.base import contract
from osmabench_ros.base.images import color_of, depth_of, image_fields, pixels_of
from osmabench_ros.errors import ConfigError, ContractError, errors_as
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.msg import LabelClass as LabelClassMessage
from osmabench_ros.msg import LabelInfo
from osmabench_ros.reports.palette import Rgb, assign_class_colors
from osmabench_ros.ros.messages.poses import stamp_to_message
from osmabench_ros.semantics.labels import LabelClass, LabelSet
from osmabench_ros.sequences.bag_messages import IMAGES

# As `IMAGES`, with the image that no bag needs.
FRAME_IMAGES = {**IMAGES, contract.ALBEDO: ('albedo', 'rgb8', color_of)}


def image_to_message(image: NDArray[Any], encoding: str, stamp: Time, frame_id: str) -> Image:
    """Return an Image message; pixels, encodings and errors are as of `image_fields`."""
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
    """Return an image as a function of `image_codec` converts it; ContractError if malformed."""
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        return convert(message)


def depth_from_message(message: Image, topic: str) -> NDArray[np.float32]:
    """Return depth in metres; raises as `image_from_message`."""
    return image_from_message(message, topic, depth_of)


def camera_info_message(intrinsics: Intrinsics, stamp: Time, frame_id: str) -> CameraInfo:
    """Return CameraInfo with K, D, R and P of an undistorted pinhole camera."""
    message = CameraInfo(**intrinsics.make_camera_info_fields())
    message.header.stamp = stamp
    message.header.frame_id = frame_id
    return message


def intrinsics_from_message(message: CameraInfo, topic: str) -> Intrinsics:
    """Return intrinsics; ContractError if the camera is distorted or no pinhole."""
    with errors_as(ContractError, f'topic "{topic}"', ValueError):
        return Intrinsics.from_camera_info(message)


def color_message(color: Rgb, alpha: float) -> ColorRGBA:
    """Return a colour message of 8-bit channels."""
    red, green, blue = (channel / 255 for channel in color)
    return ColorRGBA(r=red, g=green, b=blue, a=alpha)


def label_set_to_message(label_set: LabelSet, stamp_ns: int) -> LabelInfo:
    """Return the message of a label set."""
    colors = assign_class_colors(label_set)
    classes = [
        LabelClassMessage(
            id=item.id,
            name=item.name,
            structure=item.structure,
            color=color_message(colors[item.id], 1.0),
        )
        for item in label_set.classes
    ]
    message = LabelInfo(name=label_set.name, sha256=label_set.sha256, classes=classes)
    message.header.stamp = stamp_to_message(stamp_ns)
    return message


def label_set_from_message(message: LabelInfo, topic: str) -> LabelSet:
    """Return the label set of a message; raises ContractError if it or its digest is wrong."""
    with errors_as(ContractError, f'topic "{topic}"', ConfigError):
        label_set = LabelSet(
            message.name,
            tuple(LabelClass(item.id, item.name, item.structure) for item in message.classes),
        )
    if message.sha256 and message.sha256 != label_set.sha256:
        raise ContractError(f'topic "{topic}": sha256 does not match the classes')
    return label_set
