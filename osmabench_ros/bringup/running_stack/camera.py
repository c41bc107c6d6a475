"""Checks of the images, the intrinsics and the transforms of a running stack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base import contract as topics
from osmabench_ros.base import image_codec
from osmabench_ros.base.contract import TF, TF_STATIC, TF_TYPE
from osmabench_ros.bringup.doctor.finding import CheckTables, Finding, Severity, attempt
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.ros.messages import images
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

CHECKS = CheckTables(Path(__file__).with_name('checks.yaml'))

ENCODINGS = {
    topics.COLOR: image_codec.COLOR_ENCODINGS,
    topics.DEPTH: image_codec.DEPTH_ENCODINGS,
    topics.SEMANTIC: image_codec.SEMANTIC_ENCODINGS,
    topics.INSTANCE: image_codec.INSTANCE_ENCODINGS,
}
"""Encodings that images may have, the contract's own first."""


def check_encoding(topic: str, image: Image) -> list[Finding]:
    """Check the encoding and the layout of an image."""
    allowed = ENCODINGS[topic]
    colors = (*image_codec.COLOR_ENCODINGS, '8UC1')
    return CHECKS.find_first(
        'image',
        topic,
        depth_in_colors=topic == topics.DEPTH and image.encoding in colors,
        other_encoding=image.encoding not in allowed,
        error=attempt(lambda: images.image_from_message(image, topic))[1],
        image=image,
        topic=topic,
        encoding=image.encoding or 'empty',
        allowed=' or '.join(allowed),
        wanted=allowed[0],
    )


MAX_MEDIAN_M = 100.0
"""No room is that deep: a larger median is in millimetres."""

MIN_MEDIAN_M = 0.02
MAX_INVALID, MAX_ZEROS = 0.5, 0.01
"""Fractions of the pixels of a depth image."""


def check_depth(image: Image) -> list[Finding]:
    """Check the scale and the invalid pixels of a depth image with a valid encoding."""
    depth_m = images.depth_from_message(image, topics.DEPTH)
    is_metres = image.encoding == '32FC1'
    valid = depth_m[np.isfinite(depth_m) & ((depth_m != 0) | (not is_metres))]
    median_m = float(np.median(valid)) if len(valid) else 0.0
    zeros, invalid = float((depth_m == 0).mean()), float(np.isnan(depth_m).mean())
    findings = CHECKS.find_first(
        'depth',
        topics.DEPTH,
        no_depth=not len(valid),
        millimetres=is_metres and median_m > MAX_MEDIAN_M,
        too_small=not is_metres and median_m < MIN_MEDIAN_M,
        has_zeros=is_metres and zeros > MAX_ZEROS,
        negative=(depth_m < 0).any(),
        mostly_invalid=invalid > MAX_INVALID,
        median_m=median_m,
        median_mm=median_m * 1000,
        encoding=image.encoding,
        zeros=zeros,
        invalid=invalid,
    )
    is_16_bit = not is_metres and findings[0].level is not Severity.FAILED
    return CHECKS.find_all('depth_unit', topics.DEPTH, is_16_bit=is_16_bit) + findings


def check_classes(image: Image, label_set: LabelSet | None) -> list[Finding]:
    """Check that the ids of a semantic image have names."""
    pixels = images.image_from_message(image, topics.SEMANTIC)
    ids = set(np.unique(pixels).tolist()) - {UNLABELLED}
    known = {item.id for item in label_set.classes} if label_set is not None else set()
    return CHECKS.find_first(
        'classes',
        topics.SEMANTIC,
        unnamed=label_set is None,
        unknown=sorted(ids - known)[:5],
        unlabelled=not ids,
        count=len(ids),
        name=label_set.name if label_set is not None else '',
    )


MIN_FOCAL, MAX_FOCAL = 0.2, 5.0
"""Focal length by image width of cameras that mapping uses: 136 to 11 degrees."""

MIN_ASPECT, MAX_ASPECT = 0.8, 1.25

BODY_FRAMES = (topics.WORLD_FRAME, 'map', 'odom')
"""Frames, other than of links, that have x forward or east and z up."""


def check_intrinsics(topic: str, info: CameraInfo) -> list[Finding]:
    """Check K, D, R and P of one message."""
    k, r = np.array(info.k, float).reshape(3, 3), np.array(info.r, float).reshape(3, 3)
    p = np.array(info.p, float).reshape(3, 4)
    fx, fy, cx, cy = k[0, 0], k[1, 1], k[0, 2], k[1, 2]
    has_focal = bool(np.isfinite(k).all()) and min(fx, fy) > 0
    is_complete = has_focal and info.width and info.height
    empty = ' and '.join(name for name, matrix in (('R', r), ('P', p)) if not matrix.any())
    agrees = np.allclose(p[:, :3], k, rtol=1e-3, atol=1e-3)
    distortion = [round(v, 4) for v in info.d] if any(info.d) else []
    centered = 0 < cx < info.width and 0 < cy < info.height
    # The other rows say more than the error of the reader.
    fine = is_complete and centered and info.distortion_model and agrees and not distortion
    return CHECKS.find_all(
        'intrinsics',
        topic,
        no_focal=not has_focal,
        no_size=has_focal and not is_complete,
        odd=is_complete and not _is_usual(fx / info.width, fx / fy),
        center_outside=is_complete and not centered,
        empty=empty,
        no_model=not empty and not info.distortion_model,
        unequal=not empty and info.distortion_model and not agrees,
        distortion=distortion,
        error=fine and attempt(lambda: images.intrinsics_from_message(info, topic))[1],
        no_frame=not info.header.frame_id,
        info=info,
        fx=fx,
        fy=fy,
        cx=cx,
        cy=cy,
        projected_fx=p[0, 0],
    )


