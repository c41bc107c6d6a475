"""Processes of tests in a private domain; every one of them ends with the test."""

import json
import os
import signal
import subprocess
import sys
from contextlib import closing, contextmanager

from osmabench_ros.base.contract import CONTRACT, FRAME_TOPICS, STEP_RUN
from osmabench_ros.bringup.isolation import make_isolated_environment
from osmabench_ros.errors import SequenceError
from osmabench_ros.sequences.bags.recording_report import read_report
from support import TESTS
from support.waiting import Spinner, wait_until

KINDS = {f'/{item.name.lstrip("/")}': item.message_type for item in CONTRACT}


@contextmanager
def process(domain, *command, **options):
    """Yield a Python process, which is ended, if need be by force, when the block is left."""
    environment = {**make_isolated_environment(domain), 'PYTHONPATH': str(TESTS)}
    if extra := os.environ.get('PYTHONPATH'):
        environment['PYTHONPATH'] += os.pathsep + extra
    pipes = dict.fromkeys(('stdin', 'stdout', 'stderr'), subprocess.PIPE)
    running = subprocess.Popen(
        [sys.executable, *command], env=environment, text=True, **{**pipes, **options}
    )
    try:
        yield running
    finally:
        if running.poll() is None:
            running.kill()
        running.communicate()


class Listener(Spinner):
    """A node that keeps topic and bytes, in hexadecimal, of its messages, and calls runs."""

    def __init__(self, context, topics):
        super().__init__(context)
        self.node = self.make_node('listener')
        self.heard = []
        for topic in topics:
            self._subscribe(topic)

    def _subscribe(self, topic):
        from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile

        from osmabench_ros.ros.messages.message_definitions import message_class

        kind = KINDS.get(topic, 'geometry_msgs/msg/PoseStamped')
        latched = kind.startswith('osmabench_ros')
        policy = DurabilityPolicy.TRANSIENT_LOCAL if latched else DurabilityPolicy.VOLATILE
        profile = QoSProfile(history=HistoryPolicy.KEEP_ALL, depth=1, durability=policy)
        self.node.create_subscription(
            message_class(kind),
            topic,
            lambda data: self.heard.append([topic, data.hex()]),
            profile,
            raw=True,
        )

    def wait(self, topic, count):
        """Wait until a topic has brought so many messages."""
        self.spin_until(lambda: sum(item[0] == topic for item in self.heard) >= count)

    def end(self):
        """Return all that was received, in order, once no more comes."""
        count = -1
        while count != len(self.heard):
            count = len(self.heard)
            self.spin_for(1.0)
        return self.heard

    def call(self, server, name, frames=0):
        """Call a service of a run, and return its answer."""
        return call_run(self, self.node, server, name, frames)


def call_run(spinner, node, server, name, frames=0):
    """Call a service of a run from a node, and return its answer."""
    from osmabench_ros.srv import ControlRun, StepRun

    from osmabench_ros.ros.matched_client import MatchedClient

    kind = StepRun if name == STEP_RUN else ControlRun
    request = kind.Request(frames=frames) if kind is StepRun else kind.Request()
    with closing(MatchedClient(node, kind, name, server)) as client:
        spinner.spin_until(client.ready)
        future = client.call(request)
        spinner.spin_until(future.done)
    return future.result()


@contextmanager
def listening(domain, *topics):
    """Yield a node of this process that receives topics of a domain."""
    with context_in(domain) as context, closing(Listener(context, topics)) as listener:
        yield listener


def wait_until_recorded(folder, frames):
    """Wait until a recorder has received all frames of a talker, or counted those it missed."""
    names = {f'/{name}' for name in FRAME_TOPICS}

    def recorded():
        try:
            report = read_report(folder)
        except SequenceError:  # not yet written
            return False
        counts = [
            item.received + item.lost_by_middleware
            for item in report.topics
            if item.topic in names
        ]
        return len(counts) == len(names) and min(counts) >= frames

    wait_until(recorded, state=lambda: f'for {frames} frames in {folder}')


def node_arguments(name, parameters):
    """Return what runs a node of this package, active at once."""
    settings = {'autostart': True, **parameters}
    pairs = [
        item
        for key, value in settings.items()
        for item in ('-p', f'{key}:={json.dumps(value, default=str)}')
    ]
    return ['-m', f'osmabench_ros.nodes.{name}', '--ros-args', *pairs]


def node_process(domain, name, *words, **parameters):
    """Start a node of this package, active at once; words may follow its parameters."""
    return process(domain, *node_arguments(name, parameters), *words)


def interrupt(running, timeout_s=180.0):
    """Send Ctrl-C; return the exit code and all output."""
    running.send_signal(signal.SIGINT)
    output, errors = running.communicate(timeout=timeout_s)
    return running.returncode, (output or '') + (errors or '')


@contextmanager
def context_in(domain):
    """Yield a context of rclpy in a domain."""
    import rclpy

    context = rclpy.Context()
    rclpy.init(context=context, domain_id=domain, args=[])
    try:
        yield context
    finally:
        context.try_shutdown()
