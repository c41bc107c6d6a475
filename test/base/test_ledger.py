"""A ledger may come from an untrusted source: nothing outside its folder is deleted by it."""

import json
import os
from pathlib import Path

import pytest

from osmabench_ros.base import scratch
from osmabench_ros.base.ledger import HEADER, LEDGER, Entry, Kind, Ledger, has_ledger
from osmabench_ros.errors import RunError


def ledger_of(root: Path, *lines: bytes) -> Ledger:
    root.mkdir(exist_ok=True)
    (root / LEDGER).write_bytes(HEADER + b''.join(line + b'\n' for line in lines))
    return Ledger(root)


def line(path: str, kind: str = 'f') -> bytes:
    return f'+{kind}{json.dumps(path)}'.encode()


@pytest.mark.parametrize(
    'path',
    [
        '../diary',
        '/etc/passwd',
        'a/../../diary',
        'a/./b',
        'a//b',
        '',
        '.',
        '..',
        '..\\diary',
        'a\0b',
        'a/',
        LEDGER,
        '\ud800',
    ],
)
def test_a_ledger_that_names_what_is_not_in_its_folder_is_refused(
    path: str, tmp_path: Path
) -> None:
    (tmp_path / 'diary').write_text('dear')
    ledger = ledger_of(tmp_path / 'root', line('x'), line(path), line(path, 'd'))
    (tmp_path / 'root' / 'x').write_text('')
    with pytest.raises(RunError, match='not in its folder'):
        ledger.remove()
    assert (tmp_path / 'diary').read_text() == 'dear'
    assert (tmp_path / 'root' / 'x').exists()


@pytest.mark.parametrize(
    'text', [b'+f"half', b'+f[[[[', b'+f', b'', b'+q"x"', b'\xff\xfe', b'+f{"a": "b"}', b'+f12"']
)
def test_a_line_that_was_cut_off_lists_nothing(text: bytes, tmp_path: Path) -> None:
    ledger = ledger_of(tmp_path, text)
    ledger.add([Entry('a')])
    assert ledger.entries() == {Entry('a')}
    assert ledger.has(Entry('a'))


def test_what_is_gone_is_no_longer_listed(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    ledger.add([Entry('a'), Entry('a/b')])
    ledger.forget([Entry('a')])
    assert (ledger.has(Entry('a')), ledger.has(Entry('a/b'))) == (False, True)
    assert not ledger.has(Entry('a/b', Kind.FOLDER))
    ledger.add([Entry('a')])
    assert ledger.entries() == {Entry('a'), Entry('a/b')}


def test_only_what_is_listed_is_deleted_and_only_as_what_it_is_listed(tmp_path: Path) -> None:
    root, mine = tmp_path / 'root', tmp_path / 'mine'
    mine.mkdir()
    (mine / 'diary').write_text('dear')
    (root / 'ours').mkdir(parents=True)
    (root / 'ours' / 'report').write_text('')
    (root / 'shared').mkdir()
    (root / 'shared' / 'notes').write_text('dear')
    (root / 'link').symlink_to(mine)
    (root / 'file').symlink_to(mine / 'diary')
    (root / 'made').symlink_to(mine / 'diary')
    (root / 'folder').mkdir()
    ledger = ledger_of(
        root,
        line('ours', 'd'),
        line('ours/report'),
        line('shared', 'd'),
        line('link', 'd'),
        line('link/diary'),
        line('file'),
        line('folder'),
        line('made', 'l'),
        line('missing/deep/file'),
        line('x' * 5000),
    )
    for _ in range(2):
        ledger.remove()
        assert (mine / 'diary').read_text() == 'dear'
        found = sorted(str(item.relative_to(root)) for item in root.rglob('*'))
        assert found == [LEDGER, 'file', 'folder', 'link', 'shared', 'shared/notes']


def test_nothing_that_is_mounted_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / 'mountinfo'
    place = os.path.realpath(tmp_path / 'results')
    mounts.write_text(f'36 22 0:21 /home {place}/home rw - ext4 x rw\n')
    monkeypatch.setattr(scratch, '_MOUNTS', mounts)
    (tmp_path / 'results' / 'home').mkdir(parents=True)
    (tmp_path / 'results' / 'home' / 'diary').write_text('dear')
    ledger_of(tmp_path / 'results', line('home', 'd'), line('home/diary')).remove()
    assert (tmp_path / 'results' / 'home' / 'diary').read_text() == 'dear'


def test_a_backup_by_hard_links_does_not_change_with_the_ledger(tmp_path: Path) -> None:
    ledger = Ledger.create(tmp_path)
    backup = tmp_path / 'backup'
    os.link(tmp_path / LEDGER, backup)
    ledger.add([Entry('a')])
    assert backup.read_bytes() == HEADER
    assert ledger.entries() == {Entry('a')}


def test_what_only_looks_like_a_ledger_is_none(tmp_path: Path) -> None:
    (tmp_path / 'real').write_bytes(HEADER)
    for name in ('text', 'link', 'folder', 'pipe'):
        (tmp_path / name).mkdir()
    (tmp_path / 'text' / LEDGER).write_text('my list')
    (tmp_path / 'link' / LEDGER).symlink_to(tmp_path / 'real')
    (tmp_path / 'folder' / LEDGER).mkdir()
    os.mkfifo(tmp_path / 'pipe' / LEDGER)
    assert not any(has_ledger(tmp_path / name) for name in ('text', 'link', 'folder', 'pipe'))
