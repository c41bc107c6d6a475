"""Looks at a stack that is already running and says what would spoil a run with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.bringup.running_stack.content import examine_content
from osmabench_ros.bringup.running_stack.endpoints import check_endpoints
from osmabench_ros.bringup.running_stack.foreign_map import examine_maps
from osmabench_ros.bringup.running_stack.names import StackNames
from osmabench_ros.bringup.running_stack.run_topics import declared_rate_hz
from osmabench_ros.bringup.running_stack.timing import (
    check_clock,
    check_rate,
    check_stamps,
    check_synchrony,
)
from osmabench_ros.bringup.running_stack.transforms import examine_transforms
from osmabench_ros.msg import RunInfo, RunState
from osmabench_ros.ros import topics
from osmabench_ros.ros.contract import CONTRACT, ContractTopic, Delivery
from osmabench_ros.ros.stack_observation import StackObservation, observe
from osmabench_ros.runs.config import MatrixConfig

Progress = Callable[[str, float], None]


def examine_stack(
    names: StackNames,
    *,
    seconds: float,
    config: MatrixConfig | None = None,
    progress: Progress = lambda _text, _fraction: None,
    domain: int | None = None,
) -> list[Finding]:
    """Listen to a running stack for some seconds and compare it with the topic contract.

    The camera is compared with that of a configuration; the domain is by default the shell's.
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
        found = check_endpoints(topic, seen.graphs[topic.name], hashes)
        if silence := _silence(topic, seen):
            found = [item for item in found if item.level is not Level.OK] + silence
        findings += found
    findings += _timing(seen) + examine_content(seen, config) + examine_transforms(seen)
    return _by_part(findings + examine_maps(seen, extra_topics))


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
    if record.received_ns or not seen.graphs[topic.name].publishers:
        return []
    detail = f'{seen.graphs[topic.name].publishers[0].node} publishes, but no message came'
    state = seen.newest(topics.RUN_STATE, RunState)
    if state is not None and state.state != RunState.STATE_RUNNING:
        detail += f'; the run is not going on ({state.message or "not running"})'
        return [Finding(topic.name, Level.WARN, detail, 'look again while it runs')]
    if topic.delivery in (Delivery.LATCHED, Delivery.LOSSLESS):
        remedy = 'look again once there is something to say, as a map at the end'
        return [Finding(topic.name, Level.WARN, detail, remedy)]
    # Images that only ground truth needs may be missing; without the rest there are no frames.
    optional = topic.name in (topics.SEMANTIC, topics.INSTANCE)
    remedy = 'is the camera running? else listen longer: --seconds'
    return [Finding(topic.name, Level.WARN if optional else Level.FAILED, detail, remedy)]


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
