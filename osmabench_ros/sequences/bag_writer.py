"""Writes a sequence as an MCAP bag that `ros2 bag play` plays, without ROS."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from osmabench_ros.base.contract import TYPES
from osmabench_ros.errors import SequenceError, errors_as
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.sequences.bag_messages import make_codec
from osmabench_ros.sequences.layout import SequenceInfo, write_info
from osmabench_ros.sequences.writer import fresh_directory

BAG_FOLDER = 'bag'
"""Inside the sequence's folder: `ros2 bag play SEQUENCE/bag`."""


class BagWriter:
    """Writes the topics of the bridge, with frames' stamps, into bag/ of a new folder."""

    def __init__(self, directory: Path, info: SequenceInfo) -> None:
        self._codec = make_codec()
        from rosbags.rosbag2 import StoragePlugin, Writer

        fresh_directory(directory)
        self._directory, self._info = directory, info
        self._bag = Writer(directory / BAG_FOLDER, version=9, storage_plugin=StoragePlugin.MCAP)
        self._bag.open()
        self._connections: dict[str, Any] = {}
        self._last_ns = -1

    def write(self, frame: Frame) -> None:
        """Write a frame's messages; SequenceError if time runs backwards or the disk is full."""
        if frame.stamp_ns <= self._last_ns:
            raise SequenceError(
                f'frame {frame.index}: stamp {frame.stamp_ns} ns does not come after '
                f'{self._last_ns} ns; write frames in order of time, each once'
            )
        self._last_ns = frame.stamp_ns
        with errors_as(SequenceError, f'{self._directory} cannot be written', OSError):
            for topic, data in self._codec.serialized(frame).items():
                self._bag.write(self._connection(topic), frame.stamp_ns, data)

    def close(self) -> None:
        """Write index and sequence.json; SequenceError without frames, or if the disk is full."""
        with errors_as(SequenceError, f'{self._directory} cannot be written', OSError):
            self._bag.close()
            write_info(self._directory, self._info, None)
        if not self._connections:
            raise SequenceError(f'{self._directory}: a bag needs a frame; none was written')

    def _connection(self, topic: str) -> Any:
        if topic not in self._connections:
            self._connections[topic] = self._bag.add_connection(
                f'/{topic}', TYPES[topic], typestore=self._codec.typestore
            )
        return self._connections[topic]
