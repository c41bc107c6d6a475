"""Maps on topics of the stack's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sensor_msgs.msg import PointCloud2

from osmabench_ros.bringup.finding import Finding, Level
from osmabench_ros.bringup.running_stack.run_topics import check_cloud
from osmabench_ros.ros.stack_observation import StackObservation
from osmabench_ros.ros.topic_record import TopicRecord


def examine_maps(seen: StackObservation, extra_topics: Mapping[str, str]) -> list[Finding]:
    """Look at topics of maps that are not of the contract, given with their types."""
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
