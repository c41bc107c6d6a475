"""Recorded sequences, in folders of OSMa-Bench and ScanNet or in bags, as a source of frames."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base import contract
from osmabench_ros.base.documents import read_text
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import ConfigError, OsmabenchError, SequenceError, errors_as
from osmabench_ros.geometry.axes import OPTICAL_IN_LINK
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.transform_tree import StampedTransform, TransformTree
from osmabench_ros.scenes.scene import Lighting
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences import layout
from osmabench_ros.sequences.bag_messages import make_codec
from osmabench_ros.sequences.bags.bag import BagMessage, open_bag
from osmabench_ros.sequences.bags.bag_storage import is_bag
from osmabench_ros.sequences.topics import (
    AS_IN_THE_CONTRACT,
    SequenceReading,
    match_stamps,
    read_transforms,
    trajectory_of,
)
from osmabench_ros.simulation.conditions import OSMA_FRAME_RATE_HZ
from osmabench_ros.simulation.frame_source import FIRST_STAMP_NS, SimulatedFrame

# Messages by topic: of the pose topic and the TF topics.
Messages = Mapping[str, Sequence[BagMessage]]


# A function of a time and a largest gap that returns the pose of the optical frame in the world,
# None if no sample is near; and the stamps of the poses of a topic.
CameraPoses = tuple[Callable[[int, int], Pose | None], set[int]]


def poses_from_topic(path: Path, messages: Messages, topic: str, camera: str) -> CameraPoses:
    """Return the poses of a topic, with the static transform by TF from its body to the camera."""
    way = trajectory_of(
        (item.deserialise() for item in messages[topic]), messages[topic][0].message_type, topic
    )
    world, body = way.frame_id or contract.WORLD_FRAME, way.child_frame_id or camera
    stamps_ns = way.stamps_ns.tolist()
    poses = zip(stamps_ns, map(Pose, way.rotations, way.positions), strict=True)
    moving = (StampedTransform(world, body, *item, is_static=False) for item in poses)
    static = read_transforms(_transforms(messages, (contract.TF_STATIC,)))
    fixed = (item for item in static if item.child not in (body, world))
    tree = TransformTree([*moving, *fixed])
    if not tree.connects(world, camera):
        raise SequenceError(
            f'{path}: topic "{topic}" has poses of "{body}", and {contract.TF_STATIC} does not '
            f'connect it with "{camera}", the frame of the images; record {contract.TF_STATIC} too'
        )
    return partial(tree.look_up, world, camera), set(stamps_ns)


def poses_from_tf(path: Path, messages: Messages, world: str, camera: str) -> CameraPoses:
    """Return the poses that TF gives; raises SequenceError if it does not connect the frames."""
    topics = (contract.TF, contract.TF_STATIC)
    tree = TransformTree(read_transforms(_transforms(messages, topics)))
    if camera not in tree.frames:
        frames = ', '.join(tree.frames) or 'no frames'
        problem = f'TF has no frame "{camera}", in which the images are'
        raise SequenceError(f'{path}: {problem}; it has {frames}')
    root = world or tree.find_root(camera)
    if not tree.connects(root, camera):
        problem = f'TF does not connect "{root}" with "{camera}"'
        raise SequenceError(f'{path}: {problem}; it has {", ".join(tree.frames)}')
    return partial(tree.look_up, root, camera), set()


def _transforms(messages: Messages, topics: Iterable[str]) -> Iterator[tuple[str, object]]:
    for topic in topics:
        for item in messages.get(topic, ()):
            if item.message_type == contract.TF_TYPE:
                yield item.topic, item.deserialise()


NEEDED = (contract.COLOR, contract.DEPTH, contract.DEPTH_INFO)
# Beyond the first and last pose, where stamps need not be equal.
POSE_GAP_NS = 50_000_000


class BagSequence(layout.RecordedSequence):
    """A sequence in a bag; messages with stamps within the tolerance make a frame.

    Above 0 the frame has the stamp of its colour image, and the pose is interpolated to it. Raises
    SequenceError if a topic is missing or no stamp has all, ContractError if poses are malformed.
    """

    def __init__(self, path: Path, reading: SequenceReading = AS_IN_THE_CONTRACT) -> None:
        self._path, self._reading = path, reading
        self._tolerance_ns = round(reading.tolerance_s * 1e9)
        self._parts = reading.images
        self._codec = make_codec()
        self._bag = open_bag(path, reading.msg_paths)
        self._types: dict[str, str] = {}
        incomplete = self._survey()
        self.stamps_ns = [match[contract.COLOR] for match in self._matches]
        self.cut_off = self._bag.cut_off
        self.description = f'bag {path}'
        if self.cut_off:
            self.description += f', cut off after {len(self)} frames ({self.cut_off})'
        if incomplete:
            self.description += f', {incomplete} more stamps lack an image or a pose'
        self.info, _ = layout.read_info(path if path.is_dir() else path.parent)

    def __iter__(self) -> Iterator[Frame]:
        wanted = {
            (part, stamp_ns): index
            for index, match in enumerate(self._matches)
            for part, stamp_ns in match.items()
        }
        pending: dict[int, dict[str, bytes]] = {}
        following = 0
        for item in self._bag.messages(self._parts):
            part, stamp_ns = self._part(item)
            index = wanted.get((part, stamp_ns)) if stamp_ns is not None else None
            if index is None or index < following:
                continue
            pending.setdefault(index, {}).setdefault(part, item.data)
            while (found := pending.get(following)) and len(found) == len(
                self._matches[following]
            ):
                yield self._frame(following, pending.pop(following))
                following += 1

    def _frame(self, index: int, messages: Mapping[str, bytes]) -> Frame:
        stamp_ns = self._matches[index][contract.COLOR]
        with naming_errors(self._path, SequenceError):
            frame = self._codec.frame(index, stamp_ns, messages, self.poses[index], self._types)
        if frame.intrinsics != self.intrinsics:
            where = f'{self._path}, frame {index}: topic "{self._reading.camera_info}"'
            cameras = f'{self.intrinsics} to {frame.intrinsics}'
            raise SequenceError(f'{where} changed from {cameras}; a sequence has one camera')
        return frame

    def _survey(self) -> int:
        """Read camera, messages and poses of the frames; return the number of incomplete ones."""
        stamps: dict[str, set[int]] = {}
        others: dict[str, list[BagMessage]] = {}
        camera = b''
        topics = {*self._parts, self._reading.pose_topic, contract.TF, contract.TF_STATIC}
        for item in self._bag.messages(topics):
            if item.topic not in self._parts:
                others.setdefault(item.topic, []).append(item)
                continue
            part, stamp_ns = self._part(item)
            if part == contract.DEPTH_INFO and not camera:
                camera = item.data
            if part == contract.COLOR and part not in stamps:
                self._frame_id = self._codec.frame_id(item.data, item.message_type)
            if stamp_ns is not None:
                stamps.setdefault(part, set()).add(stamp_ns)
        self._require({*stamps, *others})
        if topic := self._reading.pose_topic:
            poses, pose_stamps = poses_from_topic(self._path, others, topic, self._frame_id)
        else:
            world = self._reading.world
            poses, pose_stamps = poses_from_tf(self._path, others, world, self._frame_id)
        parts = {part: stamps[part] for part in self._parts.values() if part in stamps}
        exact = self._tolerance_ns == 0
        if exact and pose_stamps:
            parts[contract.CAMERA_POSE] = pose_stamps
        gap_ns = 0 if exact and pose_stamps else POSE_GAP_NS
        self._matches: list[dict[str, int]] = []
        self.poses: list[Pose] = []
        for match in match_stamps(parts, contract.COLOR, self._tolerance_ns):
            pose = poses(match[contract.COLOR], gap_ns)
            if pose is not None:
                match.pop(contract.CAMERA_POSE, None)
                self._matches.append(match)
                self.poses.append(pose)
        if not self.poses:
            problem = f'at no stamp is there a message on each of {", ".join(parts)}'
            remedy = 'they must have equal header stamps, or give a tolerance'
            raise SequenceError(f'{self._path}: {problem}; {remedy}')
        self.intrinsics = self._codec.intrinsics(camera)
        every = set.union(*parts.values()) if exact else stamps[contract.COLOR]
        return len(every) - len(self.poses)

    def _require(self, present: Collection[str]) -> None:
        lacking = set(NEEDED).difference(present)
        missing = [name for name, part in self._parts.items() if part in lacking]
        pose = self._reading.pose_topic
        if pose and pose not in present:
            missing.append(pose)
        if missing:
            cut_off = self._bag.cut_off
            reason = f'; it was cut off ({cut_off})' if cut_off else ''
            known = ', '.join(sorted(self._bag.connections_by_topic)) or 'no topics'
            problem = f'{self._path} has no message on {", ".join(missing)}{reason}'
            raise SequenceError(f'{problem}. Give their namespace or names. It has {known}')

    def _part(self, message: BagMessage) -> tuple[str, int | None]:
        """Return which part of a frame a message is, and its stamp."""
        part = self._parts[message.topic]
        kind = self._types.setdefault(part, message.message_type)
        compressed = part != contract.DEPTH_INFO and kind == contract.COMPRESSED_IMAGE
        if message.message_type != kind or not (compressed or kind == contract.TYPES[part]):
            found = f'topic "{message.topic}" has type {message.message_type}'
            raise SequenceError(f'{self._path}: {found}, expected {contract.TYPES[part]}')
        return part, message.header_stamp_ns


# The simulator in the identity of a run that plays a sequence.
RECORDED = 'recorded'


def names_of(sequence: layout.RecordedSequence, path: Path) -> tuple[str, str]:
    """Return dataset and scene of a sequence, from its path if its metadata lack them."""
    return sequence.info.dataset or 'sequences', sequence.info.scene or path.resolve().stem


def open_sequence(
    path: Path, reading: SequenceReading = AS_IN_THE_CONTRACT
) -> layout.RecordedSequence:
    """Open a sequence of `osmabench scene generate`, OSMa-Bench or ScanNet, or a bag.

    `path` is a folder, or an .mcap or .db3 file; `reading` names the topics of a bag that differ
    from the contract. Raises SequenceError, which names file and frame, if it is not a sequence or
    incomplete, ConfigError if a folder of images is given a reading.
    """
    with naming_errors(path, SequenceError):
        if not path.exists():
            raise SequenceError(f'{path} does not exist; name a sequence, a bag or an .mcap file')
        if path.is_file() or is_bag(path):
            return BagSequence(path, reading)
        if reading != AS_IN_THE_CONTRACT:
            raise ConfigError(f'{path} is a folder of images; topics can be named only for bags')
        return FolderSequence(path)


class FolderSequence(layout.RecordedSequence):
    """A sequence in a folder: traj.txt and results/, or pose/, color/ and depth/; read on demand.

    `frame_rate_hz` is for a sequence without timestamps.txt. Raises SequenceError, which names
    file and frame, if it is not a sequence, or a file is missing, left over or malformed.
    """

    def __init__(self, directory: Path, frame_rate_hz: float = OSMA_FRAME_RATE_HZ) -> None:
        self._directory = directory
        self.info, form = layout.read_info(directory)
        self._form = form or _guess_format(directory)
        self.description = f'{self._form.layout} sequence {directory}'
        if self._form.layout == 'tum':
            remedy = 'generate the sequence as osma or scannet'
            raise SequenceError(f'{directory} has the layout tum, which is not read; {remedy}')
        self.poses = layout.read_poses(directory, self._form)
        if not self.poses:
            raise SequenceError(f'{directory} has no frame; generate the sequence again')
        self.stamps_ns = self._read_stamps(frame_rate_hz)
        self._kinds: list[str] = []
        for kind in ('color', 'depth', 'semantic', 'instance'):
            numbers = self._numbers(kind)
            if numbers or kind in ('color', 'depth'):
                self._kinds.append(kind)
                self._check_numbers(kind, numbers)
        with naming_errors(directory, SequenceError):
            self.intrinsics, self._depth_scale = layout.read_camera(directory, self._form)

    def __iter__(self) -> Iterator[Frame]:
        for index in range(len(self)):
            yield self.frame(index)

    def frame(self, index: int) -> Frame:
        """Read a frame; SequenceError if an image is missing, broken or of the wrong size."""
        remedy = 'copy or generate the sequence again'
        images: dict[str, NDArray[Any]] = {}
        with errors_as(SequenceError, f'frame {index}', OsmabenchError, remedy=remedy):
            camera = self.intrinsics
            for kind in self._kinds:
                read = layout.read_color if kind == 'color' else layout.read_16_bit
                path = self._path(kind, index)
                images[kind] = image = read(path)
                if image.shape[:2] != (camera.height, camera.width):
                    sizes = f'{image.shape[1]} x {image.shape[0]} pixels, the camera '
                    sizes += f'{camera.width} x {camera.height}'
                    raise SequenceError(f'{path} has {sizes}; register all images')
            semantic = images.get('semantic')
            instance = images.get('instance')
            return Frame(
                index,
                self.stamps_ns[index],
                self.poses[index],
                camera,
                images['color'],
                layout.decode_depth(images['depth'], self._depth_scale),
                None if semantic is None else layout.decode_classes(semantic, self.info.label_set),
                None if instance is None else instance.astype(np.int32),
            )

    def _path(self, kind: str, index: int) -> Path:
        return self._directory / layout.image_path(self._form, kind, index)

    def _read_stamps(self, frame_rate_hz: float) -> list[int]:
        path = self._directory / layout.STAMPS_FILE
        count = len(self.poses)
        if not path.exists():
            return [FIRST_STAMP_NS + round(index * 1e9 / frame_rate_hz) for index in range(count)]
        remedy = 'a line is a stamp in nanoseconds'
        with errors_as(SequenceError, str(path), ValueError, remedy=remedy):
            stamps = [int(line) for line in read_text(path, SequenceError).splitlines()]
        if len(stamps) != count:
            counts = f'{len(stamps)} stamps for {count} poses'
            raise SequenceError(f'{path} has {counts}; frame {min(len(stamps), count)} lacks one')
        if sorted(set(stamps)) != stamps:
            raise SequenceError(f'{path}: stamps must ascend, each frame later than the last')
        return stamps

    def _numbers(self, kind: str) -> set[int]:
        example = self._path(kind, 0)
        prefix = example.stem.rstrip('0')
        files = example.parent.glob(f'{prefix}*{example.suffix}')
        texts = (file.stem.removeprefix(prefix) for file in files)
        return {int(text) for text in texts if text.isdecimal()}

    def _check_numbers(self, kind: str, numbers: set[int]) -> None:
        if odd := numbers ^ set(range(len(self))):
            index = min(odd)
            what = 'is missing' if index < len(self) else 'has no pose'
            path = self._path(kind, index)
            raise SequenceError(f'frame {index}: {path} {what}; there are {len(self)} poses')


def _guess_format(directory: Path) -> layout.SequenceFormat:
    for folder, form in (('results', layout.OSMA), ('pose', layout.SCANNET)):
        if (directory / folder).is_dir():
            png = form.model_copy(update={'color': 'png'})
            return png if (directory / layout.image_path(png, 'color', 0)).exists() else form
    layouts = 'results/ and traj.txt (OSMa-Bench) or color/, depth/, pose/ (ScanNet)'
    raise SequenceError(f'{directory} is not a sequence; it must hold {layouts}')


class RecordedFrames:
    """A `FrameSource` of a recorded sequence, without lights, which were not recorded."""

    def __init__(self, sequence: layout.RecordedSequence) -> None:
        self._sequence, info = sequence, sequence.info
        self.dataset, self.scene = info.dataset, info.scene
        self.label_set = info.label_set or LabelSet('none', ())
        self.intrinsics, self.description = sequence.intrinsics, sequence.description
        # Without a robot, base_link is at the camera.
        self.base_to_camera = info.base_to_camera or OPTICAL_IN_LINK
        stamps, self.frame_rate_hz = sequence.stamps_ns, OSMA_FRAME_RATE_HZ
        if len(stamps) > 1:
            self.frame_rate_hz = (len(stamps) - 1) * 1e9 / (stamps[-1] - stamps[0])
        self._frames: Iterator[Frame] = iter(())
        self._next: int | None = None

    def __len__(self) -> int:
        return len(self._sequence)

    def frame(self, index: int) -> SimulatedFrame:
        """Read a frame, fast if in order; SequenceError if unreadable, IndexError if none."""
        if not 0 <= index < len(self):
            raise IndexError(f'frame {index} of {len(self)}')
        if self._next is None or index < self._next:
            self._frames, self._next = iter(self._sequence), 0
        frame = next(islice(self._frames, index - self._next, None))
        self._next = index + 1
        base = frame.camera_pose @ self.base_to_camera.inverse()
        return SimulatedFrame(replace(frame, base_pose=base), Lighting.unlit(), 0)

    def close(self) -> None:
        """Close the files of the sequence."""
        self._frames, self._next = iter(()), None
