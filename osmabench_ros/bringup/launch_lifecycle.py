"""Takes nodes of `ros2 launch` through their lifecycle by what their services answer."""

from __future__ import annotations

import threading
import time

from launch.actions import OpaqueFunction
from launch.logging import get_logger
from launch_ros.actions import LifecycleNode
from launch_ros.ros_adapters import get_ros_node
from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState

from launch import LaunchContext
from osmabench_ros.ros.matched_client import MatchedClient

LOOK_S = 0.5
"""How often to look whether the launch has been shut down meanwhile."""
READY_PERIOD_S = 0.05


def bring_up(node: LifecycleNode) -> OpaqueFunction:
    """Return the action that configures and then activates a node that was executed before it.

    launch_ros activates at an event that is volatile: a launch that has not discovered the node
    yet never hears of it, and the node stays inactive for ever. The service that was asked
    answers.
    """

    def start(context: LaunchContext) -> None:
        name = node.node_name
        client = MatchedClient(get_ros_node(context), ChangeState, f'{name}/change_state', name)
        done = context.asyncio_loop.run_in_executor(None, _bring_up, node, client, context)
        context.add_completion_future(done)

    return OpaqueFunction(function=start)


def _bring_up(node: LifecycleNode, client: MatchedClient, context: LaunchContext) -> None:
    """Ask for one transition after the other, in a thread, until the launch is shut down."""
    try:
        for transition in (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE):
            request = ChangeState.Request(transition=Transition(id=transition))
            if not _ask(client, request, context):
                return
    except Exception as error:
        # At a shutdown the client's node is destroyed under it.
        if not context.is_shutdown:
            get_logger(__name__).error(f'{node.node_name} cannot be brought up: {error}')


def _ask(client: MatchedClient, request: ChangeState.Request, context: LaunchContext) -> bool:
    """Return whether the node is in its next state; one that refuses logs why, and ends."""
    while not client.ready():
        if context.is_shutdown:
            return False
        time.sleep(READY_PERIOD_S)
    answered = threading.Event()
    future = client.call(request)
    future.add_done_callback(lambda _future: answered.set())
    while not answered.wait(LOOK_S):
        if context.is_shutdown:
            return False
    return bool(future.result().success)
