"""Files and folders of results, also with files of a user among them."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from unittest.mock import Mock

import pytest
from support.users_files import fill, lost, snapshot

from osmabench_ros.base import files
from osmabench_ros.base.files import DRAFT_PREFIX, MARKER, PREVIOUS, Existing, write_text
from osmabench_ros.errors import OsmabenchWarning, RunError

MOVED = pytest.mark.filterwarnings('ignore:earlier results:osmabench_ros.errors.OsmabenchWarning')

KILLED = """
import os, pathlib, signal, sys
from osmabench_ros.base.files import draft_in
with draft_in(pathlib.Path(sys.argv[1])) as folder:
    (folder / 'half').write_text('x')
    os.symlink(sys.argv[2], folder / 'link')
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def elsewhere(tmp_path):
    return tmp_path / 'elsewhere'


@pytest.fixture
def users(tmp_path, elsewhere):
    """Return a folder of a user."""
    fill(tmp_path / 'users', elsewhere)
    return tmp_path / 'users'


@pytest.fixture
def ours(tmp_path):
    """Return a folder of results with a map and a report."""
    root = tmp_path / 'ours'
    files.claim_folder(root)
    write_text(root / 'report.json', '{}')
    with files.atomic_directory(root / 'run' / 'map') as draft:
        (draft / 'dense').mkdir()
        (draft / 'dense' / 'points.npy').write_text('1')
        (draft / 'map.json').write_text('2')
    return root


def names_in(folder):
    """Return the paths of all files in a folder but our markers."""
    found = (item for item in folder.rglob('*') if item.is_file() and item.name != MARKER)
    return sorted(str(item.relative_to(folder)) for item in found)


def test_json_comes_back_in_one_order_and_an_error_leaves_the_old_file(ours, monkeypatch):
    path = ours / 'deep' / 'x.json'
    files.write_json(path, {'b': [1.5, None], 'a': 'é'})
    first = path.read_bytes()
    assert files.read_json(path) == {'a': 'é', 'b': [1.5, None]}
    files.write_json(path, {'a': 'é', 'b': [1.5, None]})
    assert path.read_bytes() == first
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(ValueError, match='not JSON compliant'):
        files.write_json(path, float('nan'))

    full = OSError(28, 'No space left on device')
    monkeypatch.setattr(os, 'replace', Mock(side_effect=full))
    with pytest.raises(RunError, match=r'cannot write .*x\.json: No space left on device'):
        write_text(path, 'new')
    assert path.read_bytes() == first
    assert names_in(path.parent) == ['x.json']
    path.write_bytes(b'\xff\xfe')
    with pytest.raises(RunError, match=r'x\.json'):
        files.read_json(path)


def test_the_digest_depends_on_names_and_bytes_but_no_marker(tmp_path):
    def digest(name, texts):
        for file, text in texts.items():
            (tmp_path / name / file).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name / file).write_text(text)
        return files.sha256_of(tmp_path / name)

    first = digest('a', {'x': '1', 'deep/y': '2', MARKER: ''})
    assert digest('b', {'deep/y': '2', 'x': '1'}) == first
    for name, texts in (
        ('c', {'x': '1', 'deep/y': '3'}), ('d', {'x': '1', 'deep/z': '2'}),
        ('e', {'x': '1', 'y': '2'}),
    ):  # fmt: skip
        assert digest(name, texts) != first
    assert files.sha256_of(tmp_path / 'a' / 'x') != files.sha256_of(tmp_path / 'a' / 'deep' / 'y')


def link_to(target):
    def make(users):
        users.with_name('link').symlink_to(users / target)
        return users.with_name('link')

    return make


def make_pipe(users):
    os.mkfifo(users.with_name('pipe'))
    return users.with_name('pipe')


