"""How tests wait: for an event, with a generous limit."""

import time

import psutil

PERIOD_S = 0.02


def wait_until(condition, timeout_s=120.0, *, step=lambda: time.sleep(PERIOD_S), state=lambda: ''):
    """Repeat a step until a condition holds, and return its value; fail with the state."""
    deadline = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < deadline, f'timed out after {timeout_s:g} s {state()}'
        step()
    return value


def is_alive(pid):
    """Return whether a process is there and has not ended."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


class Spinner:
    """Nodes in a context, by default the global one, that are spun while it waits."""

    def __init__(self, context=None):
        from rclpy.executors import SingleThreadedExecutor

        self.context = context
        self.nodes = []
        self.executor = SingleThreadedExecutor(context=context)

    def add(self, node):
        """Spin a node too, and return it."""
        self.executor.add_node(node)
        self.nodes.append(node)
        return node

    def make_node(self, name, **options):
        """Return another node that is spun."""
        from rclpy.node import Node

        return self.add(Node(name, context=self.context, **options))

    def close(self):
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()

    def state_in_words(self):
        """Describe the last state of a wait that timed out."""
        return ''

    def spin_until(self, condition, timeout_s=120.0):
        """Spin until a condition holds."""
        wait_until(
            condition,
            timeout_s,
            step=lambda: self.executor.spin_once(timeout_sec=0.05),
            state=self.state_in_words,
        )

    def spin_for(self, seconds):
        """Spin for a while, for what must not happen."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            self.executor.spin_once(timeout_sec=0.02)


def listen(node, kind, topic, profile):
    """Return a list that gets every message of a topic that a node receives."""
    heard = []
    node.create_subscription(kind, topic, heard.append, profile)
    return heard


def read_until(process, words):
    """Read the output of a process up to a line with some words, and return it."""
    text = ''
    for line in process.stdout:
        text += line
        if words in line:
            return text
    raise AssertionError(f'"{words}" was never printed, but: {text}')
