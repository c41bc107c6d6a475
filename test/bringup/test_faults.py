"""Everything that can go wrong in a live run, over real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml
from small_config import foreign, repeatable, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

SLEEP = 'import time; time.sleep(1000)'
COMMAND = (sys.executable, '-m', 'osmabench_ros.cli', 'run')


def start(tmp_path: Path, config: dict[str, Any], out: Path | None = None) -> subprocess.Popen:
    file = tmp_path / 'config.yaml'
    file.write_text(yaml.safe_dump(config))
    return subprocess.Popen(
        [*COMMAND, str(file), '--out', str(out or tmp_path / 'runs')],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def orphans(tmp_path: Path) -> list[str]:
    """Return processes that still work for a run below a folder."""
    found = []
    for process in psutil.process_iter(['cmdline', 'status']):
        line = ' '.join(process.info['cmdline'] or [])
        if str(tmp_path) in line and process.info['status'] != psutil.STATUS_ZOMBIE:
            found.append(line)
    return found


def half_written(tmp_path: Path) -> list[Path]:
    return [
        path
        for path in (tmp_path / 'runs').rglob('*')
        if path.name.startswith('.') or path.suffix == '.tmp'
    ]


def failure(tmp_path: Path, config: dict[str, Any], out: Path | None = None) -> str:
    """Run to the end, expect an error and a clean machine, and return what was said."""
    process = start(tmp_path, config, out)
    text, _ = process.communicate(timeout=200)
    assert process.returncode not in (0, None), text
    assert 'Traceback' not in text
    assert orphans(tmp_path) == []
    assert half_written(tmp_path) == []
    return text


def test_a_folder_that_cannot_be_written_to_is_told(tmp_path: Path) -> None:
    blocker = tmp_path / 'file'
    blocker.write_text('not a folder')
    text = failure(tmp_path, small_config(), out=blocker)
    assert str(blocker) in text.replace('\n', '')


@pytest.mark.parametrize(
    ('mischief', 'words'),
    [
        ('die', 'node "mapper" ended before the run: was killed by SIGABRT'),
        ('hang', 'no acknowledgement of frame 2 from mapper'),
        ('never_acknowledge', 'no acknowledgement of frame 2 from mapper'),
        ('wrong_labels', 'label ids [40000] are not in label set'),
        ('nan', 'NaN'),
        (
            'wrong_qos',
            'QoS of publisher simulator_bridge (reliable, volatile) and subscriber mapper',
        ),
    ],
)
def test_a_mapper_that_misbehaves_is_told_by_name(
    tmp_path: Path, mischief: str, words: str
) -> None:
    text = failure(tmp_path, small_config(mappers=[foreign(mischief)]))
    assert words in ' '.join(text.split())
    assert (tmp_path / 'runs' / 'small' / 'report.json').exists()


def test_a_map_that_late_joiners_would_miss_is_refused(tmp_path: Path) -> None:
    text = failure(tmp_path, small_config(mappers=[foreign('volatile_map')]))
    assert 'topic "semantic_map": QoS of publisher mapper' in ' '.join(text.split())


def test_a_mapper_may_leave_once_its_map_is_out(tmp_path: Path) -> None:
    process = start(tmp_path, small_config(mappers=[foreign('leave')]))
    text, _ = process.communicate(timeout=200)
    assert process.returncode == 0, text


@pytest.mark.parametrize('name', ['shared', 'apartment.seed_3.baseline.oracle.opengl.3/logs'])
def test_a_blocked_folder_fails_the_run_and_not_the_matrix(tmp_path: Path, name: str) -> None:
    file = tmp_path / 'config.yaml'
    file.write_text(yaml.safe_dump(small_config()))
    blocked = tmp_path / 'runs' / 'small' / name
    blocked.parent.mkdir(parents=True)
    blocked.write_text('not a folder')
    text = failure(tmp_path, small_config())
    assert name.split('/')[-1] in text
    assert (tmp_path / 'runs' / 'small' / 'report.json').exists()


def test_a_mapper_that_never_comes_is_told(tmp_path: Path) -> None:
    config = small_config(
        mappers=[{'name': 'absent', 'command': [sys.executable, '-c', SLEEP]}],
        pacing={'match_timeout_s': 3.0},
    )
    assert 'node "mapper" is not running' in ' '.join(failure(tmp_path, config).split())


@pytest.fixture(scope='module')
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What a run leaves that goes through at once."""
    folder = tmp_path_factory.mktemp('uninterrupted')
    text = success(folder, interruptible())
    assert 'passed' in text
    return repeatable(folder / 'runs' / 'small')


