"""Where the camera of a bag was, from a topic of poses or from TF."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.errors import SequenceError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.transform_tree import StampedTransform, TransformTree
from osmabench_ros.sequences.bag import BagMessage
from osmabench_ros.sequences.pose_topics import TF_TYPE, trajectory_of, transform_tree_of

TF_TOPIC, TF_STATIC_TOPIC = '/tf', '/tf_static'

Messages = Mapping[str, Sequence[BagMessage]]
"""By topic: that of the poses, and those of TF."""


@dataclass(frozen=True)
class CameraPoses:
    """Poses of the optical frame in the world, at any time between two samples."""

    tree: TransformTree
    world: str
    camera: str

    def at(self, stamp_ns: int, max_gap_ns: int) -> Pose | None:
        """Return the pose at a time, None if no sample is near it."""
        return self.tree.lookup(self.world, self.camera, stamp_ns, max_gap_ns)


def poses_from_topic(path: Path, messages: Messages, topic: str, camera: str) -> CameraPoses:
    """Return the poses of a topic, with what TF says is fixed between its body and the camera.

    Raises SequenceError if body and camera are not connected, ContractError if a message is
    malformed or the type holds no poses.
    """
    way = trajectory_of(
        (item.deserialise() for item in messages[topic]), messages[topic][0].message_type, topic
    )
    world, body = way.frame_id or 'world', way.child_frame_id or camera
    moving = (
        StampedTransform(world, body, int(stamp), Pose(rotation, position), is_static=False)
        for stamp, rotation, position in zip(
            way.stamps_ns, way.rotations, way.positions, strict=True
        )
    )
    fixed = (item for item in _static(messages) if item.child not in (body, world))
    tree = TransformTree([*moving, *fixed])
    if not tree.connects(world, camera):
        raise SequenceError(
            f'{path}: topic "{topic}" has poses of "{body}", and {TF_STATIC_TOPIC} does not '
            f'connect it with "{camera}", the frame of the images; record {TF_STATIC_TOPIC} too'
        )
    return CameraPoses(tree, world, camera)


def poses_from_tf(path: Path, messages: Messages, world: str, camera: str) -> CameraPoses:
    """Return the poses that TF gives.

    Raises SequenceError if the bag has no TF or it does not connect the frames, ContractError if
    transforms contradict each other.
    """
    tree = transform_tree_of(_transforms(messages, (TF_TOPIC, TF_STATIC_TOPIC)))
    if camera not in tree.frames:
        frames = ', '.join(tree.frames) or 'no frames'
        raise SequenceError(
            f'{path}: TF knows no frame "{camera}", which is that of the images; it has {frames}'
        )
    root = world or tree.root_of(camera)
    if not tree.connects(root, camera):
        raise SequenceError(
            f'{path}: TF does not connect "{root}" with "{camera}"; it has '
            f'{", ".join(tree.frames)}'
        )
    return CameraPoses(tree, root, camera)


def _static(messages: Messages) -> Iterator[StampedTransform]:
    tree = transform_tree_of(_transforms(messages, (TF_STATIC_TOPIC,)))
    for child in tree.frames:
        parent = tree.parent_of(child)
        pose = tree.lookup(parent, child, 0) if parent else None
        if pose is not None:
            yield StampedTransform(parent, child, 0, pose, is_static=True)


def _transforms(messages: Messages, topics: Iterable[str]) -> Iterator[tuple[str, object]]:
    for topic in topics:
        for item in messages.get(topic, ()):
            if item.message_type == TF_TYPE:
                yield item.topic, item.deserialise()
