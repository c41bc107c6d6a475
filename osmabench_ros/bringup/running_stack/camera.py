"""Checks of the images, the intrinsics and the transforms of a running stack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.base import contract as topics
from osmabench_ros.base.contract import TF, TF_STATIC, TF_TYPE
from osmabench_ros.base.images import (
    COLOR_ENCODINGS,
    DEPTH_ENCODINGS,
    INSTANCE_ENCODINGS,
    SEMANTIC_ENCODINGS,
)
from osmabench_ros.bringup.finding import CheckTables, Finding, Severity, attempt
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.transform_tree import StampedTransform
from osmabench_ros.ros.messages import images
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.sequences.pose_topics import read_transforms

CHECKS = CheckTables(Path(__file__).with_name('checks.yaml'))

ENCODINGS = {
    topics.COLOR: COLOR_ENCODINGS,
    topics.DEPTH: DEPTH_ENCODINGS,
    topics.SEMANTIC: SEMANTIC_ENCODINGS,
    topics.INSTANCE: INSTANCE_ENCODINGS,
}
"""Encodings that images may have, the contract's own first."""


def check_encoding(topic: str, image: Image) -> list[Finding]:
    """Check the encoding and the layout of an image."""
    encodings = ENCODINGS[topic]
    return CHECKS.find_first(
        'image',
        topic,
        topic=topic,
        image=image,
        is_depth=topic == topics.DEPTH,
        colors=(*COLOR_ENCODINGS, '8UC1'),
        encodings=encodings,
        encoding=image.encoding or 'empty',
        allowed=' or '.join(encodings),
        wanted=encodings[0],
        error=attempt(lambda: images.image_from_message(image, topic))[1],
    )


def check_depth(image: Image) -> list[Finding]:
    """Check the scale and the invalid pixels of a depth image with a valid encoding."""
    depth_m = images.depth_from_message(image, topics.DEPTH)
    in_metres = image.encoding == '32FC1'
    valid = depth_m[np.isfinite(depth_m) & ((depth_m != 0) | (not in_metres))]
    return CHECKS.find_all('depth_unit', topics.DEPTH, in_metres=in_metres) + CHECKS.find_first(
        'depth',
        topics.DEPTH,
        image=image,
        in_metres=in_metres,
        count=len(valid),
        median_m=float(np.median(valid)) if len(valid) else 0.0,
        zeros=float((depth_m == 0).mean()),
        negative=(depth_m < 0).any(),
        invalid=float(np.isnan(depth_m).mean()),
    )


def check_classes(image: Image, label_set: LabelSet | None) -> list[Finding]:
    """Check that the ids of a semantic image have names."""
    pixels = images.image_from_message(image, topics.SEMANTIC)
    ids = set(np.unique(pixels).tolist()) - {UNLABELLED}
    known = {item.id for item in label_set.classes} if label_set is not None else set()
    return CHECKS.find_first(
        'classes',
        topics.SEMANTIC,
        label_set=label_set,
        count=len(ids),
        unknown=sorted(ids - known)[:5],
    )


def check_intrinsics(topic: str, info: CameraInfo) -> list[Finding]:
    """Check K, D, R and P of one message."""
    k, r = np.array(info.k, float).reshape(3, 3), np.array(info.r, float).reshape(3, 3)
    p = np.array(info.p, float).reshape(3, 4)
    fx, fy, cx, cy = k[0, 0], k[1, 1], k[0, 2], k[1, 2]
    has_focal = bool(np.isfinite(k).all()) and min(fx, fy) > 0
    complete = has_focal and info.width and info.height
    centered = 0 < cx < info.width and 0 < cy < info.height
    agrees = np.allclose(p[:, :3], k, rtol=1e-3, atol=1e-3)
    distortion = [round(v, 4) for v in info.d] if any(info.d) else []
    # The other rows say more than the error of the reader.
    fine = complete and centered and info.distortion_model and agrees and not distortion
    return CHECKS.find_all(
        'intrinsics',
        topic,
        info=info,
        fx=fx,
        fy=fy,
        cx=cx,
        cy=cy,
        projected_fx=p[0, 0],
        has_focal=has_focal,
        complete=complete,
        centered=centered,
        empty=' and '.join(name for name, matrix in (('R', r), ('P', p)) if not matrix.any()),
        agrees=agrees,
        distortion=distortion,
        error=fine and attempt(lambda: images.intrinsics_from_message(info, topic))[1],
    )


