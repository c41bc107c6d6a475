import math

import pytest
from pydantic import ValidationError
from rosbags.rosbag2 import StoragePlugin
from support.world.bags import BEACONS, NUMBERS, POSES, START_NS, STEP_NS, write_bag
from support.world.frames import FRAMES, INFO, write_frames

from osmabench_ros.base.contract import CAMERA_POSE, COLOR
from osmabench_ros.errors import ConfigError
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.bags.playback import Playback, PlaybackSettings, timing_topics
from osmabench_ros.sequences.writer import BagWriter

STEP_S = STEP_NS / 1e9


@pytest.fixture
def bag(tmp_path):
    return open_bag(write_bag(tmp_path / 'bag', StoragePlugin.MCAP))


def due(playback, now_s):
    count = 0
    while playback.due(now_s) is not None:
        count += 1
    return count


@pytest.mark.parametrize('rate', [0.5, 4.0])
def test_messages_are_due_in_proportion_to_the_rate(bag, rate):
    playback = Playback(bag, [NUMBERS], PlaybackSettings(rate=rate))
    assert playback.wait_s(100.0) == 0.0
    assert due(playback, 100.0) == 1
    wait_s = playback.wait_s(100.0)
    assert wait_s == pytest.approx(STEP_S / rate)
    assert due(playback, 100.0 + 0.99 * wait_s) == 0
    assert due(playback, 100.0 + 5.5 * wait_s) == 5
    assert playback.wait_s(1000.0) == 0.0
    assert due(playback, 1000.0) == 14
    assert playback.wait_s(1000.0) == math.inf
    assert playback.at_end


def test_time_stops_while_halted(bag):
    playback = Playback(bag, [NUMBERS], PlaybackSettings())
    due(playback, 0.0)
    playback.halt()
    assert due(playback, 50.0) == 0
    assert due(playback, 50.0 + 2.5 * STEP_S) == 2
    playback.rewind()
    assert due(playback, 70.0) == 1


def test_a_step_ends_before_the_next_stamp(bag):
    playback = Playback(bag, [NUMBERS, POSES], PlaybackSettings())
    assert [item.topic for item in playback.step()] == [NUMBERS, POSES, NUMBERS]
    assert [item.topic for item in playback.step()] == [POSES, NUMBERS]
    assert timing_topics(bag, [NUMBERS, POSES]) == {NUMBERS, POSES}
    unstamped = Playback(bag, [NUMBERS], PlaybackSettings())
    assert len(unstamped.step()) == len(unstamped.step()) == 1


def test_start_duration_and_what_was_latched_before(bag):
    options = PlaybackSettings(start_s=5 * STEP_S, duration_s=3 * STEP_S)
    playback = Playback(bag, [NUMBERS, BEACONS], options)
    (before,) = playback.latched_before()
    assert (before.topic, before.log_ns) == (BEACONS, START_NS + 4 * STEP_NS + 2)
    assert playback.length_s == pytest.approx(3 * STEP_S)
    assert due(playback, 0.0) == 1
    assert due(playback, 100.0) == 5
    assert Playback(bag, [BEACONS], PlaybackSettings()).latched_before() == []


def test_bad_options_are_named(bag):
    with pytest.raises(ValidationError, match='rate\n  Input should be'):
        PlaybackSettings(rate=float('nan'))
    with pytest.raises(ConfigError, match='it has nothing after 99 s'):
        Playback(bag, [NUMBERS], PlaybackSettings(start_s=99.0))


def test_sensors_alone_tell_the_time_where_there_are_any(tmp_path):
    write_frames(BagWriter(tmp_path / 'room', INFO))
    with open_bag(tmp_path / 'room') as bag:
        names = [item.topic for item in bag.connections]
        timing = timing_topics(bag, names)
        assert f'/{CAMERA_POSE}' not in timing
        assert f'/{COLOR}' in timing
        playback = Playback(bag, names, PlaybackSettings())
        steps = [playback.step() for _ in FRAMES]
        assert playback.at_end
    # The pose of a frame is written before its images, and belongs to them.
    assert [{item.header_stamp_ns for item in step} for step in steps] == [
        {frame.stamp_ns} for frame in FRAMES
    ]