@pytest.mark.parametrize(
    'place',
    [
        lambda users: users,
        lambda users: users / 'notes.txt',
        lambda users: users / 'notes.txt' / 'deeper',
        lambda users: users / 'src' / '..',
        lambda users: users / ('a' * 5000),
        lambda users: users / ('a/' * 3000),
        link_to('.'),
        link_to('empty'),
        link_to('../link'),
        make_pipe,
    ],
)
def test_a_folder_that_is_not_ours_is_refused_and_untouched(place, users, tmp_path):
    path = place(users)
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match='another --out') as caught:
        files.claim_folder(path)
    assert len(str(caught.value)) < 1000
    for existing in Existing:
        with (
            pytest.raises(RunError, match='another --out'),
            files.atomic_directory(path, existing),
        ):
            raise AssertionError('minutes are spent')
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize('name', ['notes.txt', 'diary', 'nowhere', 'empty', 'photos', 'hard_link'])
def test_a_file_that_is_not_ours_is_replaced_only_if_asked_and_never_through_a_link(
    name, users, elsewhere
):
    before = snapshot(users, elsewhere)
    with pytest.raises(RunError, match='another --out'):
        write_text(users / name, 'new')
    assert snapshot(users, elsewhere) == before
    if name in ('notes.txt', 'hard_link'):
        with files.atomic_write(users / name, overwrite=True) as draft:
            draft.write_text('new')
        assert lost(before, users, elsewhere) == [users / name]
    else:
        refused = pytest.raises(RunError, match=f'{name} is (a link|not a file)')
        with refused, files.atomic_write(users / name, overwrite=True):
            raise AssertionError('minutes are spent')
        assert snapshot(users, elsewhere) == before


def test_a_new_and_an_empty_folder_are_ours_also_after_they_are_moved(tmp_path):
    (tmp_path / 'empty').mkdir()
    for name in ('empty', 'new/deep'):
        for _ in range(2):
            files.claim_folder(tmp_path / name)
        write_text(tmp_path / name / 'run' / 'x', '')
    (tmp_path / 'new' / 'deep').rename(tmp_path / 'moved')
    write_text(tmp_path / 'moved' / 'run' / 'x', 'again')
    files.claim_folder(tmp_path / 'moved' / 'run')
    assert files.find_root(tmp_path / 'moved' / 'run' / 'y' / 'z') == tmp_path / 'moved'
    assert files.find_root(tmp_path / 'new') is None
    assert not files.is_ours(tmp_path / 'new')


@MOVED
def test_a_users_files_in_a_folder_of_results_outlive_everything(ours, elsewhere):
    made = {*snapshot(ours)}
    target = ours / 'run' / 'map'
    fill(ours, elsewhere)
    (target / '.keep').write_text('mine')
    before = {path: was for path, was in snapshot(ours, elsewhere).items() if path not in made}
    files.claim_folder(ours)
    write_text(ours / 'report.json', 'new')
    files.discard(ours / 'report.json')
    with files.atomic_directory(target, Existing.MERGE) as draft:
        (draft / 'map.json').write_text('3')
    files.remove_drafts(ours, below=True)
    assert lost(before, ours, elsewhere) == []
    with pytest.raises(RunError, match='src is not empty'):
        files.claim_folder(ours / 'src')
    with pytest.raises(RunError, match='map exists'), files.atomic_directory(target):
        raise AssertionError('minutes are spent')
    for path in (ours / 'src', ours / 'missing', ours / 'empty'):
        files.discard(path)
    assert lost(before, ours, elsewhere) == []
    files.claim_folder(ours / 'old')
    files.discard(ours / 'old')
    assert not (ours / 'old').exists()


def test_everything_is_moved_aside_and_stays_there_byte_for_byte(ours, elsewhere):
    fill(ours, elsewhere)
    before = snapshot(ours)
    with pytest.warns(OsmabenchWarning, match=f'earlier results of {ours} were moved to .*'):
        files.move_aside(ours)
    [aside] = (ours / PREVIOUS).glob('2*')
    write_text(ours / 'new', '')
    with pytest.warns(OsmabenchWarning):
        files.move_aside(ours)
    after = {path.relative_to(aside): was for path, was in snapshot(aside).items()}
    assert after == {path.relative_to(ours): was for path, was in before.items()}
    assert sorted(item.name for item in ours.iterdir()) == [MARKER, PREVIOUS]
    files.move_aside(ours)
    assert len([*(ours / PREVIOUS).glob('2*')]) == 2


