"""`osmabench bag record` and `osmabench bag replay` as processes with a running stack."""

import os
import signal

import pytest
from support import SUPPORT
from support.commands import osmabench

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.sequences.bags.recording_report import read_report

POSE = '/ground_truth/camera_pose'


@pytest.mark.ros
def test_record_until_ctrl_c_then_replay(ros_domain, tmp_path):
    from support.ros_processes import process, wait_until_recorded

    folder = tmp_path / 'bag'
    command = ['-m', 'osmabench_ros.cli', 'bag', 'record', '--out', str(folder)]
    with process(ros_domain, *command) as recorder:
        talker_arguments = [str(SUPPORT / 'frame_talker.py'), '20', '20', '64', '48', '1']
        with process(ros_domain, *talker_arguments) as talker:
            talker.stdout.readline()
            wait_until_recorded(folder, 20)
        recorder.send_signal(signal.SIGINT)
        output, errors = recorder.communicate(timeout=180)
    assert recorder.returncode == 0, errors
    assert '/camera/color/image_raw' in output
    assert 'lost 0' in output
    report = read_report(folder)
    assert report.complete
    assert report.frames_expected == 20

    command = ['-m', 'osmabench_ros.cli', 'bag', 'replay', str(folder), '--rate', '4']
    with process(ros_domain, *command) as player:
        output, errors = player.communicate(timeout=180)
    assert player.returncode == 0, errors
    assert f'played {report.messages} messages' in output

    with process(ros_domain, *command, '--topics', '/absent') as player:
        output, errors = player.communicate(timeout=180)
    assert player.returncode == 2
    assert errors.startswith('error: ')
    assert ' '.join((output + errors).split()).count('has no topic "/absent"') == 1


@pytest.mark.ros
@pytest.mark.parametrize(
    ('words', 'message'),
    [
        ('record --out mine', 'mine is not empty'),
        ('record --out bag --exclude (', 'is not a regular expression'),
        ('record --out bag --split-size lots', '--split-size'),
        ('replay absent', 'absent does not exist; name a folder of a bag'),
        ('replay text.mcap', 'text.mcap is empty or not an MCAP file'),
        ('replay x --duration 0', '--duration is 0 s'),
        ('replay x --rate 0', 'options.*rate'),
        ('replay x --start -1', 'options.*start_s'),
        ('replay x --remap a=b', 'is not of the form FROM:=TO'),
    ],
)
def test_mistakes_are_named_before_a_node_is_started(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'text.mcap').write_text('no bag')
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'thesis').touch()
    before = sorted(tmp_path.rglob('*'))
    with pytest.raises(OsmabenchError, match=message):
        osmabench('bag', *words.split())
    assert sorted(tmp_path.rglob('*')) == before


@pytest.mark.full
@pytest.mark.ros
def test_enter_plays_one_frame_of_a_bag_that_is_stepped(ros_domain, tmp_path):
    import pty

    from support.ros_processes import listening, process
    from support.world.frames import FRAMES, INFO, write_frames

    from osmabench_ros.sequences.writer import BagWriter

    write_frames(BagWriter(tmp_path / 'bag', INFO))
    keyboard, terminal = pty.openpty()
    words = ['-m', 'osmabench_ros.cli', 'bag', 'replay', str(tmp_path / 'bag'), '--step']
    with listening(ros_domain, POSE) as listener:
        with process(ros_domain, *words, stdin=terminal) as player:
            # The first key comes before the player is there.
            for count in (1, 2):
                os.write(keyboard, b'\n')
                listener.wait(POSE, count)
            player.send_signal(signal.SIGINT)
            _, errors = player.communicate(timeout=180)
        poses = listener.end()
    os.close(keyboard)
    os.close(terminal)
    assert len(poses) == 2 < len(FRAMES)
    assert player.returncode == 130, errors
