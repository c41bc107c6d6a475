"""Calls a service of a run: `call_run_service.py NODE NAME FRAMES`, prints its answer as JSON."""

from __future__ import annotations

import json
import sys

import rclpy
from osmabench_ros.srv import ControlRun, StepRun
from rclpy.node import Node

from osmabench_ros.ros.wire.matched_client import MatchedClient
from support.waiting import wait_until


def main() -> None:
    server, name, frames = sys.argv[1], sys.argv[2], int(sys.argv[3])
    rclpy.init()
    node = Node('caller')
    kind = StepRun if name == 'step_run' else ControlRun
    client = MatchedClient(node, kind, name, server)
    wait_until(
        client.ready,
        step=lambda: rclpy.spin_once(node, timeout_sec=0.02),
        state=lambda: f'for {name} of {server}',
    )
    request = kind.Request()
    if name == 'step_run':
        request.frames = frames
    future = client.call(request)
    rclpy.spin_until_future_complete(node, future, timeout_sec=60)
    answer = future.result()
    print(json.dumps({'error_code': answer.error_code, 'state': answer.state.state}))


if __name__ == '__main__':
    main()
