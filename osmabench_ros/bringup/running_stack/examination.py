"""Examines a running stack for errors that would spoil a run with it."""

from collections.abc import Callable, Mapping
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from osmabench_ros.base import contract as topics
from osmabench_ros.base.configuration import config_path, described_names
from osmabench_ros.base.contract import CONTRACT, TF, TF_STATIC, ContractTopic, Delivery
from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.bringup.finding import Finding, Severity, attempt
from osmabench_ros.bringup.running_stack import checks, stack_observation
from osmabench_ros.bringup.running_stack.checks import CHECKS
from osmabench_ros.bringup.running_stack.stack_observation import StackNames, StackObservation
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.msg import LabelInfo, RunInfo, RunState, SemanticMap
from osmabench_ros.ros.messages.images import label_set_from_message
from osmabench_ros.ros.node.frame_receiver import camera_pose_from_message
from osmabench_ros.ros.qos import Endpoint, TopicGraph, qos_conflict
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.semantics.labels import LabelSet


def names_of_robot(file: Path) -> StackNames:
    """Read the topics of a stack from a YAML file, or a name in config/methods/live."""
    if not file.suffix and not file.exists():
        problem = f'robot "{file}" is neither a file nor a name in config/methods/live'
        choose(str(file), described_names('methods', 'live'), ConfigError, problem)
        file = config_path('methods', 'live', f'{file}.yaml')
    data = read_yaml(file, ConfigError)
    if not isinstance(data, dict) or not isinstance(data.get('topics', {}), dict):
        raise ConfigError(f'robot file {file}: must be a mapping, and "topics" in it too')
    remappings = {str(name): str(value) for name, value in data.get('topics', {}).items()}
    check_names_of_topics(remappings, f'robot file {file}')
    source, extra = data.get('map'), {}
    if isinstance(source, dict) and '$' not in str(source.get('topic', '$')):
        extra = {str(source['topic']): str(source.get('type'))}
    return StackNames(remappings=remappings, extra_topics=extra)


def check_names_of_topics(remappings: Mapping[str, str], source: str) -> None:
    """Refuse a remapping of a topic that is not examined; raises ConfigError."""
    known = {item.name for item in CONTRACT} | {TF, TF_STATIC}
    for name in remappings:
        problem = f'{source}: "{name}" is not a topic of the contract'
        choose(name, known, ConfigError, problem)


def examine_content(seen: StackObservation, config: MatrixConfig | None) -> list[Finding]:
    """Check images, intrinsics, labels, run information and maps."""
    findings: list[Finding] = []
    info = seen.newest(topics.COLOR_INFO, CameraInfo)
    color = seen.newest(topics.COLOR, Image)
    for name in (topics.COLOR_INFO, topics.DEPTH_INFO):
        if (found := seen.newest(name, CameraInfo)) is not None:
            findings += checks.check_intrinsics(name, found)
    if config is not None and info is not None:
        findings += checks.check_expected(topics.COLOR_INFO, info, config.camera.intrinsics)
    labels, label_set = _label_set(seen)
    for name in checks.ENCODINGS:
        image = seen.newest(name, Image)
        if image is None:
            continue
        faults = checks.check_encoding(name, image)
        findings += faults + checks.check_optical(name, image.header.frame_id)
        # Depth is registered to colour, so one set of intrinsics holds for all images.
        if info is not None:
            findings += checks.check_size(topics.COLOR_INFO, info, name, image)
        if any(item.level is not Severity.OK for item in faults):
            continue
        if name == topics.DEPTH:
            findings += checks.check_depth(image)
        elif name == topics.SEMANTIC and not any(f.level is Severity.FAILED for f in labels):
            findings += checks.check_classes(image, label_set)
    findings += labels
    frame = color.header.frame_id if color is not None else ''
    of_message: dict[str, tuple[type[Any], Callable[[Any], list[Finding]]]] = {
        topics.CAMERA_POSE: (PoseStamped, _check_pose),
        topics.RUN_INFO: (
            RunInfo,
            lambda message: checks.check_run_info(message, info, frame, seen.nodes),
        ),
        topics.RUN_STATE: (RunState, checks.check_run_state),
        topics.SEMANTIC_MAP: (SemanticMap, checks.check_map),
        topics.SEMANTIC_MAP_POINTS: (
            PointCloud2,
            partial(checks.check_cloud, topics.SEMANTIC_MAP_POINTS),
        ),
    }
    for name, (kind, check) in of_message.items():
        if (message := seen.newest(name, kind)) is not None:
            findings += check(message)
    return findings


def _check_pose(pose: PoseStamped) -> list[Finding]:
    _, error = attempt(lambda: camera_pose_from_message(pose))
    return CHECKS.find_all('pose', topics.CAMERA_POSE, error=error)


