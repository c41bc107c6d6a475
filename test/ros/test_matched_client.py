"""Requests that are sent only once they will arrive and be answered, over DDS."""

import time
from collections.abc import Callable
from typing import Any

import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from lifecycle_msgs.srv import GetState
from osmabench_ros.srv import StepRun
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node

from osmabench_ros.ros.wire.matched_client import MatchedClient


def test_a_client_is_ready_once_the_server_has_answered_and_not_before(ros_context: Any) -> None:
    asking, serving = (Node(name, context=ros_context) for name in ('asking', 'player'))
    executor = SingleThreadedExecutor(context=ros_context)
    executor.add_node(asking)
    asked: list[int] = []

    def step(request: Any, response: Any) -> Any:
        asked.append(request.frames)
        return response

    def spin(condition: Callable[[], bool], seconds: float = 30.0) -> bool:
        deadline = time.monotonic() + seconds
        while not (done := condition()) and time.monotonic() < deadline:
            executor.spin_once(timeout_sec=0.02)
        return done

    client = MatchedClient(asking, StepRun, 'step_run', 'player')
    assert not client.ready()
    serving.create_service(StepRun, 'step_run', step)
    serving.create_service(GetState, 'player/get_state', lambda _request, response: response)
    # The server is there, but nobody serves it: only an answer shows that answers arrive.
    assert not spin(client.ready, 3.0)
    executor.add_node(serving)
    assert spin(client.ready)
    answer = client.call(StepRun.Request(frames=7))
    assert spin(answer.done)
    assert asked == [7]
    client.close()
    assert list(asking.clients) == []
    executor.shutdown()
