"""Scratch folders are removed if, and only if, their mark proves that they are ours."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from osmabench_ros.base import scratch
from osmabench_ros.base.scratch import CONTENT, MARK, PREFIX, remove_leftovers, scratch_in

KILLED = """
import os, pathlib, signal, sys
from osmabench_ros.base.scratch import scratch_in
with scratch_in(pathlib.Path(sys.argv[1])) as folder:
    (folder / 'half').write_text('x')
    os.symlink(sys.argv[2], folder / 'link')
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def leftover(tmp_path: Path) -> Path:
    """Return what a killed process left; it holds a link to a folder of the user's."""
    (tmp_path / 'mine').mkdir()
    (tmp_path / 'mine' / 'diary').write_text('dear')
    folder = tmp_path / 'out'
    folder.mkdir()
    command = [sys.executable, '-c', KILLED, str(folder), str(tmp_path / 'mine')]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    [left] = folder.iterdir()
    return left


def test_it_is_empty_and_goes_with_what_is_in_it(tmp_path: Path) -> None:
    with scratch_in(tmp_path) as folder:
        assert list(folder.iterdir()) == []
        (folder / 'half').write_text('')
    assert list(tmp_path.iterdir()) == []


def test_one_in_use_stays(tmp_path: Path) -> None:
    with scratch_in(tmp_path) as folder:
        assert remove_leftovers([tmp_path]) == []
        assert folder.is_dir()


def test_what_a_killed_process_left_is_removed_and_no_link_followed(
    leftover: Path, tmp_path: Path
) -> None:
    assert remove_leftovers([leftover.parent]) == []
    assert not leftover.exists()
    assert (tmp_path / 'mine' / 'diary').read_text() == 'dear'


def copied(leftover: Path) -> Path:
    copy = leftover.parent.parent / 'copy' / leftover.name
    return Path(shutil.copytree(leftover, copy, symlinks=True))


def renamed(leftover: Path) -> Path:
    return leftover.rename(leftover.with_name(f'{PREFIX}renamed'))


def linked(leftover: Path) -> Path:
    moved = leftover.rename(leftover.parent.parent / leftover.name)
    leftover.symlink_to(moved)
    return leftover


def with_linked_mark(leftover: Path) -> Path:
    mark = (leftover / MARK).rename(leftover.parent.parent / MARK)
    (leftover / MARK).symlink_to(mark)
    return leftover


def with_a_foreign_file(leftover: Path) -> Path:
    (leftover / 'diary').write_text('dear')
    return leftover


def without_mark(leftover: Path) -> Path:
    (leftover / MARK).unlink()
    return leftover


def with_pipe_as_mark(leftover: Path) -> Path:
    (leftover / MARK).unlink()
    os.mkfifo(leftover / MARK)
    return leftover


@pytest.mark.parametrize(
    'change',
    [
        copied,
        renamed,
        linked,
        with_linked_mark,
        with_a_foreign_file,
        without_mark,
        with_pipe_as_mark,
    ],
)
def test_what_has_no_proof_stays_and_is_named(change, leftover: Path) -> None:
    changed = change(leftover)
    assert changed in remove_leftovers([changed.parent])
    assert (changed / CONTENT / 'half').read_text() == 'x'


def test_nothing_that_is_mounted_in_it_is_deleted(
    leftover: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    mounts = tmp_path / 'mountinfo'
    place = os.path.realpath(leftover / CONTENT).replace(' ', r'\040')
    mounts.write_text(f'22 1 0:21 / / rw - ext4 x rw\n36 22 0:21 /home {place} rw - ext4 x rw\n')
    monkeypatch.setattr(scratch, '_MOUNTS', mounts)
    assert remove_leftovers([leftover.parent]) == [leftover]
    assert (leftover / CONTENT / 'half').exists()
