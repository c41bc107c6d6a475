"""Reads sequences in the folder layouts of OSMa-Bench and ScanNet."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.documents import read_text
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import OsmabenchError, SequenceError, errors_as
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences.layout import (
    OSMA,
    SCANNET,
    STAMPS_FILE,
    SequenceFormat,
    SequenceInfo,
    decode_classes,
    decode_depth,
    image_path,
    read_16_bit,
    read_camera,
    read_color,
    read_info,
    read_poses,
)
from osmabench_ros.simulation.conditions import OSMA_FRAME_RATE_HZ
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS


class RecordedSequence(Protocol):
    """Frames that were recorded, in a folder or a bag."""

    info: SequenceInfo
    intrinsics: Intrinsics
    """Camera of all frames."""
    stamps_ns: Sequence[int]
    """Stamps of the frames, ascending."""
    poses: Sequence[Pose]
    """Camera poses of all frames in the z-up world."""
    description: str

    def __len__(self) -> int:
        """Return the number of frames."""

    def __iter__(self) -> Iterator[Frame]:
        """Yield the frames in order of time."""


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