def interruptible() -> dict[str, Any]:
    return small_config(mappers=[foreign('hang_if_told')], pacing={'ack_timeout_s': 300.0})


def success(tmp_path: Path, config: dict[str, Any]) -> str:
    process = start(tmp_path, config)
    text, _ = process.communicate(timeout=200)
    assert process.returncode == 0, text
    return text


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_leaves_nothing_half_written_and_the_run_goes_on_afterwards(
    tmp_path: Path,
    number: signal.Signals,
    uninterrupted: dict[str, bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv('TEST_HANG', '1')
    process = start(tmp_path, interruptible())
    log = mapper_log(tmp_path, 'hang_if_told')
    wait_for(lambda: log.exists() and 'hanging' in log.read_text())
    os.kill(process.pid, number)
    text, _ = process.communicate(timeout=60)
    assert process.returncode == 128 + number, text
    wait_for(lambda: orphans(tmp_path) == [])
    assert half_written(tmp_path) == []
    monkeypatch.delenv('TEST_HANG')
    success(tmp_path, interruptible())
    assert repeatable(tmp_path / 'runs' / 'small') == uninterrupted


def test_a_preparation_that_was_killed_is_done_again(
    tmp_path: Path, uninterrupted: dict[str, bytes]
) -> None:
    process = start(tmp_path, interruptible())
    assert process.stdout is not None
    for line in process.stdout:
        if 'the path sees' in line:
            break
    process.kill()
    process.communicate(timeout=60)
    root = tmp_path / 'runs' / 'small'
    assert (root / 'manifest.json').exists()
    assert not (root / 'shared' / 'apartment.seed_3.3').exists()
    # As a process leaves it that is killed while it writes.
    (root / 'shared' / '.apartment.seed_3.3.x').mkdir(parents=True, exist_ok=True)
    success(tmp_path, interruptible())
    assert repeatable(root) == uninterrupted
    assert half_written(tmp_path) == []


def test_a_second_runner_on_the_same_folder_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv('TEST_HANG', '1')
    first = start(tmp_path, interruptible())
    log = mapper_log(tmp_path, 'hang_if_told')
    wait_for(lambda: log.exists() and 'hanging' in log.read_text())
    second = start(tmp_path, interruptible())
    text, _ = second.communicate(timeout=60)
    assert second.returncode == 1
    assert f'{tmp_path}/runs/small is in use by another osmabench' in text.replace('\n', '')
    assert first.poll() is None
    os.kill(first.pid, signal.SIGINT)
    first.communicate(timeout=60)
    wait_for(lambda: orphans(tmp_path) == [])


def test_a_killed_runner_leaves_no_orphan(tmp_path: Path) -> None:
    process = start(tmp_path, small_config(mappers=[foreign('hang')]))
    log = mapper_log(tmp_path)
    wait_for(lambda: log.exists() and 'hanging' in log.read_text())
    process.kill()
    process.communicate(timeout=60)
    wait_for(lambda: orphans(tmp_path) == [])


def mapper_log(tmp_path: Path, mischief: str = 'hang') -> Path:
    run = f'apartment.seed_3.baseline.foreign_{mischief}.opengl.3'
    return tmp_path / 'runs' / 'small' / run / 'logs' / 'mapper.log'


def wait_for(condition: Any, timeout_s: float = 60.0) -> None:
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, 'timed out'
        time.sleep(0.1)
