"""Whether the intrinsics of a running stack can be right."""

from __future__ import annotations

import numpy as np
from sensor_msgs.msg import CameraInfo, Image

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.ros import topics
from osmabench_ros.ros.images import intrinsics_from_message

FOCAL_SHARE = (0.2, 5.0)
"""Focal length by image width of cameras that mapping uses: 136 to 11 degrees."""

PIXEL_ASPECT = (0.8, 1.25)

BODY_FRAMES = (topics.WORLD_FRAME, 'map', 'odom')
"""Frames beside those of links whose x points forward or east, and whose z points up."""


def check_intrinsics(topic: str, info: CameraInfo) -> list[Finding]:
    """Check K, D, R and P of one message."""
    faults = _matrix_faults(info) + _rectification_faults(info)
    if any(info.d):
        faults.append(
            (
                Level.FAILED,
                f'images are distorted: D is {[round(v, 4) for v in info.d]}',
                'rectify (image_proc) and publish camera_info of the rectified image, D all 0',
            )
        )
    elif not faults:
        try:
            intrinsics_from_message(info, topic)
        except ContractError as error:
            faults.append((Level.FAILED, str(error), 'calibrate the camera'))
    if not info.header.frame_id:
        remedy = 'set header.frame_id to the optical frame'
        faults.append((Level.WARN, 'frame_id is empty', remedy))
    if faults:
        return [Finding(topic, level, detail, remedy) for level, detail, remedy in faults]
    detail = (
        f'{info.width} x {info.height}, fx {info.k[0]:.1f}, fy {info.k[4]:.1f}, '
        f'frame {info.header.frame_id}'
    )
    return [Finding(topic, Level.OK, detail)]


def _matrix_faults(info: CameraInfo) -> list[tuple[Level, str, str]]:
    k = np.array(info.k, float).reshape(3, 3)
    calibrate = 'load a calibration in the camera driver'
    if not k.any() or not np.isfinite(k).all() or min(k[0, 0], k[1, 1]) <= 0:
        return [(Level.FAILED, 'K is zero or not finite: the camera is not calibrated', calibrate)]
    if not info.width or not info.height:
        return [(Level.FAILED, 'width and height are not set', calibrate)]
    share, aspect = k[0, 0] / info.width, k[0, 0] / k[1, 1]
    faults = []
    if (
        not FOCAL_SHARE[0] < share < FOCAL_SHARE[1]
        or not PIXEL_ASPECT[0] < aspect < PIXEL_ASPECT[1]
    ):
        detail = f'fx {k[0, 0]:.1f}, fy {k[1, 1]:.1f} are odd for {info.width} x {info.height}'
        remedy = 'is it the calibration of another resolution? scale K with the image'
        faults.append((Level.WARN, detail, remedy))
    if not (0 < k[0, 2] < info.width and 0 < k[1, 2] < info.height):
        detail = f'the principal point ({k[0, 2]:.1f}, {k[1, 2]:.1f}) lies outside the image'
        faults.append((Level.FAILED, detail, 'scale K with the image'))
    return faults


def _rectification_faults(info: CameraInfo) -> list[tuple[Level, str, str]]:
    k, r = np.array(info.k, float).reshape(3, 3), np.array(info.r, float).reshape(3, 3)
    p = np.array(info.p, float).reshape(3, 4)
    if not r.any() or not p.any():
        empty = ' and '.join(name for name, matrix in (('R', r), ('P', p)) if not matrix.any())
        remedy = 'fill R with the identity and P with K; other nodes (RViz, image_proc) need them'
        return [(Level.WARN, f'{empty} is empty', remedy)]
    if not info.distortion_model:
        return [(Level.WARN, 'distortion_model is empty', "set it to 'plumb_bob'")]
    if not np.allclose(p[:, :3], k, rtol=1e-3, atol=1e-3):
        remedy = 'for rectified images K must be the left part of P'
        return [(Level.WARN, f'P says fx {p[0, 0]:.1f}, K says {k[0, 0]:.1f}', remedy)]
    return []


def check_size(info_topic: str, info: CameraInfo, image_topic: str, image: Image) -> list[Finding]:
    """Compare the size and the frame of an image with its intrinsics."""
    findings = []
    if (image.width, image.height) != (info.width, info.height):
        detail = (
            f'{image.width} x {image.height}, but {info_topic} says {info.width} x {info.height}'
        )
        remedy = 'publish the camera_info of this image; register depth to colour'
        findings.append(Finding(image_topic, Level.FAILED, detail, remedy))
    if image.header.frame_id != info.header.frame_id:
        detail = f'frame "{image.header.frame_id}", but {info_topic} says "{info.header.frame_id}"'
        remedy = 'depth and colour must be registered: one optical frame for all'
        findings.append(Finding(image_topic, Level.WARN, detail, remedy))
    return findings


def check_optical(topic: str, frame: str) -> list[Finding]:
    """Check that images are stamped in a frame whose z looks along the optical axis.

    That cannot be seen in the images; REP 103 gives such frames names with ``optical``.
    """
    name = frame.rsplit('/', 1)[-1].lower()
    if not frame or 'optical' in name:
        return []
    detail = f'frame_id is "{frame}", which is not called an optical frame (REP 103)'
    remedy = (
        'stamp images and camera_info in the optical frame: z forward, x right, y down, '
        f'such as {topics.CAMERA_FRAME}'
    )
    body = name.endswith('_link') or name in BODY_FRAMES
    return [Finding(topic, Level.FAILED if body else Level.WARN, detail, remedy)]


def check_expected(topic: str, info: CameraInfo, expected: Intrinsics) -> list[Finding]:
    """Compare intrinsics with those of a configuration."""
    said = (info.width, info.height, round(info.k[0], 1))
    wanted = (expected.width, expected.height, round(expected.fx, 1))
    if said == wanted:
        return []
    detail = 'is {} x {}, fx {}; the configuration says {} x {}, fx {}'.format(*said, *wanted)
    return [Finding(topic, Level.WARN, detail, 'change camera: in the configuration')]
