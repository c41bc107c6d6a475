"""The bag recorder over DDS, with publishers in other processes."""

import json
import shutil
import subprocess
import time
from contextlib import suppress

import numpy as np
import pytest
import yaml
from nodes.node_stage import on_stage
from osmabench_ros.msg import FrameAck, RunInfo, RunState
from rclpy.serialization import deserialize_message
from rosbags.highlevel import AnyReader
from std_msgs.msg import String
from support import SUPPORT
from support.frame_talker import FIRST_NS, STEP_NS, talker_frame
from support.ros_processes import interrupt, node_process, process, wait_until_recorded
from support.waiting import wait_until

from osmabench_ros.base import contract as topics
from osmabench_ros.errors import OsmabenchError
from osmabench_ros.nodes.bag_recorder_node import BagRecorderNode
from osmabench_ros.ros.messages.poses import stamp_from_message
from osmabench_ros.ros.qos import latched_profile
from osmabench_ros.sequences.bags.bag import open_bag
from osmabench_ros.sequences.recorded import BagSequence

TALKER = str(SUPPORT / 'frame_talker.py')
LATCHED = (topics.RUN_INFO, topics.LABEL_INFO, topics.RUN_STATE, topics.LIGHTING)


def recorder_to(domain, folder, **parameters):
    return node_process(domain, 'bag_recorder_node', bag_directory=folder, **parameters)


def record(domain, folder, *numbers, **parameters):
    """Record frames of a talker: their number, rate and size; return the recorder's output."""
    with (
        recorder_to(domain, folder, **parameters) as recorder,
        process(domain, TALKER, *map(str, numbers), '1') as talker,
    ):
        assert talker.stdout.readline().startswith('done'), recorder.communicate(timeout=120)
        wait_until_recorded(folder, numbers[0])
        code, output = interrupt(recorder)
        assert code == 0, output
    return output


def test_everything_of_a_run_is_in_the_bag(ros_domain, tmp_path):
    folder = tmp_path / 'bag'
    record(ros_domain, folder, 20, 20, 64, 48)

    report = json.loads((folder / 'recording.json').read_text())
    assert (report['complete'], report['error'], report['lost']) == (True, '', 0)
    assert (report['frames_expected'], report['frames_counted_by']) == (20, 'run_state')
    counts = {item['topic']: item for item in report['topics']}
    for name in topics.FRAME_TOPICS:
        assert (counts[f'/{name}']['written'], counts[f'/{name}']['frames_missed']) == (20, 0)

    # Another reader agrees, with the types that are embedded; it checks their hashes too.
    with AnyReader([folder]) as reader:
        assert reader.topics[f'/{topics.COLOR}'].msgcount == 20
        connections = [x for x in reader.connections if x.topic == f'/{topics.RUN_INFO}']
        [(connection, _, data)] = reader.messages(connections)
        assert reader.deserialize(data, connection.msgtype).run_id == 'talk'
    metadata = yaml.safe_load((folder / 'metadata.yaml').read_text())
    entries = metadata['rosbag2_bagfile_information']['topics_with_message_count']
    qos = {item['topic_metadata']['name']: item['topic_metadata'] for item in entries}
    for name in LATCHED:
        offered = qos[f'/{name}']['offered_qos_profiles']
        assert [item['durability'] for item in offered] == ['transient_local']
        assert qos[f'/{name}']['type_description_hash'].startswith('RIHS01_')

    sequence = BagSequence(folder)
    assert len(sequence) == 20
    for index, frame in enumerate(sequence):
        expected = talker_frame(index % 10, 64, 48)
        assert frame.stamp_ns == FIRST_NS + index * STEP_NS
        np.testing.assert_array_equal(frame.color, expected.color)
        np.testing.assert_array_equal(frame.instance, expected.instance)


def wait_until_written(folder, *names):
    """Wait for messages on disk; what waits for more is written out after a second."""

    def written():
        with suppress(OsmabenchError), open_bag(folder) as bag:
            return all(list(bag.messages([name])) for name in names)
        return False

    wait_until(written, step=lambda: time.sleep(0.2), state=lambda: f'for {names}')


@pytest.mark.full
def test_chosen_topics_and_a_killed_recorder(ros_domain, tmp_path):
    folder = tmp_path / 'bag'
    settings = {'all_topics': True, 'exclude': 'image|rosout'}
    with recorder_to(ros_domain, folder, **settings) as recorder:
        with process(ros_domain, TALKER, '10', '20', '64', '48', '0') as talker:
            talker.stdout.readline()
            wait_until_written(folder, f'/{topics.LABEL_INFO}', f'/{topics.RUN_INFO}')
        recorder.kill()
        recorder.wait(timeout=180)
    with open_bag(folder) as bag:
        assert 'metadata.yaml is missing' in bag.cut_off
        names = {item.topic for item in bag.connections}
        (info,) = bag.messages([f'/{topics.RUN_INFO}'])
    assert {f'/{topics.RUN_INFO}', f'/{topics.LABEL_INFO}'} <= names
    assert not any('image' in name or 'rosout' in name for name in names)
    assert deserialize_message(info.data, RunInfo).scene == 'room'


