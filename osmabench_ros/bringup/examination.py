"""Examines a running stack for errors that would spoil a run, by tables of checks."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
from geometry_msgs.msg import PoseStamped
from rclpy.qos import DurabilityPolicy, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, PointCloud2

from osmabench_ros.base import contract as topics
from osmabench_ros.base import images as encodings
from osmabench_ros.base.configuration import bundled_file
from osmabench_ros.base.contract import CONTRACT, TF, TF_STATIC, ContractTopic, Delivery
from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.bringup import stack_observation
from osmabench_ros.bringup.preflight import CheckTables, Finding, Severity, attempt
from osmabench_ros.bringup.stack_observation import (
    StackNames,
    StackObservation,
    TopicRecord,
)
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.geometry.transform_tree import StampedTransform
from osmabench_ros.maps.announced_map import convert_graph
from osmabench_ros.maps.standard_messages import read_records
from osmabench_ros.msg import RunInfo, RunState, SemanticMap
from osmabench_ros.ros.messages import images
from osmabench_ros.ros.messages.message_definitions import interface_class, is_interface_name
from osmabench_ros.ros.messages.poses import SECOND_NS, stamp_from_message
from osmabench_ros.ros.node.frame_receiver import camera_pose_from_message
from osmabench_ros.ros.node.run_control import RunPhase
from osmabench_ros.ros.qos import Endpoint, TopicGraph, qos_conflict
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.sequences.topics import read_transforms

CHECKS = CheckTables(Path(__file__).with_name('stack_checks.yaml'))

# Encodings that images may have, the contract's own first.
ENCODINGS = {
    topics.COLOR: encodings.COLOR_ENCODINGS,
    topics.DEPTH: encodings.DEPTH_ENCODINGS,
    topics.SEMANTIC: encodings.SEMANTIC_ENCODINGS,
    topics.INSTANCE: encodings.INSTANCE_ENCODINGS,
}


def check_encoding(topic: str, image: Image) -> list[Finding]:
    """Check the encoding and the layout of an image."""
    return CHECKS.find_first(
        'image',
        topic,
        topic=topic,
        image=image,
        colors=(*encodings.COLOR_ENCODINGS, '8UC1') if topic == topics.DEPTH else (),
        encodings=ENCODINGS[topic],
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
    k = np.array(info.k, float).reshape(3, 3)
    r = np.array(info.r, float).reshape(3, 3)
    p = np.array(info.p, float).reshape(3, 4)
    has_focal = bool(np.isfinite(k).all()) and min(k[0, 0], k[1, 1]) > 0
    complete = has_focal and info.width and info.height
    centered = 0 < k[0, 2] < info.width and 0 < k[1, 2] < info.height
    agrees = np.allclose(p[:, :3], k, rtol=1e-3, atol=1e-3)
    distortion = [round(v, 4) for v in info.d] if any(info.d) else []
    # The other rows say more than the error of the reader.
    fine = complete and centered and info.distortion_model and agrees and not distortion
    return CHECKS.find_all(
        'intrinsics',
        topic,
        info=info,
        has_focal=has_focal,
        complete=complete,
        centered=centered,
        empty=' and '.join(name for name, matrix in (('R', r), ('P', p)) if not matrix.any()),
        agrees=agrees,
        distortion=distortion,
        error=fine and attempt(lambda: images.intrinsics_from_message(info, topic))[1],
    )


def check_expected(topic: str, info: CameraInfo, expected: Intrinsics) -> list[Finding]:
    """Compare intrinsics with the camera of a configuration."""
    return CHECKS.find_all('configured_camera', topic, info=info, expected=expected)


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
        parents=parents,
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
        no_type=interface_class(topics.TF_TYPE) is None,
        no_publisher=not (seen.graphs[TF].publishers or seen.graphs[TF_STATIC].publishers),
        error=''.join(errors[:1]) or fault,
    )
    if faults or samples is None:
        return faults
    return check_transforms(samples, seen.camera_frame or topics.CAMERA_FRAME)


STATES = {int(phase): phase.name.lower() for phase in RunPhase}


def check_run_info(
    info: RunInfo, camera_info: CameraInfo | None, camera_frame: str, nodes: Sequence[str]
) -> list[Finding]:
    """Compare run_info with the nodes that run, by full name, and with the camera."""
    running = {name.rsplit('/', 1)[-1] for name in nodes}
    expected = set(info.participants)
    if topics.BAG_PLAYER in running:
        # A replayed bag is not scored, and its player replaces the bridge.
        expected -= {topics.BRIDGE, topics.RECORDER, topics.EVALUATOR, topics.BAG_RECORDER}
    same_camera = camera_info is None or np.allclose(info.camera_info.k, camera_info.k, rtol=1e-4)
    return CHECKS.find_all(
        'run_info',
        topics.RUN_INFO,
        info=info,
        frame=camera_frame,
        missing=sorted(expected - running),
        same_camera=same_camera,
    )


def check_run_state(state: RunState) -> list[Finding]:
    """Report the state of the run."""
    name = STATES.get(state.state, f'state {state.state}')
    text = f'{name}, {state.frames_published} of {state.frames_total or "?"} frames'
    if state.message:
        text += f': {state.message}'
    return CHECKS.find_all('run_state', topics.RUN_STATE, name=name, text=text)


def declared_rate_hz(info: RunInfo | None) -> float | None:
    """Return the wall-clock rate that run_info declares, None if it declares none."""
    if info is None or info.pacing != RunInfo.PACING_REALTIME or not info.frame_rate > 0:
        return None
    return float(info.frame_rate * (info.speed_factor or 1.0))


def check_map(message: SemanticMap) -> list[Finding]:
    """Check an announced map: its frame and its scene graph."""
    _, error = attempt(lambda: convert_graph(message.graph, topics.SEMANTIC_MAP))
    return CHECKS.find_first('map', topics.SEMANTIC_MAP, message=message, error=error)


def check_cloud(topic: str, message: PointCloud2) -> list[Finding]:
    """Check a map as a point cloud: its frame, its size, its coordinates."""
    records, error = attempt(lambda: read_records(message))
    names = records.dtype.names or () if records is not None else ()
    has_points = {'x', 'y', 'z'} <= set(names)
    points = np.empty((0, 3))
    if records is not None and has_points:
        points = np.stack([records[axis] for axis in 'xyz'], 1)
    invalid = float((~np.isfinite(points).all(1)).mean()) if len(points) else 0.0
    return CHECKS.find_first(
        'cloud',
        topic,
        error=error,
        has_points=has_points,
        names=names,
        message=message,
        count=len(points),
        invalid=invalid,
    )


def examine_map(name: str, type_name: str, seen: StackObservation) -> list[Finding]:
    """Examine a map topic outside the contract, given with its type."""
    publishers = seen.graphs[name].publishers
    record = seen.records.get(name)
    wrong = [f'{i.node} publishes {i.type_name}' for i in publishers if i.type_name != type_name]
    errors = record.errors if record else []
    message = seen.newest(name)
    if isinstance(message, PointCloud2) and not wrong and not errors:
        return check_cloud(name, message)
    return CHECKS.find_first(
        'robot_map',
        name,
        publishers=publishers,
        wrong=wrong,
        record=record,
        errors=errors,
        message=message,
        type_name=type_name,
    )


# Stamps this near to the system's time are taken from it; others are simulated.
WALL_WINDOW_S = 24 * 3600.0


def check_rate(record: TopicRecord, declared_hz: float | None) -> list[Finding]:
    """Compare the rate of a topic with the declared one; None for none, as in lockstep."""
    count = len(record.received_ns)
    if not count:
        return []
    jitter_ms = float(np.std(np.diff(record.received_ns))) / 1e6 if count > 1 else 0.0
    return CHECKS.find_first(
        'rate',
        record.name,
        record=record,
        declared_hz=declared_hz,
        jitter_ms=jitter_ms,
    )


def check_stamps(record: TopicRecord, *, simulated: bool) -> list[Finding]:
    """Check that stamps are set, grow, and belong to the clock in use: /clock if `simulated`."""
    stamps = np.array(record.stamps_ns, np.int64)
    if not len(stamps):
        return []
    unset = CHECKS.find_first(
        'stamps',
        record.name,
        count=len(stamps),
        any_set=stamps.any(),
        different=len(set(stamps.tolist())),
    )
    if unset:
        return unset
    back = int((np.diff(stamps) < 0).sum())
    wall = np.array(record.wall_ns[: len(stamps)], np.int64)
    ahead_s = (stamps - wall)[stamps != 0] / SECOND_NS
    is_wall = bool((np.abs(ahead_s) < WALL_WINDOW_S).all())
    median_s = float(np.median(ahead_s))
    return CHECKS.find_all('stamp_order', record.name, steps_back=back) + CHECKS.find_first(
        'stamp_time',
        record.name,
        is_wall=is_wall,
        simulated=simulated,
        last_s=stamps[-1] / SECOND_NS,
        ahead_s=median_s,
        age_s=-median_s,
    )


def check_clock(record: TopicRecord | None, color: TopicRecord | None) -> list[Finding]:
    """Check that simulated time advances, and that frames are stamped with it."""
    if record is None or not record.messages:
        return []
    times = np.array([stamp_from_message(item.clock) for item in record.messages], np.int64)
    stamps = color.stamps_ns if color else []
    frames = len(set(stamps))
    apart_s = float(np.abs(times - stamps[-1]).min()) / SECOND_NS if stamps else 0.0
    return CHECKS.find_first(
        'clock',
        topics.CLOCK,
        steps_back=(np.diff(times) < 0).any(),
        different=len(set(times.tolist())),
        frames=frames,
        apart_s=apart_s,
        count=len(times),
    )


def check_synchrony(color: TopicRecord, other: TopicRecord) -> list[Finding]:
    """Check that a topic of a frame has the stamps of the colour images: all are identical."""
    ours = set(color.stamps_ns)
    theirs = set(other.stamps_ns)
    if len(ours) < 3 or len(theirs) < 3:
        return []
    # One may have come later, and the first and the last frame may have been cut.
    first = max(min(ours), min(theirs))
    last = min(max(ours), max(theirs))
    shared = sorted(stamp for stamp in ours if first <= stamp <= last)
    inner = shared[1:-1] or shared
    points = np.array(sorted(theirs), np.int64)
    apart_ms = [float(np.abs(points - stamp).min()) / 1e6 for stamp in inner]
    equal = float(np.mean([stamp in theirs for stamp in inner])) if inner else 0.0
    return CHECKS.find_first(
        'synchrony',
        other.name,
        count=len(inner),
        equal=equal,
        apart_ms=float(np.median(apart_ms)) if apart_ms else 0.0,
    )


def names_of_robot(file: Path) -> StackNames:
    """Read the topics of a stack from a YAML file, or a name in config/methods/live."""
    if not file.suffix and not file.exists():
        problem = f'robot "{file}" is neither a file nor a name in config/methods/live'
        file = bundled_file(str(file), 'methods', 'live', problem=problem)
    data = read_yaml(file, ConfigError)
    if not isinstance(data, dict) or not isinstance(data.get('topics', {}), dict):
        raise ConfigError(f'robot file {file}: must be a mapping, and "topics" in it too')
    remappings = {str(name): str(value) for name, value in data.get('topics', {}).items()}
    check_names_of_topics(remappings, f'robot file {file}')
    source, extra = data.get('map'), {}
    if isinstance(source, dict) and '$' not in str(source.get('topic', '$')):
        kind = str(source.get('type', ''))
        if not is_interface_name(kind):
            problem = f'map.type is "{kind}", and not of the form package/msg/Name'
            raise ConfigError(f'robot file {file}: {problem}')
        extra = {str(source['topic']): kind}
    return StackNames(remappings=remappings, extra_topics=extra)


def check_names_of_topics(remappings: Mapping[str, str], source: str) -> None:
    """Refuse a remapping of a topic that is not examined; raises ConfigError."""
    known = {item.name for item in CONTRACT} | {TF, TF_STATIC}
    for name in remappings:
        problem = f'{source}: "{name}" is not a topic of the contract'
        choose(name, known, ConfigError, problem)


def examine_content(seen: StackObservation, config: MatrixConfig | None) -> Iterator[Finding]:
    """Check images, intrinsics, labels, run information and maps."""
    info = seen.newest(topics.COLOR_INFO)
    labels, label_set = _label_set(seen)
    yield from labels
    for name in ENCODINGS:
        image = seen.newest(name)
        if image is None:
            continue
        faults = check_encoding(name, image)
        yield from faults + CHECKS.find_first('frame_name', name, frame=image.header.frame_id)
        # Depth is registered to colour, so one set of intrinsics holds for all images.
        if info is not None:
            yield from CHECKS.find_all('size', name, image=image, info=info)
        if any(item.level is not Severity.OK for item in faults):
            continue
        if name == topics.DEPTH:
            yield from check_depth(image)
        elif name == topics.SEMANTIC and not any(f.level is Severity.FAILED for f in labels):
            yield from check_classes(image, label_set)
    of_message: dict[str, Callable[[Any], list[Finding]]] = {
        topics.COLOR_INFO: partial(check_intrinsics, topics.COLOR_INFO),
        topics.DEPTH_INFO: partial(check_intrinsics, topics.DEPTH_INFO),
        topics.CAMERA_POSE: _check_pose,
        topics.RUN_INFO: lambda message: check_run_info(
            message, info, seen.camera_frame, seen.nodes
        ),
        topics.RUN_STATE: check_run_state,
        topics.SEMANTIC_MAP: check_map,
        topics.SEMANTIC_MAP_POINTS: partial(check_cloud, topics.SEMANTIC_MAP_POINTS),
    }
    for name, check in of_message.items():
        if (message := seen.newest(name)) is not None:
            yield from check(message)
    if config is not None and info is not None:
        yield from check_expected(topics.COLOR_INFO, info, config.camera.intrinsics)


def _check_pose(pose: PoseStamped) -> list[Finding]:
    _, error = attempt(lambda: camera_pose_from_message(pose))
    return CHECKS.find_all('pose', topics.CAMERA_POSE, error=error)


def _label_set(seen: StackObservation) -> tuple[list[Finding], LabelSet | None]:
    message = seen.newest(topics.LABEL_INFO)
    if message is None:
        return [], None
    label_set, error = attempt(lambda: images.label_set_from_message(message, topics.LABEL_INFO))
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
    findings = CHECKS.find_all('stack', 'stack', count=len(seen.nodes))
    if not seen.nodes:
        return findings
    for topic in CONTRACT:
        found = check_endpoints(topic, seen.graphs[topic.name])
        if silence := _silence(topic, seen):
            found = [item for item in found if item.level is not Severity.OK] + silence
        findings += found
    findings += [*_timing(seen), *examine_content(seen, config), *examine_transforms(seen)]
    for name, kind in names.extra_topics.items():
        findings += examine_map(name, kind, seen)
    # By topic, in the order in which topics first occur.
    parts = {item.part: place for place, item in reversed(list(enumerate(findings)))}
    return sorted(findings, key=lambda item: parts[item.part])


def _silence(topic: ContractTopic, seen: StackObservation) -> list[Finding]:
    """Report a topic that has a publisher but no readable message."""
    record = seen.records.get(topic.name)
    publishers = seen.graphs[topic.name].publishers
    if record is None or not (record.errors or publishers):
        return []
    state = seen.newest(topics.RUN_STATE)
    return CHECKS.find_first(
        'silence',
        topic.name,
        record=record,
        publishers=publishers,
        on_request=topic.delivery in (Delivery.LATCHED, Delivery.LOSSLESS),
        optional=topic.name in (topics.SEMANTIC, topics.INSTANCE),
        state=state,
    )


def _timing(seen: StackObservation) -> Iterator[Finding]:
    clock = seen.records.get(topics.CLOCK)
    color = seen.records.get(topics.COLOR)
    declared_hz = declared_rate_hz(seen.newest(topics.RUN_INFO))
    simulated = bool(seen.graphs[topics.CLOCK].publishers)
    for name in topics.FRAME_TOPICS:
        record = seen.records.get(name)
        if record is None:
            continue
        yield from check_rate(record, declared_hz)
        yield from check_stamps(record, simulated=simulated)
        if color is not None and record is not color:
            yield from check_synchrony(color, record)
    yield from check_clock(clock, color)
