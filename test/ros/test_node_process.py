"""The end of a node's process by a signal: its exit code, and the work that it finishes."""

import signal
import time

import pytest
from support.ros_processes import process
from support.waiting import read_until

PROGRAM = """
import sys, time
from osmabench_ros.base.strict import Strict
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node

class Debtor(BenchmarkNode):
    def __init__(self):
        super().__init__('debtor', Strict)
        print('up', flush=True)

    def owes_result(self):
        return sys.argv[1] == 'owing'

    def cleanup(self):
        print('cleaning', flush=True)
        time.sleep(1.0)
        print('clean', flush=True)

raise SystemExit(run_node(Debtor, ['--ros-args', '-p', 'autostart:=true']))
"""


@pytest.mark.parametrize(('kind', 'code'), [('free', 0), ('owing', 130)])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_an_impatient_user_cuts_nothing_off(kind, code, number, ros_domain):
    with process(ros_domain, '-c', PROGRAM, kind) as running:
        read_until(running, 'up')
        time.sleep(0.3)
        running.send_signal(number)
        read_until(running, 'cleaning')
        for _ in range(3):
            running.send_signal(number)
            time.sleep(0.1)
        output, errors = running.communicate(timeout=120)
    assert 'clean' in output.split()
    assert 'Traceback' not in errors
    assert ('asked to end before there was a result' in errors) == (kind == 'owing')
    assert running.returncode == code


STRUCK = """
import signal
from std_msgs.msg import String
from osmabench_ros.base.strict import Strict
from osmabench_ros.ros.node.lifecycle import BenchmarkNode
from osmabench_ros.ros.node.node_process import run_node

def struck(message, **values):
    make(message, **values)
    signal.raise_signal(signal.SIGINT)

make = String.__init__

class Listener(BenchmarkNode):
    def __init__(self):
        super().__init__('listener', Strict)

    def configure(self):
        self.create_subscription(String, 'words', print, 1)
        words, word = self.create_publisher(String, 'words', 1), String(data='word')
        self.create_timer(0.05, lambda: words.publish(word))
        String.__init__ = struck

    def owes_result(self):
        return True

raise SystemExit(run_node(Listener, ['--ros-args', '-p', 'autostart:=true']))
"""


def test_a_signal_while_a_message_is_made_asks_the_node_to_end(ros_domain):
    """rclpy's C code makes a SystemError of the handler's exception there."""
    with process(ros_domain, '-c', STRUCK) as running:
        _, errors = running.communicate(timeout=60)
    assert 'Traceback' not in errors
    assert running.returncode == 130, errors


WAITING = """
from osmabench_ros.base.strict import Strict
from osmabench_ros.ros.node import diagnostics, node_process
from osmabench_ros.ros.node.lifecycle import BenchmarkNode

# Nothing but the signal ends the waiting.
node_process.LOOK_EVERY_S = diagnostics.PERIOD_S = 10000.0

class Idle(BenchmarkNode):
    def __init__(self):
        super().__init__('idle', Strict)

    def activate(self):
        print('up', flush=True)

raise SystemExit(node_process.run_node(Idle, ['--ros-args', '-p', 'autostart:=true']))
"""


def test_a_signal_ends_the_waiting_for_messages(ros_domain):
    with process(ros_domain, '-c', WAITING) as running:
        read_until(running, 'up')
        # Until it waits; asleep in DDS it notices a signal only if something wakes it.
        time.sleep(1.0)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    assert 'Traceback' not in errors
    assert running.returncode == 0, errors
