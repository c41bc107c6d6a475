"""Reads frames from bags of any kind, also from incomplete ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from osmabench_ros.base import contract
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.frame import Frame
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.transform_tree import StampedTransform, TransformTree
from osmabench_ros.sequences.bag_messages import make_codec
from osmabench_ros.sequences.bags.bag import BagMessage, open_bag
from osmabench_ros.sequences.layout import RecordedSequence, read_info
from osmabench_ros.sequences.pose_topics import (
    read_transforms,
    trajectory_of,
    transform_tree_of,
)
from osmabench_ros.sequences.reading import AS_IN_THE_CONTRACT, SequenceReading, match_stamps

# Messages by topic: of the pose topic and the TF topics.
Messages = Mapping[str, Sequence[BagMessage]]


# Gets a time and a largest gap; returns the pose of the optical frame in the world then, None if
# no sample is near it.
CameraPoses = Callable[[int, int], Pose | None]


def poses_from_topic(path: Path, messages: Messages, topic: str, camera: str) -> CameraPoses:
    """Return the poses of a topic, with the static transform by TF from its body to the camera."""
    way = trajectory_of(
        (item.deserialise() for item in messages[topic]), messages[topic][0].message_type, topic
    )
    world, body = way.frame_id or contract.WORLD_FRAME, way.child_frame_id or camera
    moving = (
        StampedTransform(world, body, int(stamp), Pose(rotation, position), is_static=False)
        for stamp, rotation, position in zip(
            way.stamps_ns, way.rotations, way.positions, strict=True
        )
    )
    static = read_transforms(_transforms(messages, (contract.TF_STATIC,)))
    fixed = (item for item in static if item.child not in (body, world))
    tree = TransformTree([*moving, *fixed])
    if not tree.connects(world, camera):
        raise SequenceError(
            f'{path}: topic "{topic}" has poses of "{body}", and {contract.TF_STATIC} does not '
            f'connect it with "{camera}", the frame of the images; record {contract.TF_STATIC} too'
        )
    return partial(tree.lookup, world, camera)


def poses_from_tf(path: Path, messages: Messages, world: str, camera: str) -> CameraPoses:
    """Return the poses that TF gives; raises SequenceError if it does not connect the frames."""
    tree = transform_tree_of(_transforms(messages, (contract.TF, contract.TF_STATIC)))
    if camera not in tree.frames:
        frames = ', '.join(tree.frames) or 'no frames'
        raise SequenceError(
            f'{path}: TF has no frame "{camera}", in which the images are; it has {frames}'
        )
    root = world or tree.root_of(camera)
    if not tree.connects(root, camera):
        raise SequenceError(
            f'{path}: TF does not connect "{root}" with "{camera}"; it has '
            f'{", ".join(tree.frames)}'
        )
    return partial(tree.lookup, root, camera)


def _transforms(messages: Messages, topics: Iterable[str]) -> Iterator[tuple[str, object]]:
    for topic in topics:
        for item in messages.get(topic, ()):
            if item.message_type == contract.TF_TYPE:
                yield item.topic, item.deserialise()


NEEDED = (contract.COLOR, contract.DEPTH, contract.DEPTH_INFO)
OPTIONAL = (contract.SEMANTIC, contract.INSTANCE)
# Beyond the first and last pose, where stamps need not be equal.
POSE_GAP_NS = 50_000_000


class BagSequence(RecordedSequence):
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
        self._frame_id = contract.CAMERA_FRAME
        self._types: dict[str, str] = {}
        incomplete = self._survey()
        self.stamps_ns = [match[contract.COLOR] for match in self._matches]
        self.cut_off = self._bag.cut_off
        self.description = f'bag {path}'
        if self.cut_off:
            self.description += f', cut off after {len(self)} frames ({self.cut_off})'
        if incomplete:
            self.description += f', {incomplete} more stamps lack an image or a pose'
        self.info, _ = read_info(path if path.is_dir() else path.parent)

    def __len__(self) -> int:
        return len(self._matches)

    def __iter__(self) -> Iterator[Frame]:
        wanted = {
            (part, stamp_ns): index
            for index, match in enumerate(self._matches)
            for part, stamp_ns in match.items()
        }
        pending: dict[int, dict[str, bytes]] = {}
        ready: dict[int, Frame] = {}
        following = 0
        for item in self._bag.messages(self._parts):
            part, stamp_ns = self._part(item)
            index = wanted.get((part, stamp_ns)) if stamp_ns is not None else None
            if index is None or index < following or index in ready:
                continue
            messages = pending.setdefault(index, {})
            messages[part] = item.data
            if len(messages) == len(self._matches[index]):
                ready[index] = self._frame(index, pending.pop(index))
            while following in ready:
                yield ready.pop(following)
                following += 1

    def _frame(self, index: int, messages: Mapping[str, bytes]) -> Frame:
        stamp_ns = self._matches[index][contract.COLOR]
        with naming_errors(self._path, SequenceError):
            frame = self._codec.frame(index, stamp_ns, messages, self.poses[index], self._types)
        if frame.intrinsics != self.intrinsics:
            raise SequenceError(
                f'{self._path}, frame {index}: topic "{self._reading.camera_info}" changed from '
                f'{self.intrinsics} to {frame.intrinsics}; a sequence has one camera'
            )
        mount = self.info.base_to_camera
        if mount is not None:
            frame = replace(frame, base_pose=frame.camera_pose @ mount.inverse())
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
                found_id = self._codec.frame_id(item.data, item.message_type)
                self._frame_id = found_id or contract.CAMERA_FRAME
            if stamp_ns is not None:
                stamps.setdefault(part, set()).add(stamp_ns)
        self._require({*stamps, *others})
        poses, pose_stamps = self._camera_poses(others)
        parts = {part: stamps[part] for part in (*NEEDED, *OPTIONAL) if part in stamps}
        exact = self._tolerance_ns == 0
        if exact and pose_stamps:
            parts[contract.CAMERA_POSE] = pose_stamps
        ordered = {part: sorted(items) for part, items in parts.items()}
        gap_ns = 0 if exact and pose_stamps else POSE_GAP_NS
        self._matches: list[dict[str, int]] = []
        self.poses: list[Pose] = []
        for match in match_stamps(ordered, contract.COLOR, self._tolerance_ns):
            pose = poses(match[contract.COLOR], gap_ns)
            if pose is not None:
                match.pop(contract.CAMERA_POSE, None)
                self._matches.append(match)
                self.poses.append(pose)
        if not self.poses:
            raise SequenceError(
                f'{self._path}: at no stamp is there a message on each of {", ".join(parts)}; '
                'images, camera and pose of a frame must have equal header stamps, or give a '
                'tolerance'
            )
        self.intrinsics = self._codec.intrinsics(camera)
        every = set.union(*parts.values()) if exact else stamps[contract.COLOR]
        return len(every) - len(self.poses)

    def _require(self, present: Collection[str]) -> None:
        names = {part: name for name, part in self._parts.items()}
        missing = [names[part] for part in NEEDED if part not in present]
        pose = self._reading.pose_topic
        if pose and pose not in present:
            missing.append(pose)
        if missing:
            cut_off = self._bag.cut_off
            reason = f'; it was cut off ({cut_off})' if cut_off else ''
            known = ', '.join(sorted(self._bag.connections_by_topic)) or 'no topics'
            raise SequenceError(
                f'{self._path} has no message on {", ".join(missing)}{reason}. Record these '
                f'topics, or give their namespace or names. It has {known}'
            )

    def _camera_poses(
        self, messages: Mapping[str, Sequence[BagMessage]]
    ) -> tuple[CameraPoses, set[int]]:
        """Return the poses, and the stamps of their topic; none for TF."""
        topic = self._reading.pose_topic
        if not topic:
            return poses_from_tf(self._path, messages, self._reading.world, self._frame_id), set()
        poses = poses_from_topic(self._path, messages, topic, self._frame_id)
        found = (item.header_stamp_ns for item in messages[topic])
        return poses, {stamp_ns for stamp_ns in found if stamp_ns is not None}

    def _part(self, message: BagMessage) -> tuple[str, int | None]:
        """Return which part of a frame a message is, and its stamp."""
        part = self._parts[message.topic]
        kind = self._types.setdefault(part, message.message_type)
        compressed = part != contract.DEPTH_INFO and kind == contract.COMPRESSED_IMAGE
        if message.message_type != kind or not (compressed or kind == contract.TYPES[part]):
            raise SequenceError(
                f'{self._path}: topic "{message.topic}" has type {message.message_type}, '
                f'expected {contract.TYPES[part]}'
            )
        return part, message.header_stamp_ns
