import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
from support import limited_readers as readers

from osmabench_ros.base.limits.allowance import Allowance, limited_to
from osmabench_ros.base.limits.child import read_limited
from osmabench_ros.base.limits.child_main import landlock_version
from osmabench_ros.errors import LimitError, OsmabenchWarning, SceneError

SMALL = Allowance(memory_mib=200, seconds=0.5)
needs_landlock = pytest.mark.skipif(
    not landlock_version(), reason='the kernel of this machine has no Landlock'
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / 'input.bin'
    path.write_bytes(b'abc')
    return path


def test_arrays_and_plain_values_come_back(file: Path) -> None:
    found = read_limited(readers.doubled, file, factor=2)
    np.testing.assert_array_equal(found['values'], [194, 196, 198])
    np.testing.assert_array_equal(found['nested'][0]['one'], np.float32([1.5]))
    assert found['nested'][0]['one'].dtype == np.float32
    assert found['nested'][1:] == [None, 'x']
    assert found['empty'].shape == (0, 3)
    assert np.isnan(found['nan'])
    found['values'][0] = 7  # it is the caller's own
    assert file.read_bytes() == b'abc'


def test_nothing_stays_in_the_temporary_folder(
    file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / 'temporary'
    folder.mkdir()
    monkeypatch.setattr(tempfile, 'tempdir', str(folder))
    found = read_limited(readers.doubled, file)
    with pytest.raises(LimitError):
        read_limited(readers.crash, file)
    assert list(folder.iterdir()) == []
    assert found['values'][0] == 194


def test_one_child_serves_all_files(file: Path) -> None:
    assert read_limited(readers.process, file) == read_limited(readers.process, file)


def test_threads_share_the_child(file: Path) -> None:
    def answer(factor: int) -> list[int]:
        return read_limited(readers.doubled, file, factor=factor)['values'].tolist()

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(answer, (1, 2) * 4))
    assert answers == [[97, 98, 99], [194, 196, 198]] * 4


def test_starting_it_imports_no_heavy_library(file: Path) -> None:
    script = (
        'import sys; from pathlib import Path; from support import limited_readers as readers\n'
        'from osmabench_ros.base.limits.child import read_limited\n'
        'print(read_limited(readers.loaded_modules, Path(sys.argv[1])))'
    )
    printed = _run(script, file)
    assert 'limited_readers' in printed
    assert not any(f"'{name}'" in printed for name in ('torch', 'rclpy', 'open3d', 'trimesh'))


def test_it_has_no_keys(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = (
        'import sys; from pathlib import Path; from support import limited_readers as readers\n'
        'from osmabench_ros.base.limits.child import read_limited\n'
        'print(sorted(read_limited(readers.environment, Path(sys.argv[1]))))'
    )
    secrets = {'OPENAI_API_KEY': 'k', 'GEMINI_API_KEY': 'k', 'MY_TOKEN': 't'}
    printed = _run(script, file, env=os.environ | secrets)
    assert 'PATH' in printed
    assert not any(name in printed for name in secrets)


def test_limits_reach_the_reader(file: Path) -> None:
    with limited_to(Allowance(depth=7)):
        assert read_limited(readers.depth_limit, file) == 7


def test_warnings_are_passed_on(file: Path) -> None:
    with pytest.warns(OsmabenchWarning, match=r'input\.bin is odd'):
        read_limited(readers.warn, file)


def test_errors_of_readers_keep_their_kind_and_text(file: Path) -> None:
    with pytest.raises(SceneError, match=r'^input\.bin has no triangles$'):
        read_limited(readers.refuse, file)


@pytest.mark.parametrize(
    ('reader', 'arguments', 'text'),
    [
        (readers.spin, {}, 'over 1 s.*limit seconds'),
        (readers.allocate, {}, 'over 200 MiB.*limit memory_ratio'),
        (readers.return_much, {}, 'over 200 MiB.*limit memory_ratio'),
        (readers.write_much, {}, 'File too large'),
        (readers.crash, {}, 'SIGSEGV'),
        (readers.abort, {}, 'SIGABRT'),
        (readers.leave, {}, 'no result'),
        (readers.recurse, {}, 'RecursionError'),
        (readers.fail, {}, "KeyError: 'colour'"),
        (readers.return_objects, {}, 'a result holds object'),
        (readers.answer_garbage, {'values': '[' * 100_000}, 'no result'),
        (readers.answer_garbage, {'values': '{"result": 1}'}, 'no result'),
        *(
            (readers.answer_garbage, {'values': f'{{"warnings": [], "result": {text}}}'},
             'no result')
            for text in (
                '{"$array": ["<u1", [65], 0]}', '{"$array": ["<u1", [1], -1]}',
                '{"$array": ["|O", [1], 0]}', '{"$array": ["<u1", [-1, -1], 0]}',
                '{"$array": ["<u8", [1], 60]}', '{"$array": 1}', '{"$array": ["x" , [1], 0]}',
                '{"$array": ["<u1", [99999999999999999999, 0], 0]}',
            )
        ),
        (readers.fault_garbage, {'fault': '\x00'}, 'its reader failed'),
        (readers.fault_garbage, {'fault': '{"memory": 0, "kind": "Path", "module": "pathlib", '
                                          '"text": ""}'}, 'its reader failed'),
    ],
)  # fmt: skip
def test_what_breaks_a_reader_is_one_error(
    file: Path, reader: Any, arguments: dict[str, Any], text: str
) -> None:
    with limited_to(SMALL), pytest.raises(LimitError, match=f'^{file}: .*{text}'):
        read_limited(reader, file, **arguments)
    assert read_limited(readers.doubled, file)['values'][0] == 194


def test_a_reader_that_sleeps_is_ended_by_the_clock(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr('osmabench_ros.base.limits.child._WALL_S', 0.1)
    monkeypatch.setattr('osmabench_ros.base.limits.child._WALL_RATIO', 0.1)
    with limited_to(SMALL), pytest.raises(LimitError, match='over 0.15'):
        read_limited(readers.sleep, file)
    monkeypatch.undo()
    assert read_limited(readers.doubled, file)['values'][0] == 194


@pytest.mark.parametrize(
    'name', ['/dev/zero', '/proc/self/mem/x', '/nowhere', 'nul\0byte', 'x' * 5000]
)
def test_what_is_no_file_is_refused(name: str) -> None:
    with pytest.raises(LimitError):
        read_limited(readers.doubled, Path(name))


@needs_landlock
@pytest.mark.parametrize('reader', [readers.read, readers.write, readers.delete, readers.run])
def test_no_other_file_is_reached(file: Path, tmp_path: Path, reader: Any) -> None:
    other = tmp_path / 'other.txt'
    other.write_text('secret')
    with pytest.raises(LimitError, match='Permission'):
        read_limited(reader, file, other=str(other))
    assert other.read_text() == 'secret'
    # Not even by a link.
    (tmp_path / 'link').symlink_to(other)
    with pytest.raises(LimitError, match='Permission'):
        read_limited(readers.read, file, other=str(tmp_path / 'link'))


@needs_landlock
def test_the_folder_of_the_file_may_be_given(file: Path, tmp_path: Path) -> None:
    (tmp_path / 'texture.png').write_text('pixels')
    other = str(tmp_path / 'texture.png')
    assert read_limited(readers.read, file, folders=(tmp_path,), other=other) == 'pixels'


@pytest.mark.skipif(landlock_version() < 4, reason='Landlock of this kernel knows no network')
def test_the_network_is_out_of_reach(file: Path) -> None:
    with (
        socket.create_server(('127.0.0.1', 0)) as server,
        pytest.raises(LimitError, match='Permission'),
    ):
        read_limited(readers.connect, file, port=server.getsockname()[1])


def test_a_child_that_was_killed_is_started_anew(file: Path) -> None:
    child = psutil.Process(read_limited(readers.process, file))
    child.kill()
    _wait_for(lambda: child.status() == psutil.STATUS_ZOMBIE)
    assert read_limited(readers.doubled, file)['values'][0] == 194


@pytest.mark.parametrize('sent', [signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_its_parent(file: Path, tmp_path: Path, sent: signal.Signals) -> None:
    script = (
        'import sys, threading; from pathlib import Path\n'
        'from support import limited_readers as readers\n'
        'from osmabench_ros.base.limits.child import read_limited\n'
        'print(read_limited(readers.process, Path(sys.argv[1])), flush=True)\n'
        'read_limited(readers.sleep, Path(sys.argv[1]))\n'
    )
    temporary = tmp_path / 'temporary'
    temporary.mkdir()
    parent = subprocess.Popen(
        [sys.executable, '-c', script, str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {'PYTHONPATH': _paths(), 'TMPDIR': str(temporary)},
    )  # fmt: skip
    assert parent.stdout is not None
    child = psutil.Process(int(parent.stdout.readline()))
    _wait_for(lambda: len(child.children()) == 1)
    reading = child.children()[0]
    parent.send_signal(sent)
    parent.wait(120)
    psutil.wait_procs([child, reading], 120)
    assert not child.is_running()
    assert not reading.is_running()
    assert list(temporary.iterdir()) == []


def test_a_thread_that_ends_does_not_end_it(file: Path) -> None:
    script = (
        'import sys, threading; from pathlib import Path\n'
        'from support import limited_readers as readers\n'
        'from osmabench_ros.base.limits.child import read_limited\n'
        'file, found = Path(sys.argv[1]), []\n'
        'def ask(): found.append(read_limited(readers.process, file))\n'
        'thread = threading.Thread(target=ask); thread.start(); thread.join()\n'
        'ask(); print(found[0] == found[1])'
    )
    assert _run(script, file).strip() == 'True'


def _run(script: str, file: Path, env: Any = os.environ) -> str:
    return subprocess.run(
        [sys.executable, '-c', script, str(file)],
        env={**env, 'PYTHONPATH': _paths()}, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip


def _paths() -> str:
    return os.pathsep.join(path for path in sys.path if path)


def _wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
