"""Reads frames from MCAP bags, also from one whose recording was cut off."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from osmabench_ros.errors import MissingDependencyError, SequenceError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.sequences.bag_messages import (
    CAMERA_POSE,
    COLOR,
    DEPTH,
    DEPTH_INFO,
    INSTANCE,
    SEMANTIC,
    make_codec,
)
from osmabench_ros.sequences.bags import BAG_FOLDER
from osmabench_ros.sequences.layout import SequenceInfo, read_info

NEEDED = (COLOR, DEPTH, DEPTH_INFO, CAMERA_POSE)
OPTIONAL = (SEMANTIC, INSTANCE)


class BagSequence:
    """A sequence in an MCAP bag; messages of one stamp make a frame.

    Parameters
    ----------
    path : Path
        An .mcap file, a folder of them, or a folder that `BagWriter` wrote.
    namespace : str
        Of the topics, such as '/robot'.

    Raises
    ------
    SequenceError
        If there is no bag, a topic is missing, or no stamp has all messages.
    MissingDependencyError
        If mcap or rosbags is not installed.
    """

    def __init__(self, path: Path, namespace: str = '') -> None:
        self._path = path
        self._files = _bag_files(path)
        self._codec = make_codec()
        self._prefix = f'/{namespace.strip("/")}/' if namespace.strip('/') else '/'
        self.cut_off = ''
        self._topics, self._stamps_ns, self.incomplete, self._intrinsics = self._survey()
        info, _ = read_info(path if path.is_dir() else path.parent)
        self._info = info

    @property
    def info(self) -> SequenceInfo:
        """Where the frames come from."""
        return self._info

    @property
    def intrinsics(self) -> Intrinsics:
        """Camera of all frames."""
        return self._intrinsics

    @property
    def stamps_ns(self) -> Sequence[int]:
        """Stamps of the frames, ascending."""
        return self._stamps_ns

    @property
    def description(self) -> str:
        """The bag; says so if it was cut off or if frames lack messages."""
        text = f'bag {self._path}'
        if self.cut_off:
            text += f', cut off after {len(self)} frames ({self.cut_off})'
        if self.incomplete:
            text += f', {self.incomplete} more stamps lack an image or a pose'
        return text

    def __len__(self) -> int:
        return len(self._stamps_ns)

    def __iter__(self) -> Iterator[Frame]:
        index_of = {stamp_ns: index for index, stamp_ns in enumerate(self._stamps_ns)}
        pending: dict[int, dict[str, bytes]] = {}
        ready: dict[int, Frame] = {}
        following = 0
        for topic, stamp_ns, data in self._messages():
            if topic not in self._topics or stamp_ns not in index_of:
                continue
            messages = pending.setdefault(stamp_ns, {})
            messages[topic] = data
            if len(messages) == len(self._topics):
                index = index_of[stamp_ns]
                ready[index] = self._frame(index, stamp_ns, pending.pop(stamp_ns))
            while following in ready:
                yield ready.pop(following)
                following += 1

    def _frame(self, index: int, stamp_ns: int, messages: dict[str, bytes]) -> Frame:
        try:
            frame = self._codec.frame(index, stamp_ns, messages)
        except ValueError as error:
            raise SequenceError(f'{self._path}: {error}') from error
        if frame.intrinsics != self._intrinsics:
            raise SequenceError(
                f'{self._path}, frame {index}: topic "{DEPTH_INFO}" changed from '
                f'{self._intrinsics} to {frame.intrinsics}; a sequence has one camera'
            )
        mount = self._info.base_to_camera
        if mount is not None:
            frame = replace(frame, base_pose=frame.camera_pose @ mount.inverse())
        return frame

    def _survey(self) -> tuple[tuple[str, ...], list[int], int, Intrinsics]:
        """Look through the bag once for its topics and the stamps that have them all."""
        stamps: dict[str, set[int]] = {}
        camera = b''
        for topic, stamp_ns, data in self._messages():
            if topic not in stamps and topic == DEPTH_INFO:
                camera = data
            stamps.setdefault(topic, set()).add(stamp_ns)
        missing = [self._prefix + topic for topic in NEEDED if topic not in stamps]
        if missing:
            reason = f'; it was cut off ({self.cut_off})' if self.cut_off else ''
            raise SequenceError(
                f'{self._path} has no message on {", ".join(missing)}{reason}. Record these '
                'topics, or name their namespace'
            )
        topics = (*NEEDED, *(topic for topic in OPTIONAL if topic in stamps))
        complete = set.intersection(*(stamps[topic] for topic in topics))
        if not complete:
            raise SequenceError(
                f'{self._path}: at no stamp is there a message on each of {", ".join(topics)}; '
                'images, camera and pose of a frame must have equal header stamps'
            )
        incomplete = len(set.union(*(stamps[topic] for topic in topics))) - len(complete)
        return topics, sorted(complete), incomplete, self._codec.intrinsics(camera)

    def _messages(self) -> Iterator[tuple[str, int, bytes]]:
        """Yield topic, header stamp and serialized message, as far as the files go."""
        wanted = {self._prefix + topic: topic for topic in (*NEEDED, *OPTIONAL)}
        for path in self._files:
            yield from self._messages_of(path, wanted)

    def _messages_of(self, path: Path, wanted: dict[str, str]) -> Iterator[tuple[str, int, bytes]]:
        mcap = _mcap()
        topics: dict[int, str] = {}
        with path.open('rb') as stream:
            reader = mcap.stream_reader.StreamReader(stream)
            iterator = reader.records
            while True:
                try:
                    record = next(iterator)
                except StopIteration:
                    return
                # Over a cut or a broken chunk stumbles the reader, struct or a decompressor, each
                # with errors of its own; what came before is good in any case.
                except Exception as error:
                    self.cut_off = f'{path.name}: {str(error) or type(error).__name__}'
                    return
                if isinstance(record, mcap.records.Channel) and record.topic in wanted:
                    topics[record.id] = wanted[record.topic]
                elif isinstance(record, mcap.records.Message) and record.channel_id in topics:
                    topic = topics[record.channel_id]
                    yield topic, _header_stamp_ns(record.data), record.data


def _mcap() -> Any:
    try:
        import mcap.exceptions
        import mcap.records
        import mcap.stream_reader
    except ImportError as error:
        raise MissingDependencyError(
            f'bags need mcap ({error}); pip install osmabench_ros[bags]'
        ) from error
    return mcap


def _header_stamp_ns(data: bytes) -> int:
    """Return the stamp with which every message with a header begins, after CDR's 4 bytes."""
    little = data[1] & 1
    seconds, nanoseconds = struct.unpack_from('<iI' if little else '>iI', data, 4)
    return int(seconds * 10**9 + nanoseconds)


def _bag_files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    folder = path / BAG_FOLDER if (path / BAG_FOLDER).is_dir() else path
    # name_2.mcap comes before name_10.mcap.
    files = sorted(folder.glob('*.mcap'), key=lambda item: (len(item.name), item.name))
    if not files:
        raise SequenceError(f'{path} is no MCAP bag; name an .mcap file or a folder with one')
    return files
