"""Whether the pixels of a running stack mean what the contract says."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from sensor_msgs.msg import Image

from osmabench_ros.base.image_codec import (
    COLOR_ENCODINGS,
    DEPTH_ENCODINGS,
    INSTANCE_ENCODINGS,
    SEMANTIC_ENCODINGS,
)
from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.errors import ContractError
from osmabench_ros.ros import topics
from osmabench_ros.ros.images import depth_from_message, image_from_message
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
            remedy = 'that is a picture of depth for people; publish the raw depth'
        detail = f'encoding is {image.encoding or "empty"}, must be {wanted}'
        return [Finding(topic, Level.FAILED, detail, remedy)]
    try:
        image_from_message(image, topic)
    except ContractError as error:
        return [Finding(topic, Level.FAILED, str(error), 'fill height, width and step')]
    detail = f'{image.encoding}, {image.width} x {image.height}'
    return [Finding(topic, Level.OK, detail)]


def check_depth(image: Image) -> list[Finding]:
    """Check the scale and the invalid pixels of a depth image; its encoding is right."""
    depth_m = depth_from_message(image, topics.DEPTH)
    finite = depth_m[np.isfinite(depth_m)]
    if image.encoding == '32FC1':
        finite = finite[finite != 0]
    if not len(finite):
        remedy = 'is the lens covered, or everything beyond the range?'
        return [Finding(topics.DEPTH, Level.FAILED, 'no pixel has a depth', remedy)]
    median_m = float(np.median(finite))
    scale = _scale_fault(image.encoding, median_m)
    if scale is not None:
        return [scale]
    findings = []
    if image.encoding != '32FC1':
        detail = '16-bit depth is read as millimetres, 0 as invalid'
        remedy = 'nothing, if it is; else convert to 32FC1 in metres'
        findings.append(Finding(topics.DEPTH, Level.WARN, detail, remedy))
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
    return Finding(topics.DEPTH, Level.FAILED, detail, remedy)


def _invalid(image: Image, depth_m: NDArray[np.float32], median_m: float) -> list[Finding]:
    zeros = float((depth_m == 0).mean())
    if image.encoding == '32FC1' and zeros > ZERO_SHARE:
        detail = f'{zeros:.0%} of the pixels are 0, which is a distance in 32FC1'
        return [Finding(topics.DEPTH, Level.FAILED, detail, 'publish NaN for invalid (REP 118)')]
    if (depth_m < 0).any():
        detail = 'there are negative depths'
        return [Finding(topics.DEPTH, Level.FAILED, detail, 'publish NaN for invalid (REP 118)')]
    invalid = float(np.isnan(depth_m).mean())
    detail = f'median {median_m:.2f} m, {invalid:.0%} invalid'
    if invalid > INVALID_SHARE:
        remedy = 'sun, glass or a range too short? half of every frame is missing'
        return [Finding(topics.DEPTH, Level.WARN, detail, remedy)]
    return [Finding(topics.DEPTH, Level.OK, detail)]


def check_classes(image: Image, label_set: LabelSet | None) -> list[Finding]:
    """Check that the ids of a semantic image have names."""
    ids = np.unique(image_from_message(image, topics.SEMANTIC))
    ids = ids[ids != UNLABELLED]
    if label_set is None:
        detail = f'{len(ids)} classes without names'
        remedy = f'publish {topics.LABEL_INFO}, latched'
        return [Finding(topics.SEMANTIC, Level.WARN, detail, remedy)]
    unknown = sorted(set(ids.tolist()) - {item.id for item in label_set.classes})
    if unknown:
        detail = f'ids {unknown[:5]} are not in {topics.LABEL_INFO} ("{label_set.name}")'
        remedy = 'publish the label set of these images; 65535 is unlabelled'
        return [Finding(topics.SEMANTIC, Level.FAILED, detail, remedy)]
    if not len(ids):
        remedy = 'is the semantic camera set up?'
        return [Finding(topics.SEMANTIC, Level.WARN, 'no pixel is labelled', remedy)]
    return [Finding(topics.SEMANTIC, Level.OK, f'{len(ids)} classes seen, all named')]
