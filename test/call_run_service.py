"""Calls a service of a run: `call_run_service.py NAME FRAMES`, prints its answer as JSON."""

from __future__ import annotations

import json
import sys
import time

import rclpy
from osmabench_ros.srv import ControlRun, StepRun
from rclpy.node import Node


def main() -> None:
    name, frames = sys.argv[1], int(sys.argv[2])
    rclpy.init()
    node = Node('caller')
    kind = StepRun if name == 'step_run' else ControlRun
    client = node.create_client(kind, name)
    assert client.wait_for_service(timeout_sec=30)
    request = kind.Request()
    if name == 'step_run':
        request.frames = frames
    answer = None
    for _ in range(3):
        # Both directions must be matched, of which a client sees but one.
        time.sleep(1.0)
        future = client.call_async(request)
        rclpy.spin_until_future_complete(node, future, timeout_sec=10)
        if (answer := future.result()) is not None:
            break
    print(json.dumps({'error_code': answer.error_code, 'state': answer.state.state}))


if __name__ == '__main__':
    main()
