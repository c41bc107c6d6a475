import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import psutil
import pytest
from support import fence_readers as readers
from support.programs import run_python
from support.waiting import wait_until

from osmabench_ros.base.fence import VARIABLE, parse_in_fence, read_in_fence
from osmabench_ros.errors import ConfigError, LimitError, OsmabenchWarning, SceneError


@pytest.fixture
def file(tmp_path):
    path = tmp_path / 'input.bin'
    path.write_bytes(b'abc')
    return path


def test_arrays_and_plain_values_come_back(file):
    found = read_in_fence(readers.double, file, factor=2)
    np.testing.assert_array_equal(found['values'], [194, 196, 198])
    np.testing.assert_array_equal(found['nested'][0][1], np.float32([1.5]))
    assert found['nested'][0][1].dtype == np.float32
    assert found['nested'][1:] == [None, ('x', b'y')]
    assert found['empty'].shape == (0, 3)
    np.testing.assert_array_equal(found['columns'], [[0, 1, 2], [3, 4, 5]])
    assert np.isnan(found['nan'])
    found['values'][0] = 7  # they are the caller's own


def test_content_is_read_as_a_file_is():
    assert parse_in_fence(readers.double, b'a', 'the message')['values'].tolist() == [194]
    with pytest.raises(LimitError, match='^the message '):
        parse_in_fence(readers.fail, b'a', 'the message')


def test_threads_share_one_server(file):
    with ThreadPoolExecutor(4) as pool:
        servers = set(pool.map(lambda _: read_in_fence(readers.name_server, file), range(8)))
    assert len(servers) == 1


def test_it_has_no_keys_and_no_heavy_library(file):
    script = (
        'import sys; from pathlib import Path; from support import fence_readers as readers\n'
        'from osmabench_ros.base.fence import read_in_fence\n'
        'for function in (readers.list_modules, readers.list_environment):\n'
        '    print(*read_in_fence(function, Path(sys.argv[1])))'
    )
    variables = {'OPENAI_API_KEY': 'k', 'MY_TOKEN': 't', 'PYTHONPATH': _paths()}
    printed = run_python('-c', script, file, variables=variables, check=True).stdout.split()
    assert {'support.fence_readers', 'PATH'} <= set(printed)
    assert not {'torch', 'rclpy', 'open3d', 'trimesh', 'OPENAI_API_KEY', 'MY_TOKEN'} & set(printed)


def test_errors_and_warnings_of_readers_come_through(file):
    with pytest.warns(OsmabenchWarning, match=r'input\.bin is odd'):
        read_in_fence(readers.warn, file)
    with pytest.raises(SceneError, match=r'^input\.bin has no triangles$'):
        read_in_fence(readers.refuse, file)


@pytest.mark.parametrize(
    ('reader', 'text'),
    [
        (readers.spin, 'takes more than 1 s'),
        (readers.allocate, 'more than 5 MiB of memory'),
        (readers.return_much, 'more than 5 MiB of memory'),
        (readers.return_shared, 'File too large|of memory'),
        (readers.return_cycle, 'cyclic'),
        (readers.return_code, 'a result holds builtins.print'),
        (readers.write_much, 'File too large'),
        (readers.crash, 'signal 11'),
        (readers.leave, 'no result'),
        (readers.recurse, 'RecursionError'),
        (readers.fail, "KeyError: 'colour'"),
    ],
)
def test_a_file_that_breaks_its_reader_is_one_error_with_the_remedy(
    file, monkeypatch, reader, text
):
    monkeypatch.setenv(VARIABLE, '0.01')
    with pytest.raises(LimitError, match=f'^{file} .*({text}).*{VARIABLE}=0.04'):
        read_in_fence(reader, file)
    monkeypatch.delenv(VARIABLE)
    assert read_in_fence(readers.double, file)['values'][0] == 194


def test_a_reader_that_sleeps_is_ended_by_the_clock(file, monkeypatch):
    monkeypatch.setattr('osmabench_ros.base.fence._WALL_S', 0.1)
    monkeypatch.setattr('osmabench_ros.base.fence._WALL_RATIO', 0.0)
    with pytest.raises(LimitError, match=r'more than 0\.1 s'):
        read_in_fence(readers.sleep, file)
    monkeypatch.undo()
    assert read_in_fence(readers.double, file)['values'][0] == 194


@pytest.mark.parametrize('factor', ['0', '-1', 'inf', 'much', 'seconds=600'])
def test_other_factors_are_refused(file, monkeypatch, factor):
    monkeypatch.setenv(VARIABLE, factor)
    with pytest.raises(ConfigError, match=VARIABLE):
        read_in_fence(readers.double, file)


@pytest.mark.parametrize(('name', 'reason'), [
    ('/dev/zero', 'is not a regular file'), ('/nowhere', 'cannot be read: No such file'),
    ('nul\0byte', 'cannot be read: embedded null'), ('x' * 5000, 'cannot be read: File name'),
])  # fmt: skip
def test_other_kinds_of_files_are_refused(name, reason):
    with pytest.raises(LimitError, match=reason):
        read_in_fence(readers.double, Path(name))


def test_a_server_that_was_killed_is_started_again(file):
    server = psutil.Process(read_in_fence(readers.name_server, file))
    server.kill()
    wait_until(lambda: server.status() == psutil.STATUS_ZOMBIE)
    assert read_in_fence(readers.double, file)['values'][0] == 194


@pytest.mark.parametrize('sent', [signal.SIGKILL, signal.SIGINT])
def test_it_ends_with_its_parent(file, sent):
    script = (
        'import sys; from pathlib import Path; from support import fence_readers as readers\n'
        'from osmabench_ros.base.fence import read_in_fence\n'
        'print(read_in_fence(readers.name_server, Path(sys.argv[1])), flush=True)\n'
        'read_in_fence(readers.sleep, Path(sys.argv[1]))\n'
    )
    parent = subprocess.Popen(
        [sys.executable, '-c', script, str(file)],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        env=os.environ | {'PYTHONPATH': _paths()},
    )  # fmt: skip
    server = psutil.Process(int(parent.stdout.readline()))
    wait_until(lambda: len(server.children()) == 1)
    reading = server.children()[0]
    parent.send_signal(sent)
    parent.wait(120)
    psutil.wait_procs([server, reading], 120)
    assert not server.is_running()
    assert not reading.is_running()


def _paths():
    return os.pathsep.join(path for path in sys.path if path)