def check_size(info_topic: str, info: CameraInfo, image_topic: str, image: Image) -> list[Finding]:
    """Compare the size and the frame of an image with its intrinsics."""
    return CHECKS.find_all('size', image_topic, image=image, info=info, info_topic=info_topic)


def check_optical(topic: str, frame: str) -> list[Finding]:
    """Check that images are in a frame along the optical axis, by its name (REP 103)."""
    name = frame.rsplit('/', 1)[-1].lower()
    return CHECKS.find_first('frame_name', topic, frame=frame, name=name)


def check_expected(topic: str, info: CameraInfo, expected: Intrinsics) -> list[Finding]:
    """Compare intrinsics with the camera of a configuration."""
    given = f'{info.width} x {info.height}, fx {info.k[0]:.1f}'
    wanted = f'{expected.width} x {expected.height}, fx {expected.fx:.1f}'
    return CHECKS.find_all('configured_camera', topic, given=given, wanted=wanted)


def check_transforms(samples: Sequence[StampedTransform], camera_frame: str) -> list[Finding]:
    """Check the tree of the edges, in order of arrival, from the images' optical frame upwards."""
    edges: dict[str, list[StampedTransform]] = defaultdict(list)
    for item in samples:
        edges[item.child].append(item)
    faults = [item for child in sorted(edges) for item in _check_edges(child, edges[child])]
    parents = {item.child: item.parent for item in samples}
    way = _find_way_up(camera_frame, parents)
    ways = [_find_way_up(frame, parents) for frame in sorted(parents)]
    circle = next((item for item in ways if parents.get(item[-1]) == item[0]), [])
    tree = CHECKS.find_all(
        'tree',
        TF,
        circle=' → '.join([*circle, *circle[:1]]),
        on_world=topics.WORLD_FRAME in way,
        known=camera_frame in parents,
        camera=camera_frame,
        path=' → '.join(reversed(way)),
    )
    return faults + [item for item in tree if not faults or item.level is not Severity.OK]


def _check_edges(child: str, samples: Sequence[StampedTransform]) -> list[Finding]:
    parents = sorted({item.parent for item in samples})
    moving = [[s.stamp_ns for s in samples if s.parent == p and not s.is_static] for p in parents]
    return CHECKS.find_all(
        'edge',
        TF,
        kinds=len({item.is_static for item in samples}),
        steps_back=sum(late < early for times in moving for early, late in pairwise(times)),
        child=child,
        count=len(parents),
        names=', '.join(parents),
    )


def _find_way_up(frame: str, parents: dict[str, str]) -> list[str]:
    """Return a frame and those above it, to the root or to where a circle closes."""
    way = [frame]
    while way[-1] in parents and parents[way[-1]] not in way:
        way.append(parents[way[-1]])
    return way


def examine_transforms(seen: StackObservation) -> list[Finding]:
    """Examine the tree that /tf and /tf_static form, if there is one."""
    records = {name: seen.records[name] for name in (TF_STATIC, TF) if name in seen.records}
    messages = [(name, message) for name, item in records.items() for message in item.messages]
    samples, fault = attempt(lambda: list(read_transforms(messages)))
    errors = [text for record in records.values() for text in record.errors]
    faults = CHECKS.find_first(
        'transforms',
        TF,
        no_type=TF_TYPE in seen.missing_types,
        no_publisher=not (seen.graphs[TF].publishers or seen.graphs[TF_STATIC].publishers),
        error=''.join(errors[:1]) or fault,
    )
    if faults or samples is None:
        return faults
    image = seen.newest(topics.COLOR, Image)
    frame = image.header.frame_id if image is not None else ''
    return check_transforms(samples, frame or topics.CAMERA_FRAME)
