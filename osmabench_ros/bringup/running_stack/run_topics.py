"""Checks run information, labels, maps, rates and stamps of a running stack."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, PointCloud2

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.doctor.preflight import Finding, Severity, absent, failed, ok, warned
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation, TopicRecord
from osmabench_ros.errors import ContractError
from osmabench_ros.maps.message_content import records_of_message
from osmabench_ros.maps.topics.announced_map import graph_from_message
from osmabench_ros.msg import RunInfo, RunState, SemanticMap
from osmabench_ros.ros.messages.poses import SECOND_NS, stamp_from_message

STATES = {
    RunState.STATE_WAITING: 'waiting',
    RunState.STATE_RUNNING: 'running',
    RunState.STATE_PAUSED: 'paused',
    RunState.STATE_FINISHED: 'finished',
    RunState.STATE_FAILED: 'failed',
}
GONE_SHARE = 0.01


def check_run_info(
    info: RunInfo, camera_info: CameraInfo | None, camera_frame: str, nodes: Sequence[str]
) -> list[Finding]:
    """Compare run_info with the nodes that run, by full name, and with the camera."""
    part = topics.RUN_INFO
    findings = []
    here = {name.rsplit('/', 1)[-1] for name in nodes}
    missing = sorted(set(info.participants) - here)
    if missing:
        detail = f'participants that are not running: {", ".join(missing)}'
        remedy = 'start them; the bridge waits for every declared participant'
        findings.append(failed(part, detail, remedy))
    if camera_frame and info.camera_frame != camera_frame:
        detail = f'camera_frame is "{info.camera_frame}", images say "{camera_frame}"'
        findings.append(failed(part, detail, 'the publisher of run_info must know the camera'))
    if camera_info is not None and not np.allclose(info.camera_info.k, camera_info.k, rtol=1e-4):
        detail = f'camera_info differs from that on {topics.COLOR_INFO}'
        findings.append(failed(part, detail, 'is another run still going on?'))
    if findings:
        return findings
    pacing = 'lockstep' if info.pacing == RunInfo.PACING_LOCKSTEP else 'realtime'
    detail = f'{info.run_id or "unnamed"}, {pacing}, {info.frame_rate:g} frames/s of stamp time'
    return [ok(part, detail)]


def check_run_state(state: RunState) -> list[Finding]:
    """Report the state of the run."""
    name = STATES.get(state.state, f'state {state.state}')
    detail = f'{name}, {state.frames_published} of {state.frames_total or "?"} frames'
    if state.message:
        detail += f': {state.message}'
    level = Severity.FAILED if state.state == RunState.STATE_FAILED else Severity.OK
    remedy = 'start the run again once the reason is gone' if level is Severity.FAILED else ''
    return [Finding(topics.RUN_STATE, level, detail, remedy)]


def declared_rate_hz(info: RunInfo | None) -> float | None:
    """Return the wall-clock rate that run_info declares, None if it declares none."""
    if info is None or info.pacing != RunInfo.PACING_REALTIME or not info.frame_rate > 0:
        return None
    return float(info.frame_rate * (info.speed_factor or 1.0))


def check_map(message: SemanticMap) -> list[Finding]:
    """Check an announced map: its frame and its scene graph."""
    part = topics.SEMANTIC_MAP
    if message.header.frame_id != topics.WORLD_FRAME:
        detail = f'frame_id is "{message.header.frame_id}", not "{topics.WORLD_FRAME}"'
        remedy = 'maps are scored in the frame of the ground truth; transform before publishing'
        return [failed(part, detail, remedy)]
    try:
        graph = graph_from_message(message.graph, part)
    except ContractError as error:
        return [failed(part, str(error), 'mend the graph of the mapper')]
    if not message.chunk_count and not graph.nodes:
        remedy = f'publish the map on {topics.SEMANTIC_MAP_CHUNK} too (MapPublisher does)'
        return [failed(part, 'announces no chunks and an empty graph', remedy)]
    points = 'no points'
    if message.chunk_count:
        points = f'{message.payload_size} bytes in {message.chunk_count} chunks'
    detail = (
        f'{len(graph.nodes)} nodes, {len(graph.edges)} edges, {points}, '
        f'{"final" if message.is_final else "not final"}'
    )
    return [ok(part, detail)]


def check_cloud(topic: str, message: PointCloud2) -> list[Finding]:
    """Check a map as a point cloud: its frame, its size, its coordinates."""
    try:
        records = records_of_message(message)
    except ContractError as error:
        return [failed(topic, str(error), 'mend the layout of the cloud')]
    names = records.dtype.names or ()
    if not {'x', 'y', 'z'} <= set(names):
        return [failed(topic, f'fields are {", ".join(names)}', 'a cloud needs x, y and z')]
    if not message.header.frame_id:
        return [failed(topic, 'frame_id is empty', 'set header.frame_id')]
    if not len(records):
        return [warned(topic, 'has no points', 'has the mapper seen a frame yet?')]
    points = np.stack([records[axis] for axis in 'xyz'], 1)
    gone = float((~np.isfinite(points).all(1)).mean())
    detail = f'{len(points)} points in {message.header.frame_id}, {gone:.0%} not finite'
    if gone > GONE_SHARE:
        return [warned(topic, detail, 'drop points without coordinates')]
    return [ok(topic, detail)]


def examine_maps(seen: StackObservation, extra_topics: Mapping[str, str]) -> list[Finding]:
    """Examine map topics outside the contract, given with their types."""
    findings: list[Finding] = []
    for name, type_name in extra_topics.items():
        graph, record = seen.graphs[name], seen.records.get(name)
        wrong = [item for item in graph.publishers if item.type_name != type_name]
        if not graph.publishers:
            detail, remedy = 'no node publishes the map', 'start the mapper, or check its topic'
            findings.append(absent(name, detail, remedy))
        elif wrong:
            detail = f'{wrong[0].node} publishes {wrong[0].type_name}, not {type_name}'
            remedy = 'correct map.type in the robot file'
            findings.append(failed(name, detail, remedy))
        elif record is None:
            remedy = f'source the workspace that has {type_name}'
            detail = f'published, but {type_name} is not installed here'
            findings.append(warned(name, detail, remedy))
        else:
            findings += _map_of_robot(name, record)
    return findings


def _map_of_robot(name: str, record: TopicRecord) -> list[Finding]:
    if record.errors:
        return [failed(name, record.errors[0], 'check map.type')]
    if not record.messages:
        remedy = 'many mappers publish late or on request; listen longer: --seconds'
        return [warned(name, 'no map came yet', remedy)]
    message: Any = record.messages[-1]
    if isinstance(message, PointCloud2):
        return check_cloud(name, message)
    return [ok(name, f'{len(record.received_ns)} messages')]


RATE_SHARE = 0.9
"""Least share of the declared rate, and of equal stamps, that passes."""

LOSS_SHARE = 0.01
WALL_WINDOW_NS = 24 * 3600 * SECOND_NS
"""Stamps this near to the system's time are taken from it; others are simulated."""

