"""Examines a running stack for faults that would spoil a run with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from osmabench_ros.base import contract as topics
from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.base.contract import CONTRACT, TF, TF_STATIC, ContractTopic, Delivery
from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.bringup.doctor.preflight import Finding, Severity, failed, ok, warned
from osmabench_ros.bringup.running_stack.camera import (
    ENCODINGS,
    check_classes,
    check_depth,
    check_encoding,
    check_expected,
    check_intrinsics,
    check_optical,
    check_size,
    examine_transforms,
)
from osmabench_ros.bringup.running_stack.run_topics import (
    check_clock,
    check_cloud,
    check_map,
    check_rate,
    check_run_info,
    check_run_state,
    check_stamps,
    check_synchrony,
    declared_rate_hz,
    examine_maps,
)
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation, observe
from osmabench_ros.errors import ConfigError, ContractError, choose
from osmabench_ros.msg import LabelInfo, RunInfo, RunState, SemanticMap
from osmabench_ros.ros.messages.images import label_set_from_message
from osmabench_ros.ros.node.frame_receiver import camera_pose_from_message
from osmabench_ros.ros.wire.qos import Endpoint, TopicGraph, qos_conflict
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.semantics.labels import LabelSet


@dataclass(frozen=True)
class StackNames:
    """A stack's names for the topics of the contract, and its other map topics with types."""

    namespace: str = ''
    remappings: Mapping[str, str] = field(default_factory=dict)
    extra_topics: Mapping[str, str] = field(default_factory=dict)


def names_of_robot(file: Path) -> StackNames:
    """Read the topics of a stack from a YAML file, or a name in config/methods/live."""
    if not file.suffix and not file.exists():
        problem = f'robot "{file}" is neither a file nor a name in config/methods/live'
        choose(str(file), described_names('methods', 'live'), ConfigError, problem)
        file = config_path('methods', 'live', f'{file}.yaml')
    data = read_yaml(file, ConfigError)
    if not isinstance(data, dict) or not isinstance(data.get('topics', {}), dict):
        raise ConfigError(f'robot file {file}: must be a mapping, and "topics" in it one too')
    remappings = {str(name): str(value) for name, value in data.get('topics', {}).items()}
    check_names_of_topics(remappings, f'robot file {file}')
    given = data.get('map')
    extra = {}
    if (
        isinstance(given, dict)
        and {'topic', 'type'} <= given.keys()
        and '$' not in str(given['topic'])
    ):
        extra = {str(given['topic']): str(given['type'])}
    return StackNames(remappings=remappings, extra_topics=extra)


def check_names_of_topics(remappings: Mapping[str, str], source: str) -> None:
    """Refuse a remapping of a topic that is not examined; raises ConfigError."""
    known = {item.name for item in CONTRACT} | {TF, TF_STATIC}
    for name in remappings:
        if name not in known:
            raise ConfigError(
                f'{source}: "{name}" is no topic of the contract. '
                f'Choose from: {", ".join(sorted(known))}.'
            )


def examine_content(seen: StackObservation, config: MatrixConfig | None) -> list[Finding]:
    """Check images, intrinsics, labels, run information and maps."""
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
        faults = check_encoding(name, image)
        findings += faults + check_optical(name, image.header.frame_id)
        # Depth is registered to colour, so one set of intrinsics holds for all images.
        if color_info is not None:
            findings += check_size(topics.COLOR_INFO, color_info, name, image)
        if all(item.level is Severity.OK for item in faults):
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
        findings.append(failed(topics.LABEL_INFO, str(error), remedy))
    else:
        if labels is not None:
            detail = f'{len(labels.classes)} classes of "{labels.name}"'
            findings.append(ok(topics.LABEL_INFO, detail))
    if (pose := seen.newest(topics.CAMERA_POSE, PoseStamped)) is not None:
        try:
            camera_pose_from_message(pose)
        except ContractError as error:
            remedy = f'publish the pose of the optical frame in "{topics.WORLD_FRAME}"'
            findings.append(failed(topics.CAMERA_POSE, str(error), remedy))
    if (info := seen.newest(topics.RUN_INFO, RunInfo)) is not None:
        findings += check_run_info(info, color_info, frame, seen.nodes)
    if (state := seen.newest(topics.RUN_STATE, RunState)) is not None:
        findings += check_run_state(state)
    if (message := seen.newest(topics.SEMANTIC_MAP, SemanticMap)) is not None:
        findings += check_map(message)
    if (cloud := seen.newest(topics.SEMANTIC_MAP_POINTS, PointCloud2)) is not None:
        findings += check_cloud(topics.SEMANTIC_MAP_POINTS, cloud)
    return findings


