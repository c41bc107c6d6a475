"""The bag player over DDS, in a separate process."""

import os
import time

import psutil
import pytest
from nodes.test_bag_recorder_node import record
from rosbags.rosbag2 import StoragePlugin
from support.ros_processes import interrupt, listening, node_process
from support.world.bags import BEACONS, POSES, write_bag

from osmabench_ros.base import contract as topics
from osmabench_ros.bringup.isolation import private_domain
from osmabench_ros.sequences.bags.bag import open_bag

IMAGES = [f'/{topics.COLOR}', f'/{topics.DEPTH}', f'/{topics.CAMERA_POSE}']


@pytest.fixture(scope='module')
def recorded(tmp_path_factory):
    """A bag of a real publisher: 20 frames in a second."""
    folder = tmp_path_factory.mktemp('recorded') / 'bag'
    with private_domain() as domain:
        record(domain, folder, 20, 20, 64, 48)
    return folder


def in_bag(folder, names):
    with open_bag(folder) as bag:
        return [[item.topic, item.data.hex()] for item in bag.messages(names)]


def player_of(domain, bag, **parameters):
    # A busy machine takes its time to match a listener.
    return node_process(domain, 'bag_player_node', **{'bag': bag, 'delay_s': 5.0, **parameters})


def played(domain, folder, names, **parameters):
    """Play a bag; return the received messages, the player's output and the time it took."""
    with listening(domain, *names) as listener:
        start_s = time.monotonic()
        with player_of(domain, folder, **parameters) as player:
            _, errors = player.communicate(timeout=90)
            took_s = time.monotonic() - start_s
            assert player.returncode == 0, errors
        return listener.end(), errors, took_s


def test_what_was_recorded_is_heard_again_to_the_byte(ros_domain, recorded):
    heard, _, took_s = played(ros_domain, recorded, IMAGES)
    expected = in_bag(recorded, IMAGES)
    for name in IMAGES:
        ours, theirs = ([x for x in found if x[0] == name] for found in (heard, expected))
        assert ours == theirs
        assert len(ours) == 20
    assert took_s > 1.0


def test_latched_topics_reach_who_comes_late_and_the_clock_follows_the_stamps(
    ros_domain, recorded
):
    latched = [f'/{topics.RUN_INFO}', f'/{topics.LABEL_INFO}']
    with (
        player_of(ros_domain, recorded, paused=True) as player,
        listening(ros_domain) as caller,
    ):
        assert caller.call('bag_player', 'step_run', 3).error_code == 0
        with listening(ros_domain, *latched, '/clock') as late:
            for topic in latched:
                late.wait(topic, 1)
            answer = late.call('bag_player', 'step_run', 2)
            assert (answer.error_code, answer.state.state) == (0, 1)
            late.wait('/clock', 2)
            # It has paused again by itself.
            assert late.call('bag_player', 'pause_run').error_code == 1
            messages = late.end()
        code, _ = interrupt(player)
    assert code == 0  # an interrupted player owes no result
    others = [item for item in messages if item[0] != '/clock']
    assert sorted(others) == sorted(in_bag(recorded, latched))
    clocks = [item for item in messages if item[0] == '/clock']
    assert clocks


@pytest.mark.full
def test_a_paused_player_rests_starts_over_and_goes_on(ros_domain, recorded):
    pose = f'/{topics.CAMERA_POSE}'
    once = [item[1] for item in in_bag(recorded, [pose])]
    with listening(ros_domain, pose) as listener:
        with player_of(ros_domain, recorded, paused=True, delay_s=0.0) as player:
            for service, frames, heard in (
                ('step_run', 3, 3),
                ('reset_run', 0, 3),
                ('step_run', 2, 5),
            ):
                assert listener.call('bag_player', service, frames).error_code == 0
                listener.wait(pose, heard)
            watched, since_s = psutil.Process(player.pid), time.monotonic()
            before = watched.num_ctx_switches().voluntary
            time.sleep(2.0)  # the measured time; a busy machine makes it less
            woken = watched.num_ctx_switches().voluntary - before
            assert woken / (time.monotonic() - since_s) < 200
            assert listener.call('bag_player', 'start_run').error_code == 0
            listener.wait(pose, 23)
            assert player.wait(timeout=180) == 0
        assert [item[1] for item in listener.end()] == [*once[:3], *once]


def test_types_that_are_not_installed_are_named_and_a_cut_bag_plays_as_far_as_it_goes(
    ros_domain, tmp_path
):
    folder = write_bag(tmp_path / 'bag', StoragePlugin.MCAP, count=40, payload=100_000)
    os.truncate(folder / 'bag.mcap', (folder / 'bag.mcap').stat().st_size * 2 // 3)
    heard, errors, _ = played(ros_domain, folder, [POSES], rate=10.0)
    assert heard == in_bag(folder, [POSES])
    assert 10 < len(heard) < 40
    assert (
        f'{BEACONS} is not played: message type robot_msgs/msg/Beacon is not installed' in errors
    )
    assert 'as far as' in errors
    assert 'bag.mcap' in errors


@pytest.mark.full
def test_bad_settings_end_the_player(ros_domain, recorded, tmp_path):
    for parameters, reason in (
        ({'bag': tmp_path}, 'is not a bag'),
        ({'start_s': 100.0}, 'it has nothing after 100 s'),
        ({'topics': ['/absent']}, 'has no topic "/absent"'),
    ):
        with player_of(ros_domain, **{'bag': recorded, **parameters}) as player:
            _, errors = player.communicate(timeout=180)
        assert player.returncode != 0
        assert reason in errors, errors


@pytest.mark.full
def test_looping_starts_over_until_it_is_interrupted(ros_domain, recorded):
    pose = f'/{topics.CAMERA_POSE}'
    once = [item[1] for item in in_bag(recorded, [pose])]
    with listening(ros_domain, pose) as listener:
        with player_of(ros_domain, recorded, rate=4.0, loop=True) as player:
            listener.wait(pose, 2 * len(once) + 1)
            assert player.poll() is None
            interrupt(player)
        poses = [item[1] for item in listener.end()]
    assert poses == [once[number % len(once)] for number in range(len(poses))]
