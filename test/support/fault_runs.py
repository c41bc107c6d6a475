"""Runs of the osmabench command that something happens to, and what may be left of them."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
import yaml

from osmabench_ros.base.files import MARKER
from support.waiting import wait_until

UNSHARE = ('unshare', '--map-root-user', '--mount')
COMMAND = (sys.executable, '-m', 'osmabench_ros.cli', 'run')


def start(tmp_path, config, out=None, command=COMMAND, **environment):
    """Start a run as a user does; its output is one stream."""
    file = tmp_path / 'config.yaml'
    file.write_text(yaml.safe_dump(config))
    return subprocess.Popen(
        [*command, str(file), '--out', str(out or tmp_path / 'runs')],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, **environment},
    )


def own_mounts():
    """Return what starts a command that may mount for itself, or skip the test that asked."""
    probe = [*UNSHARE, 'mount', '-t', 'tmpfs', 'tmpfs', '/mnt']
    if shutil.which('unshare') is None or subprocess.run(probe, capture_output=True).returncode:
        pytest.skip('nothing can be mounted here: unshare is missing or not allowed')
    return UNSHARE


def orphans(tmp_path):
    """Return processes that still work for a run below a folder.

    Programs have the folder in their command; nodes forked from the host write a log in it.
    """
    found = []
    for process in psutil.process_iter(['cmdline', 'status', 'open_files'], ad_value=()):
        line = ' '.join(process.info['cmdline'] or ())
        files = [file.path for file in process.info['open_files'] or ()]
        ended = process.info['status'] == psutil.STATUS_ZOMBIE or process.pid == os.getpid()
        if not ended and any(str(tmp_path) in text for text in (line, *files)):
            found.append(line)
    return found


def half_written(tmp_path):
    """Return files and folders that were not renamed to their final names."""
    # A file that disappears meanwhile is not an error for os.walk.
    return [
        Path(folder) / name
        for folder, folders, files in os.walk(tmp_path / 'runs')
        for name in (*folders, *files)
        if name.startswith('.') and name != MARKER
    ]


def failure(tmp_path, process, code=None, *, tidy=True):
    """Expect an error and a clean machine, and return the output in one line."""
    text, _ = process.communicate(timeout=880)
    assert process.returncode != 0, text
    assert code is None or process.returncode == code, text
    assert 'Traceback' not in text
    wait_until(lambda: orphans(tmp_path) == [])
    assert not tidy or half_written(tmp_path) == []
    return ' '.join(text.split())


def success(process, timeout_s=200.0):
    """Expect that all went well, and return the output."""
    text, _ = process.communicate(timeout=timeout_s)
    assert process.returncode == 0, text
    return text


def run_directory(tmp_path, mapper):
    """Return the folder of a run of the small configuration."""
    return tmp_path / 'runs' / 'small' / f'apartment.seed_3.baseline.{mapper}.opengl.3'


def mapper_says(tmp_path, mapper, word):
    """Return whether a mapper has printed a word."""
    log = run_directory(tmp_path, mapper) / 'logs' / 'mapper.log'
    return log.exists() and word in log.read_text()
