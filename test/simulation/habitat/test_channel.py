import contextlib
import os
import struct
import threading

import pytest

from osmabench_ros.simulation.habitat.worker.channel import (
    ChannelClosed,
    ChannelTimeout,
    receive,
    send,
)


@pytest.fixture
def pipe():
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):  # the test may have closed it
            os.close(end)


def test_messages_longer_than_a_pipe_arrive_whole_and_in_order(pipe):
    reading, writing = pipe
    messages = [{'n': 1, 'x': 'é' * 300_000}, {'n': 2, 'x': ''}]

    def write():
        for message in messages:
            send(writing, message)

    writer = threading.Thread(target=write)
    writer.start()
    assert [receive(reading, 5.0) for _ in messages] == messages
    writer.join()


def test_a_writer_that_is_gone_is_noticed_even_in_the_middle(pipe):
    reading, writing = pipe
    os.write(writing, struct.pack('>I', 100) + b'{"half')
    os.close(writing)
    with pytest.raises(ChannelClosed, match='end of file'):
        receive(reading)


def test_a_reader_that_is_gone_is_noticed(pipe):
    reading, writing = pipe
    os.close(reading)
    with pytest.raises(ChannelClosed, match='Broken pipe'):
        send(writing, {})


def test_waiting_ends(pipe):
    reading, writing = pipe
    os.write(writing, b'\0\0')
    with pytest.raises(ChannelTimeout):
        receive(reading, 0.05)


def test_a_length_that_makes_no_sense_is_not_waited_for(pipe):
    reading, writing = pipe
    os.write(writing, b'Renderer: llvmpipe')
    with pytest.raises(ChannelClosed, match='out of step'):
        receive(reading, 1.0)
