"""Signals to a command that spins: their handlers raise after rclpy's C code, not inside of it."""

import signal

import pytest


class StruckError(Exception):
    pass


def _strike(*_arguments):
    raise StruckError


@pytest.fixture
def node(spinner):
    previous = signal.signal(signal.SIGINT, _strike)
    yield spinner.make_node('command')
    signal.signal(signal.SIGINT, previous)


def test_a_signal_while_a_message_is_made_is_raised_as_it_is(node, monkeypatch):
    from std_msgs.msg import String

    from osmabench_ros.ros.matched_client import CommandExecutor

    make, word, heard = String.__init__, String(data='word'), []

    def struck(message, **values):
        make(message, **values)
        signal.raise_signal(signal.SIGINT)

    node.create_subscription(String, 'words', heard.append, 1)
    words = node.create_publisher(String, 'words', 1)
    node.create_timer(0.05, lambda: words.publish(word))
    executor = CommandExecutor(context=node.context)
    executor.add_node(node)
    monkeypatch.setattr(String, '__init__', struck)

    def spin():
        for _ in range(100):
            executor.spin_once(timeout_sec=0.1)

    with pytest.raises(StruckError):
        spin()
    assert heard == [word]
