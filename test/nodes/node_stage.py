"""A node of this package and a test node that talks to it over DDS, in one process."""

import json
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import rclpy
import yaml
from lifecycle_msgs.msg import Transition
from support.waiting import Spinner, listen

from osmabench_ros.maps.announced_map import MapAssembler
from osmabench_ros.maps.storage import unpack_map

UP = (Transition.TRANSITION_CONFIGURE, Transition.TRANSITION_ACTIVATE)
DOWN = (Transition.TRANSITION_DEACTIVATE, Transition.TRANSITION_CLEANUP)


class Stage(Spinner):
    """The node under test, brought up, and a peer."""

    def __init__(self, factory):
        super().__init__()
        self.node = self.add(factory())
        self.peer = self.make_node('peer')

    def bring_up(self):
        self.node.trigger_configure()
        if self.node.exit_code is None:
            self.node.trigger_activate()

    def wait_for_end(self, timeout_s=120.0):
        """Return the exit code of the node under test once it has one."""
        self.spin_until(lambda: self.node.exit_code is not None, timeout_s)
        return self.node.exit_code

    def listen(self, kind, topic, profile):
        """Return a list that gets every published message."""
        return listen(self.peer, kind, topic, profile)

    def speak(self, kind, topic, profile):
        """Return a publisher that the node under test has discovered."""
        publisher = self.peer.create_publisher(kind, topic, profile)
        self.spin_until(lambda: publisher.get_subscription_count() > 0)
        return publisher

    def receive_map(self, announcement, chunks):
        """Return an announced map from those of some chunks that are its own."""

        def own():
            return [chunk for chunk in chunks if chunk.digest == announcement.digest]

        self.spin_until(lambda: len(own()) >= announcement.chunk_count)
        assembler = MapAssembler()
        assembler.announce(announcement)
        [(_, payload)] = [done for chunk in own() if (done := assembler.add(chunk))]
        return unpack_map(payload)

    def close(self):
        self.node.cleanup()
        super().close()


@contextmanager
def on_stage(factory, folder, domain, plan=None, **parameters):
    """Bring a node up with parameters, and settings that only a plan has."""
    if plan:
        parameters['plan_file'] = str(folder / 'plan.json')
        Path(parameters['plan_file']).write_text(json.dumps(plan))
    file = folder / 'parameters.yaml'
    file.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
    rclpy.init(args=['--ros-args', '--params-file', str(file)], domain_id=domain)
    try:
        with closing(Stage(factory)) as stage:
            stage.bring_up()
            yield stage
    finally:
        rclpy.shutdown()


@contextmanager
def openings(factory, folder, domain, user, **defaults):
    """Yield a function that brings up a node, with more parameters, and returns its user."""
    with ExitStack() as stack:

        def opening(**parameters):
            values = {**defaults, **parameters}
            return user(stack.enter_context(on_stage(factory, folder, domain, **values)))

        yield opening