def _label_set(seen: StackObservation) -> tuple[list[Finding], LabelSet | None]:
    message = seen.newest(topics.LABEL_INFO, LabelInfo)
    if message is None:
        return [], None
    label_set, error = attempt(lambda: label_set_from_message(message, topics.LABEL_INFO))
    found = CHECKS.find_all('labels', topics.LABEL_INFO, error=error, label_set=label_set)
    return found, label_set


def check_endpoints(topic: ContractTopic, graph: TopicGraph) -> list[Finding]:
    """Compare the endpoints of a topic with the contract and with each other."""
    if not graph.publishers:
        waiting = ', '.join(item.node for item in graph.subscribers)
        return CHECKS.find_first(
            'publisher',
            topic.name,
            topic=topic,
            name=graph.name,
            waiting=f'; {waiting} waits for it' if waiting else '',
        )
    roles = (('publishes', graph.publishers), ('subscribes to', graph.subscribers))
    faults: list[Finding] = []
    for role, ends in roles:
        for end in ends:
            values = {'own_hash': graph.own_hash, 'topic': topic, 'role': role, 'end': end}
            faults += CHECKS.find_first('endpoint', topic.name, **values)
    for publisher, subscriber in product(graph.publishers, graph.subscribers):
        faults += _conflict(topic, publisher, subscriber)
    if faults:
        return faults
    return [CHECKS.find_one('ends', topic.name, **vars(graph)), *_find_hints(topic, graph)]


def _conflict(topic: ContractTopic, publisher: Endpoint, subscriber: Endpoint) -> list[Finding]:
    latched = topic.delivery is Delivery.LATCHED
    durability = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
    wrong = [
        item.node
        for item in (publisher, subscriber)
        if item.profile.durability != durability
        or item.profile.reliability != ReliabilityPolicy.RELIABLE
    ]
    return CHECKS.find_all(
        'pair',
        topic.name,
        conflict=qos_conflict(publisher, subscriber),
        latched=latched,
        wrong=wrong,
    )


def _find_hints(topic: ContractTopic, graph: TopicGraph) -> list[Finding]:
    names = sorted({item.node for item in graph.publishers})
    volatile = sorted(
        item.node
        for item in graph.publishers
        if item.profile.durability != DurabilityPolicy.TRANSIENT_LOCAL
    )
    return CHECKS.find_all(
        'publishers',
        topic.name,
        volatile=volatile if topic.delivery is Delivery.LATCHED else [],
        single=topic.name != topics.FRAME_ACK,
        names=names,
    )


def examine_stack(
    names: StackNames,
    *,
    seconds: float,
    config: MatrixConfig | None = None,
    progress: Progress = silent,
    domain: int | None = None,
) -> list[Finding]:
    """Listen to a running stack for some seconds and compare it with the topic contract."""
    seen = stack_observation.observe(names, seconds, progress, domain)
    return judge(seen, names.extra_topics, config)


def judge(
    seen: StackObservation, extra_topics: Mapping[str, str], config: MatrixConfig | None = None
) -> list[Finding]:
    """Return all findings about an observation."""
    findings = CHECKS.find_all('stack', 'stack', count=len(seen.nodes))
    if not seen.nodes:
        return findings
    for topic in CONTRACT:
        found = check_endpoints(topic, seen.graphs[topic.name])
        if silence := _silence(topic, seen):
            found = [item for item in found if item.level is not Severity.OK] + silence
        findings += found
    findings += _timing(seen) + examine_content(seen, config) + checks.examine_transforms(seen)
    for name, kind in extra_topics.items():
        findings += checks.examine_map(name, kind, seen)
    # By topic, in the order in which topics first occur.
    parts = {item.part: place for place, item in reversed(list(enumerate(findings)))}
    return sorted(findings, key=lambda item: parts[item.part])


def _silence(topic: ContractTopic, seen: StackObservation) -> list[Finding]:
    """Report a topic that has a publisher but no readable message."""
    record = seen.records.get(topic.name)
    publishers = seen.graphs[topic.name].publishers
    if record is None or not (record.errors or publishers):
        return []
    state = seen.newest(topics.RUN_STATE, RunState)
    return CHECKS.find_first(
        'silence',
        topic.name,
        record=record,
        publishers=publishers,
        on_request=topic.delivery in (Delivery.LATCHED, Delivery.LOSSLESS),
        optional=topic.name in (topics.SEMANTIC, topics.INSTANCE),
        state=state,
    )


def _timing(seen: StackObservation) -> list[Finding]:
    clock = seen.records.get(topics.CLOCK)
    color = seen.records.get(topics.COLOR)
    declared_hz = checks.declared_rate_hz(seen.newest(topics.RUN_INFO, RunInfo))
    simulated = bool(seen.graphs[topics.CLOCK].publishers)
    findings: list[Finding] = []
    for name in topics.FRAME_TOPICS:
        record = seen.records.get(name)
        if record is None:
            continue
        findings += checks.check_rate(record, declared_hz)
        findings += checks.check_stamps(record, simulated=simulated)
        if color is not None and record is not color:
            findings += checks.check_synchrony(color, record)
    return findings + checks.check_clock(clock, color)
