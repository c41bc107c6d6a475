"""Frames as ROS messages and back by rosbags, compressed images too; needs no ROS."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.configuration import extra
from osmabench_ros.base.contract import (
    CAMERA_FRAME,
    CAMERA_POSE,
    COLOR,
    COLOR_INFO,
    COMPRESSED_IMAGE,
    DEPTH,
    DEPTH_INFO,
    INSTANCE,
    SEMANTIC,
    TYPES,
    WORLD_FRAME,
)
from osmabench_ros.base.image_codec import (
    classes_of,
    color_of,
    depth_of,
    image_fields,
    instances_of,
)
from osmabench_ros.base.images import decoded_image
from osmabench_ros.errors import SequenceError, needing
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences.pose_topics import valid_pose

_DEPTH_HEADER = struct.Struct('<iff')
"""Before the image of compressed_depth_image_transport: its format, and two numbers."""
_PNG = b'\x89PNG\r\n\x1a\n'


def unpack_image(message: Any) -> SimpleNamespace:
    """Return a CompressedImage of image_transport's plugins with the fields of an Image.

    Colour becomes rgb8. Depth keeps its encoding: 16UC1 in millimetres, or 32FC1 in metres, which
    the plugin keeps as inverse depth. Raises SequenceError if the format is unknown or the image
    damaged, LimitError if it is too large.
    """
    encoding, _, rest = (part.strip() for part in message.format.partition(';'))
    data = bytes(message.data)
    if 'compressedDepth' in message.format:
        return _depth(message.header, encoding, rest, data)
    pixels = _decode(data, message.format)
    if pixels.dtype != np.uint8:
        return _image(message.header, pixels, '16UC1')
    if encoding in ('8UC1', '32SC1', '16UC1', 'mono16', '32FC1'):
        raise SequenceError(f'format "{message.format}" holds pixels of 8 bits')
    color = np.repeat(pixels[..., None], 3, axis=2) if pixels.ndim == 2 else pixels
    # OpenCV writes its first channel as blue, whatever it is.
    if rest.rpartition(' ')[2] in ('rgb8', 'rgba8'):
        color = color[..., ::-1]
    return _image(message.header, color, 'rgb8')


def _depth(header: Any, encoding: str, rest: str, data: bytes) -> SimpleNamespace:
    place = _DEPTH_HEADER.size
    if data[place : place + len(_PNG)] != _PNG:
        raise SequenceError(
            f'format "{encoding}; {rest}" is not PNG; record depth with compressedDepth.format '
            'png, or plain'
        )
    _, scale, offset = _DEPTH_HEADER.unpack_from(data)
    pixels = _decode(data[place:], rest)
    if pixels.dtype != np.uint16 or pixels.ndim != 2:
        raise SequenceError(f'depth has {pixels.dtype} pixels, expected one channel of 16 bits')
    if encoding != '32FC1':
        return _image(header, pixels, '16UC1')
    with np.errstate(divide='ignore'):
        depth_m = np.float32(scale) / (pixels.astype(np.float32) - np.float32(offset))
    return _image(header, np.where(pixels == 0, np.float32(np.nan), depth_m), '32FC1')


def _decode(data: bytes, form: str) -> NDArray[Any]:
    """Return pixels: (height, width) of 16 bits or 8, or (height, width, 3) of 8 bits, RGB."""
    image = decoded_image(data, f'format "{form}"', SequenceError, ('JPEG', 'PNG'))
    if image.mode.startswith('I'):
        return np.asarray(image).astype(np.uint16)
    return np.asarray(image if image.mode == 'L' else image.convert('RGB'), np.uint8)


def _image(header: Any, pixels: NDArray[Any], encoding: str) -> SimpleNamespace:
    return SimpleNamespace(header=header, **image_fields(pixels, encoding))


PARTS = (COLOR, DEPTH, SEMANTIC, INSTANCE, COLOR_INFO, DEPTH_INFO, CAMERA_POSE)
"""Topics of a frame in a bag."""


@dataclass(frozen=True)
class Codec:
    """Makes, serializes and reads messages with the standard types of a typestore of rosbags."""

    typestore: Any

    def serialized(self, frame: Frame) -> dict[str, memoryview]:
        """Return the serialized messages of a frame by topic, all with the frame's stamp."""
        header = self._header(frame.stamp_ns, CAMERA_FRAME)
        messages = {
            CAMERA_POSE: self._pose(frame),
            COLOR_INFO: self._camera_info(frame.intrinsics, header),
            DEPTH_INFO: self._camera_info(frame.intrinsics, header),
            COLOR: self._image(frame.color, 'rgb8', header),
            DEPTH: self._image(frame.depth_m, '32FC1', header),
        }
        if frame.semantic is not None:
            messages[SEMANTIC] = self._image(frame.semantic, '16UC1', header)
        if frame.instance is not None:
            messages[INSTANCE] = self._image(frame.instance, '32SC1', header)
        return {
            topic: self.typestore.serialize_cdr(message, TYPES[topic])
            for topic, message in messages.items()
        }

    def frame(
        self,
        index: int,
        stamp_ns: int,
        data: Mapping[str, bytes],
        pose: Pose | None = None,
        types: Mapping[str, str] = TYPES,
    ) -> Frame:
        """Return a frame of the messages of one stamp; SequenceError names the topic."""
        return Frame(
            index,
            stamp_ns,
            pose or self._decoded(CAMERA_POSE, data, _pose_from),
            self._decoded(DEPTH_INFO, data, Intrinsics.from_camera_info),
            self._decoded(COLOR, data, color_of, types),
            self._decoded(DEPTH, data, depth_of, types),
            self._decoded(SEMANTIC, data, classes_of, types) if SEMANTIC in data else None,
            self._decoded(INSTANCE, data, instances_of, types) if INSTANCE in data else None,
        )

    def intrinsics(self, data: bytes) -> Intrinsics:
        """Return the camera of a serialized CameraInfo; errors as of `frame`."""
        camera: Intrinsics = self._decoded(
            DEPTH_INFO, {DEPTH_INFO: data}, Intrinsics.from_camera_info
        )
        return camera

    def frame_id(self, image: bytes, message_type: str = TYPES[COLOR]) -> str:
        """Return the frame of a serialized image; errors as of `frame`."""
        name: str = self._decoded(
            COLOR, {COLOR: image}, lambda message: message.header.frame_id, {COLOR: message_type}
        )
        return name.lstrip('/')

    def _decoded(
        self,
        topic: str,
        data: Mapping[str, bytes],
        convert: Callable[[Any], Any],
        types: Mapping[str, str] = TYPES,
    ) -> Any:
        kind = types.get(topic, TYPES[topic])
        try:
            message = self.typestore.deserialize_cdr(data[topic], kind)
            return convert(unpack_image(message) if kind == COMPRESSED_IMAGE else message)
        except Exception as error:  # rosbags meets malformed data with errors of many kinds
            raise SequenceError(
                f'topic "{topic}" of the bag: {str(error) or type(error).__name__}'
            ) from error

    def _make(self, name: str, *values: Any, **named: Any) -> Any:
        return self.typestore.types[name](*values, **named)

    def _header(self, stamp_ns: int, frame_id: str) -> Any:
        stamp = self._make('builtin_interfaces/msg/Time', *divmod(stamp_ns, 10**9))
        return self._make('std_msgs/msg/Header', stamp, frame_id)

    def _image(self, pixels: NDArray[Any], encoding: str, header: Any) -> Any:
        return self._make(TYPES[COLOR], header=header, **image_fields(pixels, encoding))

    def _camera_info(self, camera: Intrinsics, header: Any) -> Any:
        return self._make(
            TYPES[DEPTH_INFO],
            header=header,
            **camera.camera_info_fields(),
            binning_x=0,
            binning_y=0,
            roi=self._make('sensor_msgs/msg/RegionOfInterest', 0, 0, 0, 0, False),
        )

    def _pose(self, frame: Frame) -> Any:
        pose = frame.camera_pose
        point = self._make('geometry_msgs/msg/Point', *pose.translation.tolist())
        turn = self._make('geometry_msgs/msg/Quaternion', *pose.quaternion.tolist())
        return self._make(
            TYPES[CAMERA_POSE],
            self._header(frame.stamp_ns, WORLD_FRAME),
            self._make('geometry_msgs/msg/Pose', point, turn),
        )


@lru_cache(maxsize=1)
def make_codec() -> Codec:
    """Return a codec of the standard types; MissingDependencyError if rosbags is missing."""
    with needing('bags need rosbags', extra('bags')):
        from rosbags.typesys import Stores, get_typestore
    return Codec(get_typestore(Stores.ROS2_HUMBLE))


def _pose_from(message: Any) -> Pose:
    return valid_pose(message.pose.position, message.pose.orientation)
