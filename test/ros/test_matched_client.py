"""Requests that are sent only once they will arrive and be answered, over DDS."""

import pytest
from lifecycle_msgs.srv import GetState
from osmabench_ros.srv import StepRun
from rclpy.node import Node

from osmabench_ros.ros.matched_client import MatchedClient


def test_a_client_is_ready_once_the_server_has_answered_and_not_before(spinner):
    asking, serving = spinner.make_node('asking'), Node('player', context=spinner.context)
    asked = []

    def step(request, response):
        asked.append(request.frames)
        return response

    client = MatchedClient(asking, StepRun, 'step_run', 'player')
    assert not client.ready()
    serving.create_service(StepRun, 'step_run', step)
    serving.create_service(GetState, 'player/get_state', lambda _request, response: response)
    # The server is there, but nobody serves it: only an answer shows that answers arrive.
    with pytest.raises(AssertionError, match='timed out'):
        spinner.spin_until(client.ready, 3.0)
    spinner.add(serving)
    spinner.spin_until(client.ready)
    answer = client.call(StepRun.Request(frames=7))
    spinner.spin_until(answer.done)
    assert asked == [7]
    client.close()
    assert list(asking.clients) == []
