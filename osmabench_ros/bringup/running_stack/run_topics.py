"""Checks run information, labels and maps of a running stack against the rest of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sensor_msgs.msg import CameraInfo, PointCloud2

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.doctor.finding import Finding, Severity
from osmabench_ros.bringup.running_stack.stack_observation import StackObservation, TopicRecord
from osmabench_ros.errors import ContractError
from osmabench_ros.maps.message_content import PointFieldLayout, records_of_buffer
from osmabench_ros.msg import RunInfo, RunState, SemanticMap
from osmabench_ros.ros.messages.map_messages import graph_from_message

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
        findings.append(Finding(part, Severity.FAILED, detail, remedy))
    if camera_frame and info.camera_frame != camera_frame:
        detail = f'camera_frame is "{info.camera_frame}", images say "{camera_frame}"'
        remedy = 'the publisher of run_info must know the camera'
        findings.append(Finding(part, Severity.FAILED, detail, remedy))
    if camera_info is not None and not np.allclose(info.camera_info.k, camera_info.k, rtol=1e-4):
        detail = f'camera_info differs from that on {topics.COLOR_INFO}'
        findings.append(Finding(part, Severity.FAILED, detail, 'is another run still going on?'))
    if findings:
        return findings
    pacing = 'lockstep' if info.pacing == RunInfo.PACING_LOCKSTEP else 'realtime'
    detail = f'{info.run_id or "unnamed"}, {pacing}, {info.frame_rate:g} frames/s of stamp time'
    return [Finding(part, Severity.OK, detail)]


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
        return [Finding(part, Severity.FAILED, detail, remedy)]
    try:
        graph = graph_from_message(message.graph, part)
    except ContractError as error:
        return [Finding(part, Severity.FAILED, str(error), 'mend the graph of the mapper')]
    if not message.chunk_count and not graph.nodes:
        remedy = f'publish the map on {topics.SEMANTIC_MAP_CHUNK} too (MapPublisher does)'
        return [Finding(part, Severity.FAILED, 'announces no chunks and an empty graph', remedy)]
    points = 'no points'
    if message.chunk_count:
        points = f'{message.payload_size} bytes in {message.chunk_count} chunks'
    detail = (
        f'{len(graph.nodes)} nodes, {len(graph.edges)} edges, {points}, '
        f'{"final" if message.is_final else "not final"}'
    )
    return [Finding(part, Severity.OK, detail)]


def check_cloud(topic: str, message: PointCloud2) -> list[Finding]:
    """Check a map as a point cloud: its frame, its size, its coordinates."""
    try:
        records = records_of_buffer(
            message.data,
            [PointFieldLayout(f.name, f.offset, f.datatype, f.count) for f in message.fields],
            width=message.width,
            height=message.height,
            point_step=message.point_step,
            row_step=message.row_step,
            big_endian=message.is_bigendian,
        )
    except ContractError as error:
        return [Finding(topic, Severity.FAILED, str(error), 'mend the layout of the cloud')]
    names = records.dtype.names or ()
    if not {'x', 'y', 'z'} <= set(names):
        remedy = 'a cloud needs x, y and z'
        return [Finding(topic, Severity.FAILED, f'fields are {", ".join(names)}', remedy)]
    if not message.header.frame_id:
        remedy = 'set header.frame_id'
        return [Finding(topic, Severity.FAILED, 'frame_id is empty', remedy)]
    if not len(records):
        return [Finding(topic, Severity.WARN, 'has no points', 'has the mapper seen a frame yet?')]
    points = np.stack([records[axis] for axis in 'xyz'], 1)
    gone = float((~np.isfinite(points).all(1)).mean())
    detail = f'{len(points)} points in {message.header.frame_id}, {gone:.0%} not finite'
    if gone > GONE_SHARE:
        return [Finding(topic, Severity.WARN, detail, 'drop points without coordinates')]
    return [Finding(topic, Severity.OK, detail)]


def examine_maps(seen: StackObservation, extra_topics: Mapping[str, str]) -> list[Finding]:
    """Examine map topics outside the contract, given with their types."""
    findings: list[Finding] = []
    for name, type_name in extra_topics.items():
        graph, record = seen.graphs[name], seen.records.get(name)
        wrong = [item for item in graph.publishers if item.type_name != type_name]
        if not graph.publishers:
            detail, remedy = 'no node publishes the map', 'start the mapper, or check its topic'
            findings.append(Finding(name, Severity.ABSENT, detail, remedy))
        elif wrong:
            detail = f'{wrong[0].node} publishes {wrong[0].type_name}, not {type_name}'
            remedy = 'correct map.type in the robot file'
            findings.append(Finding(name, Severity.FAILED, detail, remedy))
        elif record is None:
            remedy = f'source the workspace that has {type_name}'
            detail = f'published, but {type_name} is not installed here'
            findings.append(Finding(name, Severity.WARN, detail, remedy))
        else:
            findings += _map_of_robot(name, record)
    return findings


def _map_of_robot(name: str, record: TopicRecord) -> list[Finding]:
    if record.errors:
        return [Finding(name, Severity.FAILED, record.errors[0], 'check map.type')]
    if not record.messages:
        remedy = 'many mappers publish late or on request; listen longer: --seconds'
        return [Finding(name, Severity.WARN, 'no map came yet', remedy)]
    message: Any = record.messages[-1]
    if isinstance(message, PointCloud2):
        return check_cloud(name, message)
    return [Finding(name, Severity.OK, f'{len(record.received_ns)} messages')]
