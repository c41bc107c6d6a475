"""Frames as ROS messages and back by rosbags, compressed images too; needs no ROS."""

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base import contract, images
from osmabench_ros.base.configuration import extra
from osmabench_ros.base.contract import TYPES
from osmabench_ros.base.images import decoded_image
from osmabench_ros.errors import SequenceError, needing
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose

# Before the image of compressed_depth_image_transport: its format, and two numbers.
_DEPTH_HEADER = struct.Struct('<iff')
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
        remedy = 'record depth with compressedDepth.format png, or plain'
        raise SequenceError(f'format "{encoding}; {rest}" is not PNG; {remedy}')
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
    return SimpleNamespace(header=header, **images.image_fields(pixels, encoding))


# The field of a `Frame` that an image is, its encoding, and how its message is read.
IMAGES: Mapping[str, tuple[str, str, Callable[[Any], Any]]] = {
    contract.COLOR: ('color', 'rgb8', images.color_of),
    contract.DEPTH: ('depth_m', '32FC1', images.depth_of),
    contract.SEMANTIC: ('semantic', '16UC1', images.classes_of),
    contract.INSTANCE: ('instance', '32SC1', images.instances_of),
}


@dataclass(frozen=True)
class Codec:
    """Makes, serializes and reads messages with the standard types of a typestore of rosbags."""

    typestore: Any

    def serialize(self, frame: Frame) -> dict[str, memoryview]:
        """Return the serialized messages of a frame by topic, all with the frame's stamp."""
        stamp = self._make('builtin_interfaces/msg/Time', *divmod(frame.stamp_ns, 10**9))
        header = self._make('std_msgs/msg/Header', stamp, contract.CAMERA_FRAME)
        in_world = self._make('std_msgs/msg/Header', stamp, contract.WORLD_FRAME)
        point = self._make('geometry_msgs/msg/Point', *frame.camera_pose.translation.tolist())
        turn = self._make('geometry_msgs/msg/Quaternion', *frame.camera_pose.quaternion.tolist())
        pose = self._make('geometry_msgs/msg/Pose', point, turn)
        info = self._make(
            contract.CAMERA_INFO,
            header=header,
            **frame.intrinsics.make_camera_info_fields(),
            binning_x=0,
            binning_y=0,
            roi=self._make('sensor_msgs/msg/RegionOfInterest', 0, 0, 0, 0, False),
        )
        messages = {
            contract.CAMERA_POSE: self._make(TYPES[contract.CAMERA_POSE], in_world, pose),
            contract.COLOR_INFO: info,
            contract.DEPTH_INFO: info,
        }
        for topic, (name, encoding, _) in IMAGES.items():
            if (pixels := getattr(frame, name)) is not None:
                fields = images.image_fields(pixels, encoding)
                messages[topic] = self._make(TYPES[topic], header=header, **fields)
        return {
            topic: self.typestore.serialize_cdr(message, TYPES[topic])
            for topic, message in messages.items()
        }

    def frame(
        self,
        index: int,
        stamp_ns: int,
        data: Mapping[str, bytes],
        pose: Pose,
        types: Mapping[str, str] = TYPES,
    ) -> Frame:
        """Return a frame of the messages of one stamp; SequenceError names the topic."""
        pixels = {
            name: self._decode(topic, data[topic], types.get(topic, TYPES[topic]), convert)
            for topic, (name, _, convert) in IMAGES.items()
            if topic in data or topic in (contract.COLOR, contract.DEPTH)
        }
        return Frame(index, stamp_ns, pose, self.intrinsics(data[contract.DEPTH_INFO]), **pixels)

    def intrinsics(self, data: bytes) -> Intrinsics:
        """Return the camera of a serialized CameraInfo; errors as of `frame`."""
        topic, convert = contract.DEPTH_INFO, Intrinsics.from_camera_info
        return cast(Intrinsics, self._decode(topic, data, TYPES[topic], convert))

    def frame_id(self, image: bytes, message_type: str) -> str:
        """Return the frame of a serialized colour image, the contract's if empty; see `frame`."""
        header = self._decode(contract.COLOR, image, message_type, lambda image: image.header)
        return str(header.frame_id).lstrip('/') or contract.CAMERA_FRAME

    def _decode(self, topic: str, data: bytes, kind: str, convert: Callable[[Any], Any]) -> Any:
        try:
            message = self.typestore.deserialize_cdr(data, kind)
            return convert(unpack_image(message) if kind == contract.COMPRESSED_IMAGE else message)
        except Exception as error:  # rosbags meets malformed data with errors of many kinds
            reason = str(error) or type(error).__name__
            raise SequenceError(f'topic "{topic}" of the bag: {reason}') from error

    def _make(self, name: str, *values: Any, **named: Any) -> Any:
        return self.typestore.types[name](*values, **named)


@lru_cache(maxsize=1)
def make_codec() -> Codec:
    """Return a codec of the standard types; MissingDependencyError if rosbags is missing."""
    with needing('bags need rosbags', extra('bags')):
        from rosbags.typesys import Stores, get_typestore
    return Codec(get_typestore(Stores.ROS2_HUMBLE))
