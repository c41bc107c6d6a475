"""Whether run information, labels and maps of a running stack fit the rest of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from sensor_msgs.msg import CameraInfo, PointCloud2

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.errors import ContractError
from osmabench_ros.maps.point_cloud_layout import PointFieldLayout, records_of_buffer
from osmabench_ros.msg import RunInfo, RunState, SemanticMap
from osmabench_ros.ros import topics
from osmabench_ros.ros.graph_messages import graph_from_message

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
    """Compare what run_info says with the nodes, by full name, and the camera that are there.

    The frame is that of the colour images, '' if none came.
    """
    part = topics.RUN_INFO
    findings = []
    here = {name.rsplit('/', 1)[-1] for name in nodes}
    missing = sorted(set(info.participants) - here)
    if missing:
        detail = f'participants that are not running: {", ".join(missing)}'
        remedy = 'start them; the bridge waits for every declared participant'
        findings.append(Finding(part, Level.FAILED, detail, remedy))
    if camera_frame and info.camera_frame != camera_frame:
        detail = f'camera_frame is "{info.camera_frame}", images say "{camera_frame}"'
        remedy = 'whoever publishes run_info must know the camera'
        findings.append(Finding(part, Level.FAILED, detail, remedy))
    if camera_info is not None and not np.allclose(info.camera_info.k, camera_info.k, rtol=1e-4):
        detail = f'camera_info differs from that on {topics.COLOR_INFO}'
        findings.append(Finding(part, Level.FAILED, detail, 'is another run still going on?'))
    if findings:
        return findings
    pacing = 'lockstep' if info.pacing == RunInfo.PACING_LOCKSTEP else 'realtime'
    detail = f'{info.run_id or "unnamed"}, {pacing}, {info.frame_rate:g} frames/s of stamp time'
    return [Finding(part, Level.OK, detail)]


def check_run_state(state: RunState) -> list[Finding]:
    """Say how far the run is."""
    name = STATES.get(state.state, f'state {state.state}')
    detail = f'{name}, {state.frames_published} of {state.frames_total or "?"} frames'
    if state.message:
        detail += f': {state.message}'
    level = Level.FAILED if state.state == RunState.STATE_FAILED else Level.OK
    remedy = 'start the run again once the reason is gone' if level is Level.FAILED else ''
    return [Finding(topics.RUN_STATE, level, detail, remedy)]


def declared_rate_hz(info: RunInfo | None) -> float | None:
    """Return the wall-clock rate that run_info promises; None where there is no promise."""
    if info is None or info.pacing != RunInfo.PACING_REALTIME or not info.frame_rate > 0:
        return None
    return float(info.frame_rate * (info.speed_factor or 1.0))


def check_map(message: SemanticMap) -> list[Finding]:
    """Check an announced map: its frame and its scene graph."""
    part = topics.SEMANTIC_MAP
    if message.header.frame_id != topics.WORLD_FRAME:
        detail = f'frame_id is "{message.header.frame_id}", not "{topics.WORLD_FRAME}"'
        remedy = 'maps are scored in the frame of the ground truth; transform before publishing'
        return [Finding(part, Level.FAILED, detail, remedy)]
    try:
        graph = graph_from_message(message.graph, part)
    except ContractError as error:
        return [Finding(part, Level.FAILED, str(error), 'mend the graph of the mapper')]
    if not message.chunk_count and not graph.nodes:
        remedy = f'publish the map on {topics.SEMANTIC_MAP_CHUNK} too (MapPublisher does)'
        return [Finding(part, Level.FAILED, 'announces no chunks and an empty graph', remedy)]
    points = 'no points'
    if message.chunk_count:
        points = f'{message.payload_size} bytes in {message.chunk_count} chunks'
    detail = (
        f'{len(graph.nodes)} nodes, {len(graph.edges)} edges, {points}, '
        f'{"final" if message.is_final else "not final"}'
    )
    return [Finding(part, Level.OK, detail)]


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
        return [Finding(topic, Level.FAILED, str(error), 'mend the layout of the cloud')]
    names = records.dtype.names or ()
    if not {'x', 'y', 'z'} <= set(names):
        remedy = 'a cloud needs x, y and z'
        return [Finding(topic, Level.FAILED, f'fields are {", ".join(names)}', remedy)]
    if not message.header.frame_id:
        remedy = 'set header.frame_id'
        return [Finding(topic, Level.FAILED, 'frame_id is empty', remedy)]
    if not len(records):
        return [Finding(topic, Level.WARN, 'has no points', 'has the mapper seen a frame yet?')]
    points = np.stack([records[axis] for axis in 'xyz'], 1)
    gone = float((~np.isfinite(points).all(1)).mean())
    detail = f'{len(points)} points in {message.header.frame_id}, {gone:.0%} not finite'
    if gone > GONE_SHARE:
        return [Finding(topic, Level.WARN, detail, 'drop points without coordinates')]
    return [Finding(topic, Level.OK, detail)]