def _is_usual(focal: float, aspect: float) -> bool:
    return MIN_FOCAL < focal < MAX_FOCAL and MIN_ASPECT < aspect < MAX_ASPECT


def check_size(info_topic: str, info: CameraInfo, image_topic: str, image: Image) -> list[Finding]:
    """Compare the size and the frame of an image with its intrinsics."""
    return CHECKS.find_all(
        'size',
        image_topic,
        other_size=(image.width, image.height) != (info.width, info.height),
        other_frame=image.header.frame_id != info.header.frame_id,
        image=image,
        info=info,
        info_topic=info_topic,
    )


def check_optical(topic: str, frame: str) -> list[Finding]:
    """Check that images are in a frame along the optical axis, by its name (REP 103)."""
    name = frame.rsplit('/', 1)[-1].lower()
    return CHECKS.find_first(
        'frame_name',
        topic,
        of_body=name in BODY_FRAMES or name.endswith('_link'),
        not_optical=frame and 'optical' not in name,
        frame=frame,
    )


def check_expected(topic: str, info: CameraInfo, expected: Intrinsics) -> list[Finding]:
    """Compare intrinsics with the camera of a configuration."""
    given = f'{info.width} x {info.height}, fx {info.k[0]:.1f}'
    wanted = f'{expected.width} x {expected.height}, fx {expected.fx:.1f}'
    return CHECKS.find_all(
        'configured_camera', topic, differs=given != wanted, given=given, wanted=wanted
    )


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
    edges: dict[str, list[EdgeSample]] = defaultdict(list)
    for item in samples:
        edges[item.child].append(item)
    faults = [item for child in sorted(edges) for item in _check_edges(child, edges[child])]
    parents = {item.child: item.parent for item in samples}
    way = _way_up(camera_frame, parents)
    ways = [_way_up(frame, parents) for frame in sorted(parents)]
    circle = next((item for item in ways if parents.get(item[-1]) == item[0]), [])
    has_world = topics.WORLD_FRAME in way
    tree = CHECKS.find_all(
        'tree',
        TF,
        circle=' → '.join([*circle, *circle[:1]]),
        not_on_world=not has_world and camera_frame in parents,
        no_camera=not has_world and camera_frame not in parents,
        camera=camera_frame,
        path=' → '.join(reversed(way)),
    )
    return faults + [item for item in tree if not faults or item.level is not Severity.OK]


def _check_edges(child: str, samples: list[EdgeSample]) -> list[Finding]:
    parents = sorted({item.parent for item in samples})
    moving = [[s.stamp_ns for s in samples if s.parent == p and not s.is_static] for p in parents]
    return CHECKS.find_all(
        'edge',
        TF,
        several_parents=len(parents) > 1,
        static_and_moving=len(parents) == 1 and len({item.is_static for item in samples}) > 1,
        steps_back=sum(late < early for times in moving for early, late in pairwise(times)),
        child=child,
        count=len(parents),
        names=', '.join(parents),
    )


def _way_up(frame: str, parents: dict[str, str]) -> list[str]:
    """Return a frame and those above it, to the root or to where a circle closes."""
    way = [frame]
    while way[-1] in parents and parents[way[-1]] not in way:
        way.append(parents[way[-1]])
    return way


def examine_transforms(seen: StackObservation) -> list[Finding]:
    """Examine the tree that /tf and /tf_static form, if there is one."""
    records = {name: seen.records[name] for name in (TF_STATIC, TF) if name in seen.records}
    faults = CHECKS.find_first(
        'transforms',
        TF,
        no_type=TF_TYPE in seen.missing_types,
        no_publisher=not (seen.graphs[TF].publishers or seen.graphs[TF_STATIC].publishers),
        error=next((text for record in records.values() for text in record.errors), ''),
    )
    if faults:
        return faults
    samples: list[EdgeSample] = []
    for name, record in records.items():
        samples += edge_samples(record.messages, is_static=name == TF_STATIC)
    image = seen.newest(topics.COLOR, Image)
    frame = image.header.frame_id if image is not None else ''
    return check_transforms(samples, frame or topics.CAMERA_FRAME)
