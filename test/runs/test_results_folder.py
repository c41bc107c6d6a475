import errno
import fcntl
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.world.runs import matrix_config

from osmabench_ros.base.files import read_json, write_json
from osmabench_ros.base.owned_folder import MARKER, PREVIOUS, claim_folder
from osmabench_ros.errors import OsmabenchWarning, RunError
from osmabench_ros.runs.results.results_folder import MANIFEST, claim, held, undisturbed

IN_USE = r'new/own is in use by another osmabench'
INPUTS = {'condition camera': 'a', 'scene set.home.3': 'b', 'version of osmabench_ros': '1'}
HOLD = """
import sys, pathlib
from osmabench_ros.runs.results.results_folder import held
with held(pathlib.Path(sys.argv[1])):
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


def test_a_folder_is_held_by_one_process_until_it_ends_even_by_a_kill(tmp_path: Path) -> None:
    root = tmp_path / 'new' / 'own'
    holder = subprocess.Popen(
        [sys.executable, '-c', HOLD, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == 'held\n'
    for path in (root, root / 'run' / 'vqa', root / 'run'):
        with pytest.raises(RunError, match=IN_USE), undisturbed(path):
            pass
    with pytest.raises(RunError, match=IN_USE), held(root):
        pass
    with undisturbed(root.parent / 'elsewhere'):
        pass
    holder.kill()
    holder.communicate()
    with held(root):
        pass


def test_the_same_again_goes_on(tmp_path: Path) -> None:
    claim(tmp_path, matrix_config(), INPUTS)
    (tmp_path / 'run').mkdir()
    (tmp_path / 'run' / 'report.json').write_text('{}')
    claim(tmp_path, matrix_config(sweep={'speeds': [1]}), INPUTS)
    assert (tmp_path / 'run' / 'report.json').exists()
    assert read_json(tmp_path / MANIFEST)['inputs'] == INPUTS


@pytest.mark.parametrize(
    ('inputs', 'named'),
    [
        ({**INPUTS, 'condition camera': 'z'}, 'changed since: condition camera. Start over'),
        (
            {**INPUTS, 'version of osmabench_ros': '2', 'scene set.home.3': 'y'},
            'changed since: scene set.home.3; version of osmabench_ros. Start',
        ),
        ({**INPUTS, 'mapper mine: m.py': 'c'}, 'changed since: mapper mine: m.py. Start'),
        (
            {str(i): '' for i in range(3)},
            'changed since: 0; 1; 2 and 3 more. Start',
        ),
    ],
)
def test_inputs_that_changed_are_named(tmp_path: Path, inputs: dict[str, str], named: str) -> None:
    claim(tmp_path, matrix_config(), INPUTS)
    with pytest.raises(RunError) as caught:
        claim(tmp_path, matrix_config(), inputs)
    assert named in str(caught.value)
    assert '--fresh' in str(caught.value)


def test_results_that_do_not_say_what_they_come_from_are_not_gone_on_with(
    tmp_path: Path,
) -> None:
    claim(tmp_path, matrix_config(), INPUTS)
    data = read_json(tmp_path / MANIFEST)
    del data['inputs']
    write_json(tmp_path / MANIFEST, data)
    with pytest.raises(RunError, match='earlier version.*--fresh'):
        claim(tmp_path, matrix_config(), INPUTS)


def test_another_configuration_is_refused_and_fresh_starts_over(tmp_path: Path) -> None:
    claim(tmp_path, matrix_config(), INPUTS)
    write_json(tmp_path / 'run' / 'report.json', {})
    other = matrix_config(camera={'width': 320})
    with pytest.raises(RunError, match='another configuration'):
        claim(tmp_path, other, INPUTS)
    (tmp_path / 'notes.txt').write_text('mine')
    with pytest.warns(OsmabenchWarning, match='earlier results .* were moved to .*/previous/'):
        claim(tmp_path, other, INPUTS, fresh=True)
    assert sorted(item.name for item in tmp_path.iterdir()) == [MARKER, MANIFEST, PREVIOUS]
    [aside] = (tmp_path / PREVIOUS).glob('2*')
    found = {str(item.relative_to(aside)) for item in aside.rglob('*') if item.is_file()}
    assert found == {MARKER, MANIFEST, 'notes.txt', 'run/report.json', f'run/{MARKER}'}


def test_what_a_killed_process_left_half_written_is_removed(tmp_path: Path) -> None:
    claim(tmp_path, matrix_config(), INPUTS)
    killed = subprocess.run([sys.executable, '-c', KILLED, str(tmp_path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len([*tmp_path.glob('.*'), *tmp_path.glob('run/.*')]) == 4
    with held(tmp_path):
        claim(tmp_path, matrix_config(), INPUTS)
    found = sorted(str(item.relative_to(tmp_path)) for item in tmp_path.rglob('*'))
    assert found == [MARKER, MANIFEST, 'run', f'run/{MARKER}']


def test_a_file_system_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_handle: int, _operation: int) -> None:
        raise OSError(errno.ENOLCK, 'No locks available')

    claim_folder(tmp_path / 'own')
    monkeypatch.setattr(fcntl, 'flock', refuse)
    words = 'own cannot be locked .No locks available.* see to it that no other'
    with pytest.warns(OsmabenchWarning, match=words), held(tmp_path / 'own'):
        pass
