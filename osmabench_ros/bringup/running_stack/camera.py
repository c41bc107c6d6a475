"""Checks intrinsics and images of a running stack, and that its transforms form one tree."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import TF, TF_STATIC, TF_TYPE
from osmabench_ros.base.image_codec import (
    COLOR_ENCODINGS,
    DEPTH_ENCODINGS,
    INSTANCE_ENCODINGS,
    SEMANTIC_ENCODINGS,
)
from osmabench_ros.bringup.doctor.preflight import Finding, Severity, absent, failed, ok, warned
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation
from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.ros.messages.images import (
    depth_from_message,
    image_from_message,
    intrinsics_from_message,
)
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

ENCODINGS = {
    topics.COLOR: COLOR_ENCODINGS,
    topics.DEPTH: DEPTH_ENCODINGS,
    topics.SEMANTIC: SEMANTIC_ENCODINGS,
    topics.INSTANCE: INSTANCE_ENCODINGS,
}
"""What images may be, the contract's own encoding first."""

FAR_M = 100.0
"""No room is that deep: a median beyond is millimetres."""

NEAR_M = 0.02
INVALID_SHARE = 0.5
ZERO_SHARE = 0.01


def check_encoding(topic: str, image: Image) -> list[Finding]:
    """Check the encoding and the layout of an image."""
    if image.encoding not in ENCODINGS[topic]:
        wanted = ' or '.join(ENCODINGS[topic])
        remedy = f'convert to {ENCODINGS[topic][0]} (cv_bridge, image_proc) before {topic}'
        if topic == topics.DEPTH and image.encoding in (*COLOR_ENCODINGS, '8UC1'):
            remedy = 'that is a coloured picture of depth; publish the raw depth'
        detail = f'encoding is {image.encoding or "empty"}, must be {wanted}'
        return [failed(topic, detail, remedy)]
    try:
        image_from_message(image, topic)
    except ContractError as error:
        return [failed(topic, str(error), 'fill height, width and step')]
    return [ok(topic, f'{image.encoding}, {image.width} x {image.height}')]


def check_depth(image: Image) -> list[Finding]:
    """Check the scale and the invalid pixels of a depth image with a valid encoding."""
    depth_m = depth_from_message(image, topics.DEPTH)
    finite = depth_m[np.isfinite(depth_m)]
    if image.encoding == '32FC1':
        finite = finite[finite != 0]
    if not len(finite):
        remedy = 'is the lens covered, or everything beyond the range?'
        return [failed(topics.DEPTH, 'no pixel has a depth', remedy)]
    median_m = float(np.median(finite))
    scale = _scale_fault(image.encoding, median_m)
    if scale is not None:
        return [scale]
    findings = []
    if image.encoding != '32FC1':
        detail = '16-bit depth is read as millimetres, 0 as invalid'
        remedy = 'nothing, if it is; else convert to 32FC1 in metres'
        findings.append(warned(topics.DEPTH, detail, remedy))
    return findings + _invalid(image, depth_m, median_m)


def _scale_fault(encoding: str, median_m: float) -> Finding | None:
    if encoding == '32FC1' and median_m > FAR_M:
        detail = f'the median of depth is {median_m:.0f} m: these are millimetres in 32FC1'
        remedy = 'divide by 1000, or publish 16UC1'
    elif encoding != '32FC1' and median_m < NEAR_M:
        detail = f'the median of depth is {median_m * 1000:.0f} mm: {encoding} must be millimetres'
        remedy = 'check the depth scale of the driver'
    else:
        return None
    return failed(topics.DEPTH, detail, remedy)


def _invalid(image: Image, depth_m: NDArray[np.float32], median_m: float) -> list[Finding]:
    zeros = float((depth_m == 0).mean())
    if image.encoding == '32FC1' and zeros > ZERO_SHARE:
        detail = f'{zeros:.0%} of the pixels are 0, which is a distance in 32FC1'
        return [failed(topics.DEPTH, detail, 'publish NaN for invalid (REP 118)')]
    if (depth_m < 0).any():
        detail = 'there are negative depths'
        return [failed(topics.DEPTH, detail, 'publish NaN for invalid (REP 118)')]
    invalid = float(np.isnan(depth_m).mean())
    detail = f'median {median_m:.2f} m, {invalid:.0%} invalid'
    if invalid > INVALID_SHARE:
        remedy = 'sun, glass or a range too short? half of every frame is missing'
        return [warned(topics.DEPTH, detail, remedy)]
    return [ok(topics.DEPTH, detail)]


