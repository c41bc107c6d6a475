"""Recorded sequences as a source of frames."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import ConfigError, SequenceError
from osmabench_ros.geometry.axes import optical_pose_in_link
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.scenes.lights import Lighting
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.bag_reader import BagSequence
from osmabench_ros.sequences.bags.bag_storage import is_bag
from osmabench_ros.sequences.reader import FolderSequence, RecordedSequence
from osmabench_ros.sequences.reading import AS_IN_THE_CONTRACT, SequenceReading
from osmabench_ros.simulation.conditions import OSMA_FRAME_RATE_HZ
from osmabench_ros.simulation.frame_source import SimulatedFrame

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