def check_endpoints(topic: ContractTopic, graph: TopicGraph, own_hash: str) -> list[Finding]:
    """Compare the endpoints of a topic with the contract and with each other."""
    if not graph.publishers:
        return [_no_publisher(topic, graph)]
    faults = _wrong_types(topic, graph, own_hash) + _conflicts(topic, graph)
    if faults:
        return faults
    names = ', '.join(item.node for item in graph.publishers)
    heard = ', '.join(item.node for item in graph.subscribers) or 'no node yet'
    return [ok(topic.name, f'from {names}; heard by {heard}'), *_hints(topic, graph)]


def _no_publisher(topic: ContractTopic, graph: TopicGraph) -> Finding:
    level = Severity.FAILED if topic.required else Severity.ABSENT
    waiting = ', '.join(item.node for item in graph.subscribers)
    detail = f'no node publishes {graph.name} ({topic.purpose})'
    if waiting:
        detail += f'; {waiting} waits for it'
    remedy = f'start its publisher, or name its topic: --remap {topic.name}:=/your/topic'
    return Finding(topic.name, level, detail, remedy if topic.required or waiting else '')


def _wrong_types(topic: ContractTopic, graph: TopicGraph, own_hash: str) -> list[Finding]:
    expected = topic.message_type
    faults = []
    for role, endpoints in (('publishes', graph.publishers), ('subscribes to', graph.subscribers)):
        for item in endpoints:
            if item.type_name != expected:
                detail = f'{item.node} {role} {item.type_name}, not {expected}'
                remedy = f'publish {expected}, or remap {item.node} to another topic'
            elif own_hash and item.type_hash and item.type_hash != own_hash:
                detail = f'{item.node} {role} another version of {expected} ({item.type_hash})'
                remedy = 'build both sides with the same version of the message package'
            else:
                continue
            faults.append(failed(topic.name, detail, remedy))
    return faults


def _conflicts(topic: ContractTopic, graph: TopicGraph) -> list[Finding]:
    pairs = [(p, s) for p in graph.publishers for s in graph.subscribers]
    checked = [
        (subscriber, publisher, qos_conflict(publisher, subscriber))
        for publisher, subscriber in pairs
    ]
    return [
        failed(topic.name, f'QoS: {conflict}', _qos_remedy(topic, publisher, subscriber))
        for subscriber, publisher, conflict in checked
        if conflict
    ]


def _qos_remedy(topic: ContractTopic, publisher: Endpoint, subscriber: Endpoint) -> str:
    latched = topic.delivery is Delivery.LATCHED
    durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    wanted = 'reliable, transient local' if latched else 'reliable, volatile'
    wrong = [
        item.node
        for item in (publisher, subscriber)
        if item.profile.durability != durability
        or item.profile.reliability != ReliabilityPolicy.RELIABLE
    ]
    return f'the contract says {wanted}; change {" and ".join(wrong) or "the time limits"}'


def _hints(topic: ContractTopic, graph: TopicGraph) -> list[Finding]:
    hints = []
    if topic.delivery is Delivery.LATCHED:
        for item in graph.publishers:
            if item.profile.durability != DurabilityPolicy.TRANSIENT_LOCAL:
                hints.append(
                    warned(
                        topic.name,
                        f'{item.node} publishes volatile: late joiners get no messages',
                        'publish transient local, keep last 1',
                    )
                )
    several = {item.node for item in graph.publishers}
    if topic.delivery in (Delivery.FRAME, Delivery.CLOCK) and len(several) > 1:
        names = ' and '.join(sorted(several))
        detail = f'{names} publish at the same time'
        hints.append(failed(topic.name, detail, 'stop one of them, or remap it'))
    return hints