def check_classes(image: Image, label_set: LabelSet | None) -> list[Finding]:
    """Check that the ids of a semantic image have names."""
    ids = np.unique(image_from_message(image, topics.SEMANTIC))
    ids = ids[ids != UNLABELLED]
    if label_set is None:
        detail = f'{len(ids)} classes without names'
        return [warned(topics.SEMANTIC, detail, f'publish {topics.LABEL_INFO}, latched')]
    unknown = sorted(set(ids.tolist()) - {item.id for item in label_set.classes})
    if unknown:
        detail = f'ids {unknown[:5]} are not in {topics.LABEL_INFO} ("{label_set.name}")'
        remedy = 'publish the label set of these images; 65535 is unlabelled'
        return [failed(topics.SEMANTIC, detail, remedy)]
    if not len(ids):
        return [warned(topics.SEMANTIC, 'no pixel is labelled', 'is the semantic camera set up?')]
    return [ok(topics.SEMANTIC, f'{len(ids)} classes seen, all named')]


FOCAL_SHARE = (0.2, 5.0)
"""Focal length by image width of cameras that mapping uses: 136 to 11 degrees."""

PIXEL_ASPECT = (0.8, 1.25)

BODY_FRAMES = (topics.WORLD_FRAME, 'map', 'odom')
"""Frames beside those of links whose x points forward or east, and whose z points up."""


def check_intrinsics(topic: str, info: CameraInfo) -> list[Finding]:
    """Check K, D, R and P of one message."""
    faults = _matrix_faults(topic, info) + _rectification_faults(topic, info)
    if any(info.d):
        detail = f'images are distorted: D is {[round(v, 4) for v in info.d]}'
        remedy = 'rectify (image_proc) and publish camera_info of the rectified image, D all 0'
        faults.append(failed(topic, detail, remedy))
    elif not faults:
        try:
            intrinsics_from_message(info, topic)
        except ContractError as error:
            faults.append(failed(topic, str(error), 'calibrate the camera'))
    if not info.header.frame_id:
        remedy = 'set header.frame_id to the optical frame'
        faults.append(warned(topic, 'frame_id is empty', remedy))
    if faults:
        return faults
    detail = (
        f'{info.width} x {info.height}, fx {info.k[0]:.1f}, fy {info.k[4]:.1f}, '
        f'frame {info.header.frame_id}'
    )
    return [ok(topic, detail)]


def _matrix_faults(topic: str, info: CameraInfo) -> list[Finding]:
    k = np.array(info.k, float).reshape(3, 3)
    calibrate = 'load a calibration in the camera driver'
    if not k.any() or not np.isfinite(k).all() or min(k[0, 0], k[1, 1]) <= 0:
        detail = 'K is zero or not finite: the camera is not calibrated'
        return [failed(topic, detail, calibrate)]
    if not info.width or not info.height:
        return [failed(topic, 'width and height are not set', calibrate)]
    share, aspect = k[0, 0] / info.width, k[0, 0] / k[1, 1]
    faults = []
    if (
        not FOCAL_SHARE[0] < share < FOCAL_SHARE[1]
        or not PIXEL_ASPECT[0] < aspect < PIXEL_ASPECT[1]
    ):
        detail = f'fx {k[0, 0]:.1f}, fy {k[1, 1]:.1f} are odd for {info.width} x {info.height}'
        remedy = 'is it the calibration of another resolution? scale K with the image'
        faults.append(warned(topic, detail, remedy))
    if not (0 < k[0, 2] < info.width and 0 < k[1, 2] < info.height):
        detail = f'the principal point ({k[0, 2]:.1f}, {k[1, 2]:.1f}) lies outside the image'
        faults.append(failed(topic, detail, 'scale K with the image'))
    return faults


def _rectification_faults(topic: str, info: CameraInfo) -> list[Finding]:
    k, r = np.array(info.k, float).reshape(3, 3), np.array(info.r, float).reshape(3, 3)
    p = np.array(info.p, float).reshape(3, 4)
    if not r.any() or not p.any():
        empty = ' and '.join(name for name, matrix in (('R', r), ('P', p)) if not matrix.any())
        remedy = 'fill R with the identity and P with K; other nodes (RViz, image_proc) need them'
        return [warned(topic, f'{empty} is empty', remedy)]
    if not info.distortion_model:
        return [warned(topic, 'distortion_model is empty', "set it to 'plumb_bob'")]
    if not np.allclose(p[:, :3], k, rtol=1e-3, atol=1e-3):
        remedy = 'for rectified images K must be the left part of P'
        return [warned(topic, f'P says fx {p[0, 0]:.1f}, K says {k[0, 0]:.1f}', remedy)]
    return []


