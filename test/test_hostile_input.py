"""The benchmark of damaged files works, and sees what it is there to see."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / 'benchmarks'))

import hostile_input
from hostile_files import READERS, Reader
from hostile_mutations import mutate

SOUND = 'sound ' * 50
PLANTED = f"""
from pathlib import Path
from hostile_files import READERS, Reader

def mischief(folder):
    if (folder / 'file').read_bytes() != {SOUND.encode()!r}:
        {{0}}

READERS['planted'] = Reader('planted', mischief, mischief)
"""
MISCHIEF = {
    'traceback': 'raise KeyError("x")',
    'death': 'import os; os._exit(3)',
    'hang': 'while True: pass',
    'memory': "len(b'x' * (600 << 20))",
    'outside write': '(folder / ".." / "outside" / "made").write_text("x")',
    'outside read': '(folder / ".." / "outside" / "secret").read_text()',
    'written input': '(folder / "file").write_text("x")',
}
COLUMN = {
    'traceback': 'traceback',
    'death': 'traceback',
    'hang': 'over limits',
    'memory': 'over limits',
    'outside write': 'outside',
    'outside read': 'outside',
    'written input': 'outside',
}


@pytest.mark.parametrize('kind', MISCHIEF)
def test_planted_mischief_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    plugin = tmp_path / 'plugin.py'
    plugin.write_text(PLANTED.format(MISCHIEF[kind]))
    monkeypatch.setenv('HOSTILE_PLUGINS', str(plugin))

    def write(folder: Path) -> None:
        (folder / 'file').write_text(SOUND)

    monkeypatch.setitem(READERS, 'planted', Reader('planted', write, write))
    work = tmp_path / 'work'
    work.mkdir()
    watchdog_s = 2.0 if kind == 'hang' else 60.0
    counts, findings = hostile_input.run_reader('planted', 0, range(1), work, watchdog_s)
    assert counts[COLUMN[kind]] == 1
    assert [(item.kind, item.key) for item in findings] == [(COLUMN[kind], 'planted:0:0')]


@pytest.mark.parametrize('reader', ['map_archive', 'bbq', 'gazebo', 'usd', 'replica'])
def test_damaged_files_cause_nothing_but_errors(tmp_path: Path, reader: str) -> None:
    if reader == 'usd':
        pytest.importorskip('pxr')
    counts, findings = hostile_input.run_reader(reader, 1, range(8), tmp_path, 60.0)
    assert findings == []
    assert counts['refused'] > 0
    assert counts['refused'] + counts['accepted'] == 8


def test_a_seed_repeats_the_damage(tmp_path: Path) -> None:
    made = []
    for name, number in (('one', 3), ('two', 3), ('three', 4)):
        folder = tmp_path / name
        folder.mkdir()
        READERS['map_folder'].write(folder)
        done = mutate(folder, 'map_folder', 5, number)
        files = sorted(path for path in folder.rglob('*') if path.is_file())
        made.append((done, [path.read_bytes() for path in files]))
    assert made[0] == made[1]
    assert made[0] != made[2]
