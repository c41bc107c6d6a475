"""Recorded sequences, in folders of OSMa-Bench and ScanNet or in bags, as a source of frames."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_text
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import ConfigError, OsmabenchError, SequenceError, errors_as
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bag_reader import BagSequence
from osmabench_ros.sequences.bags.bag_storage import is_bag
from osmabench_ros.sequences.layout import (
    OSMA,
    SCANNET,
    STAMPS_FILE,
    RecordedSequence,
    SequenceFormat,
    decode_classes,
    decode_depth,
    image_path,
    read_16_bit,
    read_camera,
    read_color,
    read_info,
    read_poses,
)
from osmabench_ros.sequences.reading import AS_IN_THE_CONTRACT, SequenceReading
from osmabench_ros.simulation.conditions import OSMA_FRAME_RATE_HZ
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS, SimulatedFrame

# The simulator in the identity of a run that plays a sequence.
RECORDED = 'recorded'


def names_of(sequence: RecordedSequence, path: Path) -> tuple[str, str]:
    """Return dataset and scene of a sequence, from its path if its metadata lack them."""
    return sequence.info.dataset or 'sequences', sequence.info.scene or path.resolve().stem


def open_sequence(path: Path, reading: SequenceReading = AS_IN_THE_CONTRACT) -> RecordedSequence:
    """Open a sequence of `osmabench scene generate`, OSMa-Bench or ScanNet, or a bag.

    `path` is a folder, or an .mcap or .db3 file; `reading` names the topics of a bag that differ
    from the contract. Raises SequenceError, which names file and frame, if it is not a sequence or
    incomplete, ConfigError if a folder of images is given a reading.
    """
    with naming_errors(path, SequenceError):
        return _open(path, reading)


def _open(path: Path, reading: SequenceReading) -> RecordedSequence:
    if not path.exists():
        raise SequenceError(f'{path} does not exist; name a sequence, a bag or an .mcap file')
    if path.is_file() or is_bag(path):
        return BagSequence(path, reading)
    if reading != AS_IN_THE_CONTRACT:
        raise ConfigError(f'{path} is a folder of images; topics can be named only for bags')
    return FolderSequence(path)


class FolderSequence(RecordedSequence):
    """A sequence in a folder: traj.txt and results/, or pose/, color/ and depth/; read on demand.

    `frame_rate_hz` is for a sequence without timestamps.txt. Raises SequenceError, which names
    file and frame, if it is not a sequence, or a file is missing, left over or malformed.
    """

    def __init__(self, directory: Path, frame_rate_hz: float = OSMA_FRAME_RATE_HZ) -> None:
        self._directory = directory
        self.info, form = read_info(directory)
        self._form = form or _guess_format(directory)
        self.description = f'{self._form.layout} sequence {directory}'
        if self._form.layout == 'tum':
            raise SequenceError(
                f'{directory} has the layout tum, which is written for methods and not read; '
                'generate the sequence as osma or scannet'
            )
        self.poses = read_poses(directory, self._form)
        if not self.poses:
            raise SequenceError(f'{directory} has no frame; generate the sequence again')
        self.stamps_ns = self._read_stamps(frame_rate_hz)
        self._kinds = [kind for kind in ('semantic', 'instance') if self._numbers(kind)]
        for kind in ('color', 'depth', *self._kinds):
            self._check_numbers(kind)
        with naming_errors(directory, SequenceError):
            self.intrinsics, self._depth_scale = read_camera(directory, self._form)

    def __len__(self) -> int:
        return len(self.poses)

    def __iter__(self) -> Iterator[Frame]:
        for index in range(len(self)):
            yield self.frame(index)

    def frame(self, index: int) -> Frame:
        """Read a frame; SequenceError if an image is missing, broken or of the wrong size."""
        remedy = 'copy or generate the sequence again'
        with errors_as(SequenceError, f'frame {index}', OsmabenchError, remedy=remedy):
            return self._frame(index)

    def _frame(self, index: int) -> Frame:
        images: dict[str, NDArray[Any]] = {'color': read_color(self._path('color', index))}
        for kind in ('depth', *self._kinds):
            images[kind] = read_16_bit(self._path(kind, index))
        for kind, image in images.items():
            self._check_size(image.shape, kind, index)
        semantic, instance = images.get('semantic'), images.get('instance')
        pose, mount = self.poses[index], self.info.base_to_camera
        return Frame(
            index,
            self.stamps_ns[index],
            pose,
            self.intrinsics,
            images['color'],
            decode_depth(images['depth'], self._depth_scale),
            None if semantic is None else decode_classes(semantic, self.info.label_set),
            None if instance is None else instance.astype(np.int32),
            None if mount is None else pose @ mount.inverse(),
        )

    def _path(self, kind: str, index: int) -> Path:
        return self._directory / image_path(self._form, kind, index)

    def _read_stamps(self, frame_rate_hz: float) -> list[int]:
        path, count = self._directory / STAMPS_FILE, len(self.poses)
        if not path.exists():
            return [FIRST_STAMP_NS + round(index * 1e9 / frame_rate_hz) for index in range(count)]
        remedy = 'a line is a stamp in nanoseconds'
        with errors_as(SequenceError, str(path), ValueError, remedy=remedy):
            stamps = [int(line) for line in read_text(path, SequenceError).splitlines()]
        if len(stamps) != count:
            raise SequenceError(
                f'{path} has {len(stamps)} stamps for {count} poses; frame '
                f'{min(len(stamps), count)} lacks one of them'
            )
        if sorted(set(stamps)) != stamps:
            raise SequenceError(f'{path}: stamps must ascend, each frame later than the last')
        return stamps

    def _numbers(self, kind: str) -> set[int]:
        example = self._path(kind, 0)
        prefix = example.stem.rstrip('0')
        pattern = re.compile(re.escape(prefix) + r'(\d+)' + re.escape(example.suffix))
        names = os.listdir(example.parent) if example.parent.is_dir() else []
        return {int(found[1]) for found in map(pattern.fullmatch, names) if found}

    def _check_numbers(self, kind: str) -> None:
        odd = set(range(len(self))) ^ self._numbers(kind)
        if not odd:
            return
        index = min(odd)
        path = self._path(kind, index)
        what = 'is missing' if index < len(self) else 'has no pose'
        raise SequenceError(
            f'frame {index}: {path} {what}; there are {len(self)} poses. Copy or generate the '
            'sequence again'
        )

    def _check_size(self, size: tuple[int, ...], kind: str, index: int) -> None:
        expected = (self.intrinsics.height, self.intrinsics.width)
        if size[:2] != expected:
            raise SequenceError(
                f'{self._path(kind, index)} has {size[1]} x {size[0]} pixels, '
                f'the camera {expected[1]} x {expected[0]}; register all images to the depth '
                'camera'
            )


def _guess_format(directory: Path) -> SequenceFormat:
    if (directory / 'results').is_dir():
        form, example = OSMA, directory / 'results' / 'frame000000.png'
    elif (directory / 'pose').is_dir():
        form, example = SCANNET, directory / 'color' / '0.png'
    else:
        raise SequenceError(
            f'{directory} is not a sequence; it must hold results/ and traj.txt (OSMa-Bench) or '
            'color/, depth/, pose/ and intrinsic/ (ScanNet)'
        )
    return form.model_copy(update={'color': 'png' if example.exists() else 'jpg'})


class RecordedFrames:
    """A `FrameSource` of a recorded sequence, without lights, which were not recorded."""

    def __init__(self, sequence: RecordedSequence) -> None:
        self._sequence, info = sequence, sequence.info
        self.dataset, self.scene = info.dataset, info.scene
        self.label_set = info.label_set or LabelSet('none', ())
        self.intrinsics, self.description = sequence.intrinsics, sequence.description
        # Without a robot, base_link is at the camera.
        self.base_to_camera = info.base_to_camera or optical_pose_in_link()
        self._frames: Iterator[Frame] = iter(())
        self._next: int | None = None

    @property
    def frame_rate_hz(self) -> float:
        """Frames per second of stamp time, on average."""
        stamps = self._sequence.stamps_ns
        if len(stamps) < 2:
            return OSMA_FRAME_RATE_HZ
        return (len(stamps) - 1) * 1e9 / (stamps[-1] - stamps[0])

    def __len__(self) -> int:
        return len(self._sequence)

    def frame(self, index: int) -> SimulatedFrame:
        """Read a frame, fast if in order; SequenceError if unreadable, IndexError if none."""
        if not 0 <= index < len(self):
            raise IndexError(f'frame {index} of {len(self)}')
        if self._next is None or index < self._next:
            self._frames, self._next = iter(self._sequence), 0
        while True:
            frame = next(self._frames)
            self._next += 1
            if self._next > index:
                break
        base = frame.camera_pose @ self.base_to_camera.inverse()
        return SimulatedFrame(replace(frame, base_pose=base), Lighting.unlit(), 0)

    def close(self) -> None:
        """Close the files of the sequence."""
        self._frames, self._next = iter(()), None
