"""Looks at a stack that is already running and says what would spoil a run with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import yaml
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.bringup.stack_camera import check_expected, check_intrinsics, check_size
from osmabench_ros.bringup.stack_endpoints import check_endpoints
from osmabench_ros.bringup.stack_images import (
    ENCODINGS,
    check_classes,
    check_depth,
    check_encoding,
)
from osmabench_ros.bringup.stack_run import (
    check_cloud,
    check_map,
    check_run_info,
    check_run_state,
    declared_rate_hz,
)
from osmabench_ros.bringup.stack_timing import (
    check_clock,
    check_rate,
    check_stamps,
    check_synchrony,
)
from osmabench_ros.bringup.stack_transforms import check_transforms, edge_samples
from osmabench_ros.configuration import config_path, described_names
from osmabench_ros.errors import ConfigError, ContractError, suggestion
from osmabench_ros.msg import LabelInfo, RunInfo, RunState, SemanticMap
from osmabench_ros.ros import topics
from osmabench_ros.ros.contract import CONTRACT, ContractTopic, Delivery
from osmabench_ros.ros.label_messages import label_set_from_message
from osmabench_ros.ros.stack_observation import (
    TF,
    TF_STATIC,
    TF_TYPE,
    StackObservation,
    observe,
)
from osmabench_ros.ros.topic_record import TopicRecord
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.semantics.labels import LabelSet

Progress = Callable[[str, float], None]
_Message = TypeVar('_Message')


@dataclass(frozen=True)
class StackNames:
    """How the topics of a stack are called.

    Parameters
    ----------
    namespace : str
        Of all relative topics of the contract.
    remappings : mapping of str to str
        From names of the contract to those of the stack.
    extra_topics : mapping of str to str
        Topics of maps that are not of the contract, with their types.
    """

    namespace: str = ''
    remappings: Mapping[str, str] = field(default_factory=dict)
    extra_topics: Mapping[str, str] = field(default_factory=dict)


def names_of_robot(file: Path) -> StackNames:
    """Read the names of a stack's topics from a YAML file, such as those of config/methods/live.

    Parameters
    ----------
    file : Path
        Or a name in config/methods/live. Read are a mapping `topics` (names of the contract to
        those of the stack) and `map` (topic and type); both may be absent, the rest is ignored.

    Raises
    ------
    ConfigError
        If the file cannot be read, or names a topic that the contract does not know.
    """
    if not file.suffix and not file.exists():
        known = described_names('methods', 'live')
        if str(file) not in known:
            raise ConfigError(
                f'robot "{file}" is neither a file nor a name in config/methods/live. '
                f'{suggestion(str(file), known)}'
            )
        file = config_path('methods', 'live', f'{file}.yaml')
    try:
        data = yaml.safe_load(file.read_text())
    except (OSError, yaml.YAMLError) as error:
        raise ConfigError(f'robot file {file} cannot be read: {error}') from error
    if not isinstance(data, dict) or not isinstance(data.get('topics', {}), dict):
        raise ConfigError(f'robot file {file}: must be a mapping, and "topics" in it one too')
    remappings = {str(name): str(value) for name, value in data.get('topics', {}).items()}
    check_names_of_topics(remappings, f'robot file {file}')
    said = data.get('map')
    extra = {}
    if isinstance(said, dict) and {'topic', 'type'} <= said.keys() and '$' not in said['topic']:
        extra = {str(said['topic']): str(said['type'])}
    return StackNames(remappings=remappings, extra_topics=extra)


def check_names_of_topics(remappings: Mapping[str, str], source: str) -> None:
    """Refuse a remapping of what nobody looks at; raises ConfigError."""
    known = {item.name for item in CONTRACT} | {TF, TF_STATIC}
    for name in remappings:
        if name not in known:
            raise ConfigError(
                f'{source}: "{name}" is no topic of the contract. '
                f'Choose from: {", ".join(sorted(known))}.'
            )


def examine_stack(
    names: StackNames,
    *,
    seconds: float,
    config: MatrixConfig | None = None,
    progress: Progress = lambda _text, _fraction: None,
    domain: int | None = None,
) -> list[Finding]:
    """Listen to a running stack for a while and compare it with the topic contract.

    Parameters
    ----------
    names : StackNames
        How its topics are called.
    seconds : float
        How long to listen.
    config : MatrixConfig, optional
        What is planned with it: its camera is compared.
    progress : callable
        Gets what is going on and the fraction done.
    domain : int, optional
        ROS domain; by default that of the shell.
    """
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
    """Return everything there is to say about what was seen."""
    if not seen.nodes:
        remedy = (
            'start it; ROS_DOMAIN_ID, ROS_AUTOMATIC_DISCOVERY_RANGE and the middleware '
            '(RMW_IMPLEMENTATION) must be the same in both shells'
        )
        return [Finding('stack', Level.FAILED, 'no node is there', remedy)]
    findings = [Finding('stack', Level.OK, f'{len(seen.nodes)} nodes')]
    for topic in CONTRACT:
        hashes = seen.own_hashes.get(topic.name, '')
        findings += check_endpoints(topic, seen.graphs[topic.name], hashes)
        findings += _silence(topic, seen)
    findings += _timing(seen) + _content(seen, config) + _transforms(seen)
    return _by_part(findings + _extra(seen, extra_topics))


def _by_part(findings: list[Finding]) -> list[Finding]:
    """Put together what is about one topic, in the order in which topics came up."""
    parts = {item.part: place for place, item in reversed(list(enumerate(findings)))}
    return sorted(findings, key=lambda item: parts[item.part])


def _silence(topic: ContractTopic, seen: StackObservation) -> list[Finding]:
    """Say so if a topic has a publisher and nothing came, or what came could not be read."""
    record = seen.records.get(topic.name)
    if record is None:
        return []
    if record.errors:
        remedy = 'what is published is not of that type, or broken'
        return [Finding(topic.name, Level.FAILED, record.errors[0], remedy)]
    if record.received_ns or topic.delivery is Delivery.LOSSLESS or not topic.required:
        return []
    state = _newest(seen, topics.RUN_STATE, RunState)
    if state is not None and state.state != RunState.STATE_RUNNING:
        detail = f'no message yet; the run is not going on ({state.message or "not running"})'
        return [Finding(topic.name, Level.WARN, detail, 'look again while it runs')]
    detail = 'has a publisher, but no message came'
    remedy = 'is the camera running? else listen longer: --seconds'
    return [Finding(topic.name, Level.FAILED, detail, remedy)]


def _timing(seen: StackObservation) -> list[Finding]:
    clock, color = seen.records.get(topics.CLOCK), seen.records.get(topics.COLOR)
    declared_hz = declared_rate_hz(_newest(seen, topics.RUN_INFO, RunInfo))
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


def _content(seen: StackObservation, config: MatrixConfig | None) -> list[Finding]:
    findings: list[Finding] = []
    color_info = _newest(seen, topics.COLOR_INFO, CameraInfo)
    depth_info = _newest(seen, topics.DEPTH_INFO, CameraInfo)
    for name, info in ((topics.COLOR_INFO, color_info), (topics.DEPTH_INFO, depth_info)):
        if info is not None:
            findings += check_intrinsics(name, info)
    if config is not None and color_info is not None:
        findings += check_expected(topics.COLOR_INFO, color_info, config.camera.intrinsics)
    frame = ''
    for name in ENCODINGS:
        image = _newest(seen, name, Image)
        if image is None:
            continue
        frame = image.header.frame_id if name == topics.COLOR else frame
        told = check_encoding(name, image)
        findings += told
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
    message = _newest(seen, topics.LABEL_INFO, LabelInfo)
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
    if (info := _newest(seen, topics.RUN_INFO, RunInfo)) is not None:
        findings += check_run_info(info, color_info, frame, seen.nodes)
    if (state := _newest(seen, topics.RUN_STATE, RunState)) is not None:
        findings += check_run_state(state)
    if (message := _newest(seen, topics.SEMANTIC_MAP, SemanticMap)) is not None:
        findings += check_map(message)
    if (cloud := _newest(seen, topics.SEMANTIC_MAP_POINTS, PointCloud2)) is not None:
        findings += check_cloud(topics.SEMANTIC_MAP_POINTS, cloud)
    return findings


def _transforms(seen: StackObservation) -> list[Finding]:
    if TF_TYPE in seen.missing_types:
        remedy = 'apt install ros-$ROS_DISTRO-tf2-msgs'
        return [Finding(TF, Level.ABSENT, 'not looked at: tf2_msgs is not installed', remedy)]
    if not seen.graphs[TF].publishers and not seen.graphs[TF_STATIC].publishers:
        detail = 'nobody publishes transforms; poses come on topics alone'
        return [Finding(TF, Level.ABSENT, detail, 'apt install ros-$ROS_DISTRO-tf2-ros')]
    moving, fixed = (seen.records.get(name) for name in (TF, TF_STATIC))
    samples = edge_samples(fixed.messages if fixed else (), is_static=True)
    samples += edge_samples(moving.messages if moving else (), is_static=False)
    image = _newest(seen, topics.COLOR, Image)
    frame = image.header.frame_id if image is not None else ''
    return check_transforms(samples, frame or topics.CAMERA_FRAME)


def _extra(seen: StackObservation, extra_topics: Mapping[str, str]) -> list[Finding]:
    findings: list[Finding] = []
    for name, type_name in extra_topics.items():
        graph, record = seen.graphs[name], seen.records.get(name)
        wrong = [item for item in graph.publishers if item.type_name != type_name]
        if not graph.publishers:
            detail, remedy = 'nobody publishes the map', 'start the mapper, or check its topic'
            findings.append(Finding(name, Level.ABSENT, detail, remedy))
        elif wrong:
            detail = f'{wrong[0].node} publishes {wrong[0].type_name}, not {type_name}'
            remedy = 'correct map.type in the robot file'
            findings.append(Finding(name, Level.FAILED, detail, remedy))
        elif record is None:
            remedy = f'source the workspace that has {type_name}'
            detail = f'published, but {type_name} is not installed here'
            findings.append(Finding(name, Level.WARN, detail, remedy))
        else:
            findings += _map_of_robot(name, record)
    return findings


def _map_of_robot(name: str, record: TopicRecord) -> list[Finding]:
    if record.errors:
        return [Finding(name, Level.FAILED, record.errors[0], 'check map.type')]
    if not record.messages:
        remedy = 'many mappers publish late or on request; listen longer: --seconds'
        return [Finding(name, Level.WARN, 'no map came yet', remedy)]
    message: Any = record.messages[-1]
    if isinstance(message, PointCloud2):
        return check_cloud(name, message)
    return [Finding(name, Level.OK, f'{len(record.received_ns)} messages')]


def _newest(seen: StackObservation, name: str, kind: type[_Message]) -> _Message | None:
    record = seen.records.get(name)
    if record is None or not record.messages or not isinstance(record.messages[-1], kind):
        return None
    return record.messages[-1]