@pytest.mark.parametrize('name', ['report.json', 'run', 'run/map', 'run/map/dense'])
def test_a_link_where_a_result_is_written_is_refused(name, ours, users, elsewhere):
    (ours / name).rename(users / 'moved')
    (ours / name).symlink_to(users / 'moved')
    before = snapshot(ours, users, elsewhere)
    acts = [
        lambda path: write_text(path, ''), lambda path: write_text(path / 'x', ''),
        files.claim_folder, files.make_folder, files.discard,
    ]  # fmt: skip
    for act in acts:
        with pytest.raises(RunError, match=f'{name} is a link'):
            act(ours / name)
    refused = pytest.raises(RunError, match=f'{name} blocks a result')
    with refused, files.atomic_directory(ours, Existing.MERGE) as draft:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).write_text('')
    assert snapshot(ours, users, elsewhere) == before


def test_links_above_a_folder_of_results_and_relative_paths_are_fine(ours, tmp_path, monkeypatch):
    (tmp_path / 'way').symlink_to(tmp_path)
    write_text(tmp_path / 'way' / 'ours' / 'run' / '..' / 'x', '')
    # The system follows a link before "..".
    (tmp_path / 'deep').symlink_to(ours / 'run' / 'map')
    write_text(tmp_path / 'deep' / '..' / 'z', '')
    monkeypatch.chdir(ours / 'run')
    write_text(Path('y'), '')
    files.claim_folder(Path('../z'))
    assert names_in(ours) == ['report.json', 'run/map/dense/points.npy', 'run/map/map.json',
                              'run/y', 'run/z', 'x']  # fmt: skip
    assert files.is_ours(ours / 'z')


@MOVED
@pytest.mark.parametrize('existing', [Existing.MERGE, Existing.MOVE_ASIDE])
@pytest.mark.parametrize('moment', range(3))
def test_a_folder_whose_writing_was_cut_off_lost_nothing_and_is_written_again(
    existing, moment, ours, monkeypatch
):
    target = ours / 'run' / 'map'
    (target / 'mine').write_text('mine')

    def write():
        with files.atomic_directory(target, existing) as draft:
            (draft / 'deep').mkdir()
            (draft / 'deep' / 'new').write_text('new')
            (draft / 'map.json').write_text('new')

    calls, original = iter(range(1000)), os.replace

    def strike(*args):
        if next(calls) == moment:
            raise KeyboardInterrupt
        original(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(files.os, 'replace', strike)
        with contextlib.suppress(KeyboardInterrupt):
            write()
    assert [path.read_text() for path in ours.rglob('mine')] == ['mine']
    write()
    [mine] = ours.rglob('mine')
    assert (mine.read_text(), mine.parent == target) == ('mine', existing is Existing.MERGE)
    assert (target / 'deep' / 'new').read_text() == 'new'
    assert (target / 'dense').exists() == (existing is Existing.MERGE)
    assert not [*ours.rglob(f'{DRAFT_PREFIX}*')]


def test_what_a_killed_process_left_goes_with_the_next_and_no_link_is_followed(
    ours, users, elsewhere
):
    for folder in (ours, ours / 'run', users / 'src'):
        words = [sys.executable, '-c', KILLED, str(folder), str(users)]
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    [in_users] = (users / 'src').glob(f'{DRAFT_PREFIX}*')
    in_users.rename(ours / 'run' / f'{DRAFT_PREFIX}renamed')
    (ours / f'{DRAFT_PREFIX}{"0" * 16}').symlink_to(users)
    before = snapshot(users, elsewhere)
    with files.draft_in(ours) as used:
        files.remove_drafts(ours, below=True)
        assert used.is_dir()
    left = sorted(item.name for item in ours.rglob(f'{DRAFT_PREFIX}*'))
    assert left == [f'{DRAFT_PREFIX}{"0" * 16}', f'{DRAFT_PREFIX}renamed']
    assert snapshot(users, elsewhere) == before
