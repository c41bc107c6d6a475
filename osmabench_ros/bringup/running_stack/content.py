"""What is in the messages of a running stack."""

from __future__ import annotations

from geometry_msgs.msg import PoseStamped
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.bringup.running_stack.camera import (
    check_expected,
    check_intrinsics,
    check_optical,
    check_size,
)
from osmabench_ros.bringup.running_stack.images import (
    ENCODINGS,
    check_classes,
    check_depth,
    check_encoding,
)
from osmabench_ros.bringup.running_stack.run_topics import (
    check_cloud,
    check_map,
    check_run_info,
    check_run_state,
)
from osmabench_ros.errors import ContractError
from osmabench_ros.msg import LabelInfo, RunInfo, RunState, SemanticMap
from osmabench_ros.ros import topics
from osmabench_ros.ros.frame_receiver import camera_pose_from_message
from osmabench_ros.ros.label_messages import label_set_from_message
from osmabench_ros.ros.stack_observation import StackObservation
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.semantics.labels import LabelSet


def examine_content(seen: StackObservation, config: MatrixConfig | None) -> list[Finding]:
    """Look into images, intrinsics, labels and what is said of the run and its map."""
    findings: list[Finding] = []
    color_info = seen.newest(topics.COLOR_INFO, CameraInfo)
    depth_info = seen.newest(topics.DEPTH_INFO, CameraInfo)
    for name, info in ((topics.COLOR_INFO, color_info), (topics.DEPTH_INFO, depth_info)):
        if info is not None:
            findings += check_intrinsics(name, info)
    if config is not None and color_info is not None:
        findings += check_expected(topics.COLOR_INFO, color_info, config.camera.intrinsics)
    frame = ''
    for name in ENCODINGS:
        image = seen.newest(name, Image)
        if image is None:
            continue
        frame = image.header.frame_id if name == topics.COLOR else frame
        told = check_encoding(name, image)
        findings += told + check_optical(name, image.header.frame_id)
        # Depth is registered to colour, so one set of intrinsics holds for all images.
        if color_info is not None:
            findings += check_size(topics.COLOR_INFO, color_info, name, image)
        if all(item.level is Level.OK for item in told):
            findings += _pixels(name, image, seen)
    return findings + _run(seen, color_info, frame)


def _pixels(name: str, image: Image, seen: StackObservation) -> list[Finding]:
    if name == topics.DEPTH:
        return check_depth(image)
    if name == topics.SEMANTIC:
        try:
            return check_classes(image, _label_set(seen))
        except ContractError:
            return []
    return []


def _label_set(seen: StackObservation) -> LabelSet | None:
    message = seen.newest(topics.LABEL_INFO, LabelInfo)
    return None if message is None else label_set_from_message(message, topics.LABEL_INFO)


def _run(seen: StackObservation, color_info: CameraInfo | None, frame: str) -> list[Finding]:
    findings: list[Finding] = []
    try:
        labels = _label_set(seen)
    except ContractError as error:
        remedy = 'publish ids that are unique and in 0 to 65534'
        findings.append(Finding(topics.LABEL_INFO, Level.FAILED, str(error), remedy))
    else:
        if labels is not None:
            detail = f'{len(labels.classes)} classes of "{labels.name}"'
            findings.append(Finding(topics.LABEL_INFO, Level.OK, detail))
    if (pose := seen.newest(topics.CAMERA_POSE, PoseStamped)) is not None:
        try:
            camera_pose_from_message(pose)
        except ContractError as error:
            remedy = f'publish the pose of the optical frame in "{topics.WORLD_FRAME}"'
            findings.append(Finding(topics.CAMERA_POSE, Level.FAILED, str(error), remedy))
    if (info := seen.newest(topics.RUN_INFO, RunInfo)) is not None:
        findings += check_run_info(info, color_info, frame, seen.nodes)
    if (state := seen.newest(topics.RUN_STATE, RunState)) is not None:
        findings += check_run_state(state)
    if (message := seen.newest(topics.SEMANTIC_MAP, SemanticMap)) is not None:
        findings += check_map(message)
    if (cloud := seen.newest(topics.SEMANTIC_MAP_POINTS, PointCloud2)) is not None:
        findings += check_cloud(topics.SEMANTIC_MAP_POINTS, cloud)
    return findings
