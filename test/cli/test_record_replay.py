"""`osmabench record` and `osmabench replay` as processes beside a running stack."""

import os
import signal
from pathlib import Path

import pytest
from support import SUPPORT
from typer.testing import CliRunner

from osmabench_ros.cli.main import app
from osmabench_ros.cli.record import bytes_from_text
from osmabench_ros.errors import ConfigError, OsmabenchError, RunError
from osmabench_ros.sequences.bags.recording_report import read_report

POSE = '/ground_truth/camera_pose'


def test_sizes() -> None:
    assert [bytes_from_text(text) for text in ('0', '500M', '2G', '1.5 kB', '7B')] == [
        0, 500_000_000, 2_000_000_000, 1500, 7,
    ]  # fmt: skip
    with pytest.raises(ConfigError, match='"many" is no size'):
        bytes_from_text('many')


@pytest.mark.parametrize(
    ('arguments', 'reason'),
    [
        (['replay', 'x', '--start', '3', '--end', '2'], '--end 2 does not come after --start 3'),
        (['replay', 'x', '--end', '2', '--duration', '1'], 'not both'),
        (['replay', 'x', '--duration', '0'], '--duration is 0 s'),
        (['record', '--out', 'x', '--split-size', 'big'], 'is no size'),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], reason: str) -> None:
    result = CliRunner().invoke(app, arguments)
    assert isinstance(result.exception, ConfigError)
    assert reason in str(result.exception)


@pytest.mark.parametrize('option', ['--rate=0', '--rate=-2', '--start=-1'])
def test_numbers_out_of_bounds_are_named(option: str) -> None:
    result = CliRunner().invoke(app, ['replay', 'x', option])
    assert result.exit_code == 2
    assert f"Invalid value for '{option.partition('=')[0]}'" in result.output


@pytest.mark.ros
def test_a_malformed_remapping_and_a_taken_folder_are_named(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ['replay', 'x', '--remap', 'a=b'])
    assert isinstance(result.exception, ConfigError)
    assert 'write FROM:=TO' in str(result.exception)
    (tmp_path / 'thesis').touch()
    result = CliRunner().invoke(app, ['record', '--out', str(tmp_path)])
    assert isinstance(result.exception, RunError)
    assert f'{tmp_path} is not empty' in str(result.exception)


@pytest.mark.ros
def test_record_until_ctrl_c_then_replay(ros_domain: int, tmp_path: Path) -> None:
    from support.ros_processes import process, wait_until_recorded

    folder = tmp_path / 'bag'
    command = ['-m', 'osmabench_ros.cli', 'record', '--out', str(folder)]
    with process(ros_domain, *command) as recorder:
        talker_arguments = [str(SUPPORT / 'frame_talker.py'), '20', '20', '64', '48', '1']
        with process(ros_domain, *talker_arguments) as talker:
            assert talker.stdout is not None
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

    command = ['-m', 'osmabench_ros.cli', 'replay', str(folder), '--rate', '4']
    with process(ros_domain, *command) as player:
        output, errors = player.communicate(timeout=180)
    assert player.returncode == 0, errors
    assert f'played {report.messages} messages' in output

    with process(ros_domain, *command, '--topics', '/absent') as player:
        output, errors = player.communicate(timeout=180)
    assert player.returncode == 1
    assert ' '.join((output + errors).split()).count('has no topic "/absent"') == 1

    with process(ros_domain, *command[:-3], str(tmp_path / 'absent')) as player:
        output, errors = player.communicate(timeout=180)
    assert player.returncode != 0
    assert errors.startswith('error: ')
    assert 'absent does not exist; name a folder of a bag' in errors
    assert errors.count('\n') == 1


@pytest.mark.parametrize(
    ('words', 'message'),
    [
        (['record', '--out', 'bag', '--exclude', '('], 'is no regular expression'),
        (['record', '--out', 'bag', '--split-size', 'lots'], 'is no size'),
        (['replay', 'absent'], 'absent does not exist; name a folder of a bag'),
        (['replay', 'text.mcap'], 'text.mcap is empty or not an MCAP file'),
    ],
)
def test_mistakes_are_told_before_a_node_is_started(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / 'text.mcap').write_text('no bag')
    before = sorted(tmp_path.iterdir())
    with pytest.raises(OsmabenchError, match=message):
        CliRunner().invoke(app, words, catch_exceptions=False)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.ros
def test_enter_plays_one_frame_of_a_bag_that_is_stepped(ros_domain: int, tmp_path: Path) -> None:
    import pty

    from support.ros_processes import listening, process
    from support.world.frames import FRAMES, INFO

    from osmabench_ros.sequences.writer import BagWriter

    writer = BagWriter(tmp_path / 'bag', INFO)
    for frame in FRAMES:
        writer.write(frame)
    writer.close()
    keyboard, terminal = pty.openpty()
    words = ['-m', 'osmabench_ros.cli', 'replay', str(tmp_path / 'bag'), '--step']
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
