"""Checks that the transforms of a running stack form one tree with one authority per edge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sensor_msgs.msg import Image

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import TF, TF_STATIC, TF_TYPE
from osmabench_ros.bringup.doctor.finding import Finding, Severity
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation
from osmabench_ros.ros.messages.poses import stamp_from_message


@dataclass(frozen=True)
class EdgeSample:
    """One transform received on /tf or /tf_static."""

    parent: str
    child: str
    stamp_ns: int
    is_static: bool


def edge_samples(messages: Iterable[Any], *, is_static: bool) -> list[EdgeSample]:
    """Return the edges of tf2_msgs/TFMessage messages, in order."""
    return [
        EdgeSample(
            item.header.frame_id.lstrip('/'),
            item.child_frame_id.lstrip('/'),
            stamp_from_message(item.header.stamp),
            is_static,
        )
        for message in messages
        for item in message.transforms
    ]


def check_transforms(samples: list[EdgeSample], camera_frame: str) -> list[Finding]:
    """Check the tree of the edges, in order of arrival, from the images' optical frame upwards."""
    faults = _authority(samples) + _loops(samples)
    parents = {item.child: item.parent for item in samples}
    root = camera_frame
    way = [root]
    while root in parents and parents[root] not in way:
        root = parents[root]
        way.append(root)
    path = ' → '.join(reversed(way))
    if topics.WORLD_FRAME not in way:
        detail = f'{camera_frame} hangs on {path}, not on {topics.WORLD_FRAME}'
        if camera_frame not in parents:
            detail = f'no transform leads to {camera_frame}'
        remedy = (
            f'publish {topics.WORLD_FRAME}→map (static, where it is known), and the static edges '
            f'from {topics.BASE_FRAME} to {camera_frame} (robot_state_publisher)'
        )
        # Poses come on a topic too, so that a tree without the world is no end.
        faults.append(Finding(TF, Severity.WARN, detail, remedy))
    return faults or [Finding(TF, Severity.OK, path)]


def _authority(samples: list[EdgeSample]) -> list[Finding]:
    parents: dict[str, set[str]] = defaultdict(set)
    kinds: dict[str, set[bool]] = defaultdict(set)
    stamps: dict[tuple[str, str], list[int]] = defaultdict(list)
    for item in samples:
        parents[item.child].add(item.parent)
        kinds[item.child].add(item.is_static)
        if not item.is_static:
            stamps[item.parent, item.child].append(item.stamp_ns)
    faults = []
    for child in sorted(parents):
        if len(parents[child]) > 1:
            detail = (
                f'{child} has {len(parents[child])} parents: {", ".join(sorted(parents[child]))}'
            )
            remedy = 'two nodes own the edge; turn publish_tf off in one of them'
            faults.append(Finding(TF, Severity.FAILED, detail, remedy))
        elif len(kinds[child]) > 1:
            detail = f'{child} comes on /tf and on /tf_static'
            remedy = 'two nodes own the edge; keep the static one if it does not move'
            faults.append(Finding(TF, Severity.FAILED, detail, remedy))
    for (parent, child), times in sorted(stamps.items()):
        back = sum(later < earlier for earlier, later in pairwise(times))
        if back:
            detail = f'stamps of {parent}→{child} go backwards {back} times'
            remedy = 'two nodes publish the edge, or a bag loops'
            faults.append(Finding(TF, Severity.WARN, detail, remedy))
    return faults


def _loops(samples: list[EdgeSample]) -> list[Finding]:
    parents = {item.child: item.parent for item in samples}
    for start in sorted(parents):
        seen, frame = [start], start
        while frame in parents:
            frame = parents[frame]
            if frame == start:
                detail = f'the edges go in a circle: {" → ".join([*seen, frame])}'
                remedy = 'one node has parent and child the wrong way round'
                return [Finding(TF, Severity.FAILED, detail, remedy)]
            if frame in seen:
                break
            seen.append(frame)
    return []


def examine_transforms(seen: StackObservation) -> list[Finding]:
    """Examine the tree that /tf and /tf_static form, if there is one."""
    if TF_TYPE in seen.missing_types:
        remedy = 'apt install ros-$ROS_DISTRO-tf2-msgs'
        return [Finding(TF, Severity.ABSENT, 'not looked at: tf2_msgs is not installed', remedy)]
    if not seen.graphs[TF].publishers and not seen.graphs[TF_STATIC].publishers:
        detail = 'no node publishes transforms; poses come on topics only'
        return [Finding(TF, Severity.ABSENT, detail, 'apt install ros-$ROS_DISTRO-tf2-ros')]
    moving, fixed = (seen.records.get(name) for name in (TF, TF_STATIC))
    if errors := [text for record in (moving, fixed) if record for text in record.errors]:
        return [Finding(TF, Severity.FAILED, errors[0], 'one node publishes what is no transform')]
    samples = edge_samples(fixed.messages if fixed else (), is_static=True)
    samples += edge_samples(moving.messages if moving else (), is_static=False)
    image = seen.newest(topics.COLOR, Image)
    frame = image.header.frame_id if image is not None else ''
    return check_transforms(samples, frame or topics.CAMERA_FRAME)
