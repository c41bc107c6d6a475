"""Frames as ROS messages and back, without ROS: the standard types through rosbags."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.image_codec import (
    PIXEL_TYPES,
    classes_of,
    color_of,
    depth_of,
    instances_of,
)
from osmabench_ros.errors import MissingDependencyError, SequenceError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences.compressed_image import COMPRESSED_IMAGE, unpacked_image

COLOR = 'camera/color/image_raw'
DEPTH = 'camera/depth/image_rect'
SEMANTIC = 'camera/semantic/image_raw'
INSTANCE = 'camera/instance/image_raw'
COLOR_INFO = 'camera/color/camera_info'
DEPTH_INFO = 'camera/depth/camera_info'
CAMERA_POSE = 'ground_truth/camera_pose'
WORLD_FRAME = 'world'
CAMERA_FRAME = 'camera_color_optical_frame'

TYPES = {
    COLOR: 'sensor_msgs/msg/Image',
    DEPTH: 'sensor_msgs/msg/Image',
    SEMANTIC: 'sensor_msgs/msg/Image',
    INSTANCE: 'sensor_msgs/msg/Image',
    COLOR_INFO: 'sensor_msgs/msg/CameraInfo',
    DEPTH_INFO: 'sensor_msgs/msg/CameraInfo',
    CAMERA_POSE: 'geometry_msgs/msg/PoseStamped',
}
"""Message types of the topics of a frame, those that the bridge publishes."""


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
        """Return a frame from the serialized messages of one stamp; the pose may be given.

        Unpacks images whose type in `types` is CompressedImage. Raises SequenceError, which names
        the topic, if a message is malformed or the messages contradict each other.
        """
        return Frame(
            index,
            stamp_ns,
            pose or self._decoded(CAMERA_POSE, data, _pose_from),
            self._decoded(DEPTH_INFO, data, _intrinsics_from),
            self._decoded(COLOR, data, color_of, types),
            self._decoded(DEPTH, data, depth_of, types),
            self._decoded(SEMANTIC, data, classes_of, types) if SEMANTIC in data else None,
            self._decoded(INSTANCE, data, instances_of, types) if INSTANCE in data else None,
        )

    def intrinsics(self, data: bytes) -> Intrinsics:
        """Return the camera of a serialized CameraInfo; errors as of `frame`."""
        camera: Intrinsics = self._decoded(DEPTH_INFO, {DEPTH_INFO: data}, _intrinsics_from)
        return camera

    def frame_id(self, image: bytes, message_type: str = TYPES[COLOR]) -> str:
        """Return the frame of a serialized image; errors as of `frame`."""
        name: str = self._decoded(
            COLOR,
            {COLOR: image},
            lambda message: message.header.frame_id,
            {COLOR: message_type},
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
            return convert(unpacked_image(message) if kind == COMPRESSED_IMAGE else message)
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
        dtype, channels = PIXEL_TYPES[encoding]
        plain = np.ascontiguousarray(pixels, dtype.newbyteorder('<'))
        return self._make(
            TYPES[COLOR],
            header=header,
            height=pixels.shape[0],
            width=pixels.shape[1],
            encoding=encoding,
            is_bigendian=0,
            step=pixels.shape[1] * channels * plain.itemsize,
            data=plain.view(np.uint8).ravel(),
        )

    def _camera_info(self, camera: Intrinsics, header: Any) -> Any:
        return self._make(
            TYPES[DEPTH_INFO],
            header=header,
            height=camera.height,
            width=camera.width,
            distortion_model='plumb_bob',
            d=np.zeros(5),
            k=camera.matrix.ravel(),
            r=np.eye(3).ravel(),
            p=np.hstack([camera.matrix, np.zeros((3, 1))]).ravel(),
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
    try:
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MissingDependencyError(
            f'bags need rosbags ({error}); pip install osmabench_ros[bags]'
        ) from error
    return Codec(get_typestore(Stores.ROS2_HUMBLE))


def _pose_from(message: Any) -> Pose:
    point, turn = message.pose.position, message.pose.orientation
    return Pose.from_quaternion((turn.x, turn.y, turn.z, turn.w), (point.x, point.y, point.z))


def _intrinsics_from(message: Any) -> Intrinsics:
    if np.abs(message.d).max(initial=0.0) > 1e-9:
        raise ValueError(f'images must be rectified, D is {list(message.d)}')
    k = [float(value) for value in message.k]
    return Intrinsics(message.width, message.height, k[0], k[4], k[2], k[5])
