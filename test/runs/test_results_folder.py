import errno
import fcntl
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest

from osmabench_ros.base.files import MARKER, claim_folder
from osmabench_ros.errors import OsmabenchWarning, RunError
from osmabench_ros.runs.run_manifest import lock_folder, lock_results

IN_USE = r'new/own is in use by another osmabench'
HOLD = """
import sys, pathlib
from osmabench_ros.runs.run_manifest import lock_folder
with lock_folder(pathlib.Path(sys.argv[1])):
    print('held', flush=True)
    sys.stdin.read()
"""

KILLED = """
import os, pathlib, signal, sys
from osmabench_ros.base.files import atomic_directory, atomic_write
root = pathlib.Path(sys.argv[1])
with atomic_directory(root / 'shared') as folder, atomic_write(root / 'run' / 'x.json') as file:
    (folder / 'half').write_text('')
    file.write_text('')
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_folder_is_held_by_one_process_until_it_ends_even_by_a_kill(tmp_path):
    root = tmp_path / 'new' / 'own'
    holder = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout.readline() == 'held\n'
    for path in (root, root / 'run' / 'vqa', root / 'run'):
        with pytest.raises(RunError, match=IN_USE), lock_results(path):
            pass
    with pytest.raises(RunError, match=IN_USE), lock_folder(root):
        pass
    with lock_results(root.parent / 'elsewhere'):
        pass
    holder.kill()
    holder.communicate()
    with lock_folder(root):
        pass


def test_what_a_killed_process_left_half_written_is_removed(tmp_path):
    claim_folder(tmp_path)
    killed = subprocess.run([sys.executable, '-c', KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len([*tmp_path.glob('.*'), *tmp_path.glob('run/.*')]) == 4
    with lock_folder(tmp_path):
        pass
    found = sorted(str(item.relative_to(tmp_path)) for item in tmp_path.rglob('*'))
    assert found == [MARKER, 'run', f'run/{MARKER}']


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch):
    claim_folder(tmp_path / 'own')
    refused = OSError(errno.ENOLCK, 'No locks available')
    monkeypatch.setattr(fcntl, 'flock', Mock(side_effect=refused))
    words = 'own cannot be locked .No locks available.* see to it that no other'
    with pytest.warns(OsmabenchWarning, match=words), lock_folder(tmp_path / 'own'):
        pass