def examine_stack(
    names: StackNames,
    *,
    seconds: float,
    config: MatrixConfig | None = None,
    progress: Progress = silent,
    domain: int | None = None,
) -> list[Finding]:
    """Listen to a running stack for some seconds and compare it with the topic contract."""
    seen = observe(
        seconds,
        namespace=names.namespace,
        remappings=names.remappings,
        extra_topics=names.extra_topics,
        progress=progress,
        domain=domain,
    )
    return judge(seen, names.extra_topics, config)


def judge(
    seen: StackObservation, extra_topics: Mapping[str, str], config: MatrixConfig | None = None
) -> list[Finding]:
    """Return all findings about an observation."""
    if not seen.nodes:
        remedy = (
            'start it; ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE and the middleware '
            '(RMW_IMPLEMENTATION) must be the same in both shells'
        )
        return [failed('stack', 'no node is there', remedy)]
    findings = [ok('stack', f'{len(seen.nodes)} nodes')]
    for topic in CONTRACT:
        hashes = seen.own_hashes.get(topic.name, '')
        found = check_endpoints(topic, seen.graphs[topic.name], hashes)
        if silence := _silence(topic, seen):
            found = [item for item in found if item.level is not Severity.OK] + silence
        findings += found
    findings += _timing(seen) + examine_content(seen, config) + examine_transforms(seen)
    return _by_part(findings + examine_maps(seen, extra_topics))


def _by_part(findings: list[Finding]) -> list[Finding]:
    """Group findings by topic, in the order in which topics first occur."""
    parts = {item.part: place for place, item in reversed(list(enumerate(findings)))}
    return sorted(findings, key=lambda item: parts[item.part])


def _silence(topic: ContractTopic, seen: StackObservation) -> list[Finding]:
    """Report a topic that has a publisher but no readable message."""
    record = seen.records.get(topic.name)
    if record is None:
        return []
    if record.errors:
        remedy = 'what is published is not of that type, or broken'
        return [failed(topic.name, record.errors[0], remedy)]
    if record.received_ns or not seen.graphs[topic.name].publishers:
        return []
    detail = f'{seen.graphs[topic.name].publishers[0].node} publishes, but no message came'
    state = seen.newest(topics.RUN_STATE, RunState)
    if state is not None and state.state != RunState.STATE_RUNNING:
        detail += f'; the run is not going on ({state.message or "not running"})'
        return [warned(topic.name, detail, 'look again while it runs')]
    if topic.delivery in (Delivery.LATCHED, Delivery.LOSSLESS):
        remedy = 'look again once there is something to say, as a map at the end'
        return [warned(topic.name, detail, remedy)]
    # Images that only ground truth needs may be missing; without the rest there are no frames.
    optional = topic.name in (topics.SEMANTIC, topics.INSTANCE)
    remedy = 'is the camera running? else listen longer: --seconds'
    return [Finding(topic.name, Severity.WARN if optional else Severity.FAILED, detail, remedy)]


def _timing(seen: StackObservation) -> list[Finding]:
    clock, color = seen.records.get(topics.CLOCK), seen.records.get(topics.COLOR)
    declared_hz = declared_rate_hz(seen.newest(topics.RUN_INFO, RunInfo))
    simulated = bool(seen.graphs[topics.CLOCK].publishers)
    findings: list[Finding] = []
    for name in topics.FRAME_TOPICS:
        record = seen.records.get(name)
        if record is None:
            continue
        findings += check_rate(record, declared_hz)
        findings += check_stamps(record, simulated=simulated)
        if color is not None and record is not color:
            findings += check_synchrony(color, record)
    return findings + check_clock(clock, color)