def test_in_lockstep_every_recorded_frame_is_acknowledged(ros_domain, tmp_path):
    folder = tmp_path / 'bag'
    record(ros_domain, folder, 8, 10, 64, 48, acks=True)
    with open_bag(folder) as bag:
        messages = bag.messages([f'/{topics.FRAME_ACK}'])
        acks = [deserialize_message(item.data, FrameAck) for item in messages]
        frames = {item.header_stamp_ns for item in bag.messages([f'/{topics.INSTANCE}'])}
    stamps = [stamp_from_message(item.header.stamp) for item in acks]
    assert stamps == [FIRST_NS + index * STEP_NS for index in range(8)]
    assert frames == set(stamps)
    assert {item.participant for item in acks} == {'bag_recorder'}


@pytest.mark.full
def test_bad_settings_end_the_recorder(ros_domain, tmp_path):
    (tmp_path / 'taken').mkdir()
    (tmp_path / 'taken' / 'thesis').touch()
    for folder, parameters, reason in (
        (tmp_path / 'taken', {}, 'taken is not empty'),
        ('', {}, 'parameter "bag_directory" is empty'),
        (tmp_path / 'x', {'exclude': '('}, 'is not a regular expression'),
    ):
        with recorder_to(ros_domain, folder, **parameters) as recorder:
            _, errors = recorder.communicate(timeout=180)
        assert recorder.returncode != 0
        assert reason in errors
    assert not (tmp_path / 'x').exists()


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 48 MB."""
    folder = tmp_path / 'disk'
    folder.mkdir()
    command = ['mount', '-t', 'tmpfs', '-o', 'size=48m', 'tmpfs', str(folder)]
    if shutil.which('mount') is None or subprocess.run(command, capture_output=True).returncode:
        pytest.skip('a small file system cannot be mounted without root')
    yield folder
    subprocess.run(['umount', str(folder)], check=True)


def test_a_full_disk_ends_the_recorder_and_leaves_what_was_written(ros_domain, small_disk):
    folder = small_disk / 'bag'
    numbers = ('200', '20', '320', '240', '1')
    with (
        recorder_to(ros_domain, folder, compression='none') as recorder,
        process(ros_domain, TALKER, *numbers),
    ):
        _, errors = recorder.communicate(timeout=90)
    assert recorder.returncode == 1
    assert 'cannot be written any further: No space left' in errors
    report = json.loads((folder / 'recording.json').read_text())
    assert not report['complete']
    assert 'No space left' in report['error']
    with open_bag(folder) as bag:
        assert 'is cut off at byte' in bag.cut_off
        kept = {item.topic: item.message_count for item in bag.connections}
    assert kept == {item['topic']: item['written'] for item in report['topics'] if item['written']}
    assert kept[f'/{topics.COLOR}'] > 20


def test_a_foreign_run_state_is_recorded_and_not_read(ros_domain, tmp_path):
    """A robot may have a topic of that name; as our type it would claim 1.2 GB of strings."""
    folder = tmp_path / 'bag'
    settings = {'bag_directory': str(folder), 'topics': [topics.RUN_STATE]}
    with on_stage(BagRecorderNode, tmp_path, ros_domain, **settings) as stage:
        publisher = stage.speak(String, topics.RUN_STATE, latched_profile())
        publisher.publish(String(data='driving home'))
        stage.spin_until(lambda: stage.node.recorder.received[f'/{topics.RUN_STATE}'] == 1)
        assert stage.node.exit_code is None
    with open_bag(folder) as bag:
        assert [item.message_count for item in bag.connections] == [1]


def test_in_lockstep_no_state_of_the_run_is_overtaken(ros_domain, tmp_path):
    folder = tmp_path / 'bag'
    settings = {'bag_directory': str(folder), 'acks': True}
    with on_stage(BagRecorderNode, tmp_path, ros_domain, **settings) as stage:
        publisher = stage.speak(RunState, topics.RUN_STATE, latched_profile())
        for number in range(20):
            publisher.publish(RunState(frames_published=number))
        stage.spin_until(lambda: stage.node.recorder.received[f'/{topics.RUN_STATE}'] == 20)
    with open_bag(folder) as bag:
        states = list(bag.messages([f'/{topics.RUN_STATE}']))
    numbers = [deserialize_message(item.data, RunState).frames_published for item in states]
    assert numbers == list(range(20))


def test_a_report_that_cannot_be_written_ends_the_recorder_with_the_reason(
    ros_domain, tmp_path, capsys
):
    folder = tmp_path / 'bag'
    with on_stage(BagRecorderNode, tmp_path, ros_domain, bag_directory=str(folder)) as stage:
        (folder / 'recording.json').unlink(missing_ok=True)
        (folder / 'recording.json').mkdir()
        assert stage.wait_for_end() == 1
        (folder / 'recording.json').rmdir()
    assert f'{folder / "recording.json"} is not a file' in capsys.readouterr().err
    assert json.loads((folder / 'recording.json').read_text())['complete']
