"""Requests that are sent only once they will arrive and be answered, over DDS."""

import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from lifecycle_msgs.srv import GetState
from osmabench_ros.srv import StepRun
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from support.waiting import wait_until

from osmabench_ros.ros.matched_client import MatchedClient


def test_a_client_is_ready_once_the_server_has_answered_and_not_before(ros_context):
    asking, serving = (Node(name, context=ros_context) for name in ('asking', 'player'))
    executor = SingleThreadedExecutor(context=ros_context)
    executor.add_node(asking)
    asked = []

    def step(request, response):
        asked.append(request.frames)
        return response

    def spin():
        executor.spin_once(timeout_sec=0.02)

    client = MatchedClient(asking, StepRun, 'step_run', 'player')
    assert not client.ready()
    serving.create_service(StepRun, 'step_run', step)
    serving.create_service(GetState, 'player/get_state', lambda _request, response: response)
    # The server is there, but nobody serves it: only an answer shows that answers arrive.
    with pytest.raises(AssertionError, match='timed out'):
        wait_until(client.ready, 3.0, step=spin)
    executor.add_node(serving)
    wait_until(client.ready, step=spin)
    answer = client.call(StepRun.Request(frames=7))
    wait_until(answer.done, step=spin)
    assert asked == [7]
    client.close()
    assert list(asking.clients) == []
    executor.shutdown()