FUTURE_NS = 100_000_000
OLD_NS = 5 * SECOND_NS
CLOCK_WINDOW_NS = SECOND_NS


def check_rate(record: TopicRecord, declared_hz: float | None) -> list[Finding]:
    """Compare the rate of a topic with the declared one; None for none, as in lockstep."""
    count = len(record.received_ns)
    if not count:
        return []
    if count < 3:
        remedy = 'is the camera running? else listen longer: --seconds'
        detail = f'only {count} messages came: too few for rate and stamps'
        return [warned(record.name, detail, remedy)]
    intervals_s = np.diff(record.received_ns) / SECOND_NS
    detail = (
        f'{record.rate_hz:.1f} Hz, jitter {np.std(intervals_s) * 1e3:.0f} ms, {count} messages'
    )
    if declared_hz:
        detail += f', declared {declared_hz:g} Hz'
    if record.lost > LOSS_SHARE * count:
        detail += f', {record.lost} lost on the way here'
        remedy = (
            'images need larger shared memory: '
            'export FASTRTPS_DEFAULT_PROFILES_FILE=.../config/fastdds.xml for every node'
        )
        return [warned(record.name, detail, remedy)]
    if declared_hz and record.rate_hz < RATE_SHARE * declared_hz:
        remedy = 'the publisher does not keep up: smaller images, a lower rate, or lockstep'
        return [warned(record.name, detail, remedy)]
    return [ok(record.name, detail)]