def check_size(info_topic: str, info: CameraInfo, image_topic: str, image: Image) -> list[Finding]:
    """Compare the size and the frame of an image with its intrinsics."""
    findings = []
    if (image.width, image.height) != (info.width, info.height):
        detail = (
            f'{image.width} x {image.height}, but {info_topic} says {info.width} x {info.height}'
        )
        remedy = 'publish the camera_info of this image; register depth to colour'
        findings.append(failed(image_topic, detail, remedy))
    if image.header.frame_id != info.header.frame_id:
        detail = f'frame "{image.header.frame_id}", but {info_topic} says "{info.header.frame_id}"'
        remedy = 'depth and colour must be registered: one optical frame for all'
        findings.append(warned(image_topic, detail, remedy))
    return findings


def check_optical(topic: str, frame: str) -> list[Finding]:
    """Check that images are in a frame along the optical axis, by its name (REP 103)."""
    name = frame.rsplit('/', 1)[-1].lower()
    if not frame or 'optical' in name:
        return []
    detail = f'frame_id is "{frame}", which is not called an optical frame (REP 103)'
    remedy = (
        'stamp images and camera_info in the optical frame: z forward, x right, y down, '
        f'such as {topics.CAMERA_FRAME}'
    )
    body = name.endswith('_link') or name in BODY_FRAMES
    return [Finding(topic, Severity.FAILED if body else Severity.WARN, detail, remedy)]


def check_expected(topic: str, info: CameraInfo, expected: Intrinsics) -> list[Finding]:
    """Compare intrinsics with those of a configuration."""
    given = (info.width, info.height, round(info.k[0], 1))
    wanted = (expected.width, expected.height, round(expected.fx, 1))
    if given == wanted:
        return []
    detail = 'is {} x {}, fx {}; the configuration says {} x {}, fx {}'.format(*given, *wanted)
    return [warned(topic, detail, 'change camera: in the configuration')]


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
        faults.append(warned(TF, detail, remedy))
    return faults or [ok(TF, path)]


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
            faults.append(failed(TF, detail, remedy))
        elif len(kinds[child]) > 1:
            remedy = 'two nodes own the edge; keep the static one if it does not move'
            faults.append(failed(TF, f'{child} comes on /tf and on /tf_static', remedy))
    for (parent, child), times in sorted(stamps.items()):
        back = sum(later < earlier for earlier, later in pairwise(times))
        if back:
            detail = f'stamps of {parent}→{child} go backwards {back} times'
            faults.append(warned(TF, detail, 'two nodes publish the edge, or a bag loops'))
    return faults


def _loops(samples: list[EdgeSample]) -> list[Finding]:
    parents = {item.child: item.parent for item in samples}
    for start in sorted(parents):
        seen, frame = [start], start
        while frame in parents:
            frame = parents[frame]
            if frame == start:
                detail = f'the edges go in a circle: {" → ".join([*seen, frame])}'
                return [failed(TF, detail, 'one node has parent and child the wrong way round')]
            if frame in seen:
                break
            seen.append(frame)
    return []


def examine_transforms(seen: StackObservation) -> list[Finding]:
    """Examine the tree that /tf and /tf_static form, if there is one."""
    if TF_TYPE in seen.missing_types:
        remedy = 'apt install ros-$ROS_DISTRO-tf2-msgs'
        return [absent(TF, 'not looked at: tf2_msgs is not installed', remedy)]
    if not seen.graphs[TF].publishers and not seen.graphs[TF_STATIC].publishers:
        detail = 'no node publishes transforms; poses come on topics only'
        return [absent(TF, detail, 'apt install ros-$ROS_DISTRO-tf2-ros')]
    moving, fixed = (seen.records.get(name) for name in (TF, TF_STATIC))
    if errors := [text for record in (moving, fixed) if record for text in record.errors]:
        return [failed(TF, errors[0], 'one node publishes what is no transform')]
    samples = edge_samples(fixed.messages if fixed else (), is_static=True)
    samples += edge_samples(moving.messages if moving else (), is_static=False)
    image = seen.newest(topics.COLOR, Image)
    frame = image.header.frame_id if image is not None else ''
    return check_transforms(samples, frame or topics.CAMERA_FRAME)
