"""Writes frames in the folder layouts of OSMa-Bench and ScanNet, or as a bag."""

from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from osmabench_ros.base.contract import TYPES
from osmabench_ros.base.files import is_blank
from osmabench_ros.errors import SequenceError, errors_as
from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.sequences import layout
from osmabench_ros.sequences.bag_messages import make_codec
from osmabench_ros.sequences.bags.bag_storage import INNER_FOLDER


def make_empty_folder(directory: Path) -> None:
    """Make a folder, or raise SequenceError if it is not empty."""
    with errors_as(SequenceError, f'{directory} cannot be made', OSError):
        directory.mkdir(parents=True, exist_ok=True)
        blank = is_blank(directory)
    if not blank:
        raise SequenceError(f'{directory} is not empty; choose another folder or remove it')


class FolderWriter:
    """Writes images to a new folder at once, and the files common to all frames at the end.

    Without a label set in `info` no ground-truth images are written.
    """

    def __init__(
        self, directory: Path, form: layout.SequenceFormat, info: layout.SequenceInfo | None = None
    ) -> None:
        make_empty_folder(directory)
        self._directory = directory
        self._form = form
        self._info = info or layout.SequenceInfo()
        self._camera: Intrinsics | None = None
        self._poses: list[Pose] = []
        self._stamps_ns: list[int] = []

    def write(self, frame: Frame) -> None:
        """Write the images of the next frame; SequenceError if it does not follow or fit."""
        index = len(self._poses)
        self._camera = self._camera or frame.intrinsics
        if frame.intrinsics != self._camera:
            cameras = f'from {self._camera} to {frame.intrinsics}'
            raise SequenceError(f'frame {index}: the camera changed {cameras}')
        _check_order(frame, index, self._stamps_ns[-1] if self._stamps_ns else -1)
        depth = layout.encode_depth(frame.depth_m, self._form.depth_scale)
        images: dict[str, NDArray[Any]] = {'color': frame.color, 'depth': depth}
        if self._info.label_set is not None and self._form.layout != 'tum':
            if frame.semantic is not None:
                images['semantic'] = layout.encode_classes(frame.semantic, self._info.label_set)
            if frame.instance is not None:
                images['instance'] = layout.encode_instances(frame.instance, index)
        for kind, pixels in images.items():
            path = self._directory / layout.image_path(self._form, kind, index, frame.stamp_ns)
            path.parent.mkdir(exist_ok=True)
            layout.write_image(path, pixels)
        self._poses.append(frame.camera_pose)
        self._stamps_ns.append(frame.stamp_ns)

    def close(self) -> None:
        """Write poses, camera, stamps and classes; SequenceError without frames or space."""
        if self._camera is None:
            raise SequenceError(f'{self._directory}: a sequence needs a frame; none was written')
        texts = layout.make_texts(self._form, self._camera, self._poses, self._stamps_ns)
        with errors_as(SequenceError, f'{self._directory} cannot be written', OSError):
            for name, text in texts.items():
                path = self._directory / name
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, 'utf-8')
            layout.write_info(self._directory, self._info, self._form)


def _check_order(frame: Frame, index: int, last_ns: int) -> None:
    if frame.stamp_ns <= last_ns:
        stamps = f'stamp {frame.stamp_ns} ns does not come after {last_ns} ns'
        raise SequenceError(f'frame {index}: {stamps}; write frames in order of time')


class BagWriter:
    """Writes the topics of the bridge, with frames' stamps, into bag/ of a new folder."""

    def __init__(self, directory: Path, info: layout.SequenceInfo) -> None:
        self._codec = make_codec()
        from rosbags.rosbag2 import StoragePlugin, Writer

        make_empty_folder(directory)
        self._directory, self._info = directory, info
        self._bag = Writer(directory / INNER_FOLDER, version=9, storage_plugin=StoragePlugin.MCAP)
        self._bag.open()
        self._connections: dict[str, Any] = {}
        self._last_ns = -1

    def write(self, frame: Frame) -> None:
        """Write a frame's messages; SequenceError if time runs backwards or the disk is full."""
        _check_order(frame, frame.index, self._last_ns)
        self._last_ns = frame.stamp_ns
        with errors_as(SequenceError, f'{self._directory} cannot be written', OSError):
            for topic, data in self._codec.serialize(frame).items():
                if topic not in self._connections:
                    store = self._codec.typestore
                    added = self._bag.add_connection(f'/{topic}', TYPES[topic], typestore=store)
                    self._connections[topic] = added
                self._bag.write(self._connections[topic], frame.stamp_ns, data)

    def close(self) -> None:
        """Write index and sequence.json; SequenceError without frames, or if the disk is full."""
        with errors_as(SequenceError, f'{self._directory} cannot be written', OSError):
            self._bag.close()
            layout.write_info(self._directory, self._info, None)
        if not self._connections:
            raise SequenceError(f'{self._directory}: a bag needs a frame; none was written')


# Writes frames in the layout that a method reads.
SequenceWriter = FolderWriter | BagWriter