def check_stamps(record: TopicRecord, *, simulated: bool) -> list[Finding]:
    """Check that stamps are set, grow, and belong to the clock in use: /clock if `simulated`."""
    stamps = np.array(record.stamps_ns, np.int64)
    if not len(stamps):
        return []
    name = record.name
    # The first frame of a simulation may have stamp 0, all may not.
    if not stamps.any():
        remedy = 'set header.stamp to the time of exposure'
        level = Severity.FAILED if len(stamps) > 1 else Severity.WARN
        return [Finding(name, level, 'header.stamp is 0', remedy)]
    if len(stamps) > 2 and len(set(stamps.tolist())) == 1:
        remedy = 'does the camera hang, or does the run wait for an acknowledgement?'
        return [warned(name, f'{len(stamps)} messages have one and the same stamp', remedy)]
    findings = []
    if (np.diff(stamps) < 0).any():
        detail = f'stamps go backwards {int((np.diff(stamps) < 0).sum())} times'
        remedy = 'is a bag looping, or do two nodes publish?'
        findings.append(warned(name, detail, remedy))
    ahead_ns = (stamps - np.array(record.wall_ns[: len(stamps)], np.int64))[stamps != 0]
    of_wall = bool((np.abs(ahead_ns) < WALL_WINDOW_NS).all())
    if of_wall and simulated:
        remedy = 'set use_sim_time on the node that publishes it'
        findings.append(failed(name, 'stamps are wall time, but /clock is published', remedy))
    elif not of_wall and not simulated:
        detail = f'stamps are {stamps[-1] / SECOND_NS:.1f} s, neither near the time nor a /clock'
        remedy = 'play with --clock, or stamp with the wall time'
        findings.append(warned(name, detail, remedy))
    elif of_wall and np.median(ahead_ns) > FUTURE_NS:
        detail = f'stamps are {np.median(ahead_ns) / SECOND_NS:.2f} s in the future'
        remedy = 'synchronise the clocks of the machines (chrony)'
        findings.append(failed(name, detail, remedy))
    elif of_wall and np.median(ahead_ns) < -OLD_NS:
        detail = f'stamps are {-np.median(ahead_ns) / SECOND_NS:.1f} s old when they come'
        remedy = 'synchronise the clocks, or shorten what lies between camera and topic'
        findings.append(warned(name, detail, remedy))
    return findings


def check_clock(record: TopicRecord | None, color: TopicRecord | None) -> list[Finding]:
    """Check that simulated time advances, and that frames are stamped with it."""
    if record is None or not record.messages:
        return []
    times = np.array([stamp_from_message(item.clock) for item in record.messages], np.int64)
    if (np.diff(times) < 0).any():
        return [failed(topics.CLOCK, '/clock goes backwards', 'one publisher alone; do not loop')]
    findings = []
    frames = len(set(color.stamps_ns)) if color else 0
    if frames > 2 and len(set(times.tolist())) == 1:
        detail = f'/clock stands still while {frames} frames came'
        findings.append(failed(topics.CLOCK, detail, 'who publishes it must follow the stamps'))
    if color and color.stamps_ns:
        near_ns = int(np.abs(times - color.stamps_ns[-1]).min())
        if near_ns > CLOCK_WINDOW_NS:
            detail = f'/clock and the stamps of {color.name} are {near_ns / SECOND_NS:.1f} s apart'
            remedy = 'images and /clock must come from one source'
            findings.append(failed(topics.CLOCK, detail, remedy))
    return findings or [ok(topics.CLOCK, f'goes forward, {len(times)} messages')]


def check_synchrony(color: TopicRecord, other: TopicRecord) -> list[Finding]:
    """Check that a topic of a frame has the stamps of the colour images: all are identical."""
    ours, theirs = set(color.stamps_ns), set(other.stamps_ns)
    if len(ours) < 3 or len(theirs) < 3:
        return []
    # One may have come later, and the first and the last frame may have been cut.
    first, last = max(min(ours), min(theirs)), min(max(ours), max(theirs))
    shared = sorted(stamp for stamp in ours if first <= stamp <= last)
    inner = shared[1:-1] or shared
    if not inner:
        detail = f'the stamps are of another time than those of {color.name}'
        remedy = 'images and poses must come at the same time, stamped by one clock'
        return [failed(other.name, detail, remedy)]
    share = sum(stamp in theirs for stamp in inner) / len(inner)
    if share >= RATE_SHARE:
        detail = f'{share:.0%} of the stamps of {color.name} are here too'
        return [ok(other.name, detail)]
    points = np.array(sorted(theirs), np.int64)
    nearest_ns = [int(np.abs(points - stamp).min()) for stamp in inner]
    detail = (
        f'{share:.0%} of the stamps of {color.name} are here too; the nearest is '
        f'{np.median(nearest_ns) / 1e6:.1f} ms away'
    )
    remedy = (
        'frames are paired by equal stamps: synchronise the streams in the camera driver, or '
        'stamp depth, pose and camera_info with the stamp of the colour image'
    )
    # Images that get lost on the way look alike, so only what is never equal is sure.
    level = Severity.FAILED if share < 0.1 else Severity.WARN
    return [Finding(other.name, level, detail, remedy)]
