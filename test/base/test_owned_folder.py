"""What is claimed, written, moved and deleted in folders that hold a user's files."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support.users_files import fill, lost, snapshot

from osmabench_ros.base import files
from osmabench_ros.base.files import atomic_directory, atomic_write, sha256_of, write_text
from osmabench_ros.base.owned_folder import (
    DRAFT_PREFIX,
    MARKER,
    PREVIOUS,
    Existing,
    check_file,
    check_folder,
    claim_folder,
    discard,
    draft_in,
    find_root,
    is_ours,
    make_folder,
    move_aside,
    remove_drafts,
)
from osmabench_ros.errors import OsmabenchWarning, RunError

MOVED = pytest.mark.filterwarnings('ignore:earlier results:osmabench_ros.errors.OsmabenchWarning')

KILLED = """
import os, pathlib, signal, sys
from osmabench_ros.base.owned_folder import draft_in
with draft_in(pathlib.Path(sys.argv[1])) as folder:
    (folder / 'half').write_text('x')
    os.symlink(sys.argv[2], folder / 'link')
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return tmp_path / 'elsewhere'


@pytest.fixture
def users(tmp_path: Path, elsewhere: Path) -> Path:
    """Return a folder of a user."""
    fill(tmp_path / 'users', elsewhere)
    return tmp_path / 'users'


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return a folder of results with a map and a report."""
    root = tmp_path / 'ours'
    claim_folder(root)
    write_text(root / 'report.json', '{}')
    with atomic_directory(root / 'run' / 'map') as draft:
        (draft / 'dense').mkdir()
        (draft / 'dense' / 'points.npy').write_text('1')
        (draft / 'map.json').write_text('2')
    return root


def names_in(folder: Path) -> list[str]:
    """Return the paths of all files in a folder but our markers."""
    files = (item for item in folder.rglob('*') if item.is_file() and item.name != MARKER)
    return sorted(str(item.relative_to(folder)) for item in files)


def link_to(target: str) -> Callable[[Path], Path]:
    def make(users: Path) -> Path:
        users.with_name('link').symlink_to(users / target)
        return users.with_name('link')

    return make


def make_pipe(users: Path) -> Path:
    os.mkfifo(users.with_name('pipe'))
    return users.with_name('pipe')


@pytest.mark.parametrize(
    'place',
    [
        lambda users: users,
        lambda users: users / 'notes.txt',
        lambda users: users / 'notes.txt' / 'deeper',
        lambda users: users / 'src' / '..',
        lambda users: users / 'stranger',
        link_to('.'),
        link_to('empty'),
        link_to('src/missing'),
        make_pipe,
    ],
)
def test_a_folder_that_is_not_ours_is_refused_and_untouched(
    place: Callable[[Path], Path], users: Path, tmp_path: Path
) -> None:
    path = place(users)
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match='another --out') as caught:
        claim_folder(path)
    assert str(users.parent) in str(caught.value)
    for existing in Existing:
        with pytest.raises(RunError, match='another --out'), atomic_directory(path, existing):
            raise AssertionError('minutes are spent')
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize('name', ['notes.txt', 'diary', 'nowhere', 'empty', 'photos', 'hard_link'])
def test_a_file_that_is_not_ours_is_replaced_only_if_asked_and_never_through_a_link(
    name: str, users: Path, elsewhere: Path
) -> None:
    before = snapshot(users, elsewhere)
    with pytest.raises(RunError, match='another --out'):
        write_text(users / name, 'new')
    assert snapshot(users, elsewhere) == before
    if name in ('notes.txt', 'hard_link'):
        with atomic_write(users / name, overwrite=True) as draft:
            draft.write_text('new')
        assert lost(before, users, elsewhere) == [users / name]
    else:
        refused = pytest.raises(RunError, match=f'{name} is (a link|not a file)')
        with refused, atomic_write(users / name, overwrite=True):
            raise AssertionError('minutes are spent')
        assert snapshot(users, elsewhere) == before


def test_a_new_and_an_empty_folder_are_ours_also_after_they_are_moved(tmp_path: Path) -> None:
    (tmp_path / 'empty').mkdir()
    for name in ('empty', 'new/deep'):
        for _ in range(2):
            claim_folder(tmp_path / name)
        write_text(tmp_path / name / 'run' / 'x', '')
    (tmp_path / 'new' / 'deep').rename(tmp_path / 'moved')
    write_text(tmp_path / 'moved' / 'run' / 'x', 'again')
    claim_folder(tmp_path / 'moved' / 'run')
    assert find_root(tmp_path / 'moved' / 'run' / 'y' / 'z') == tmp_path / 'moved'
    assert find_root(tmp_path / 'new') is None
    assert not is_ours(tmp_path / 'new')


@MOVED
def test_a_users_files_in_a_folder_of_results_outlive_everything(
    ours: Path, elsewhere: Path
) -> None:
    made = {*snapshot(ours)}
    target = ours / 'run' / 'map'
    fill(ours, elsewhere)
    (target / '.keep').write_text('mine')
    before = {path: was for path, was in snapshot(ours, elsewhere).items() if path not in made}
    claim_folder(ours)
    write_text(ours / 'report.json', 'new')
    discard(ours / 'report.json')
    with atomic_directory(target, Existing.MERGE) as draft:
        (draft / 'map.json').write_text('3')
    remove_drafts(ours, below=True)
    assert lost(before, ours, elsewhere) == []
    with pytest.raises(RunError, match='src is not empty'):
        claim_folder(ours / 'src')


def test_everything_is_moved_aside_and_stays_there_byte_for_byte(
    ours: Path, elsewhere: Path
) -> None:
    fill(ours, elsewhere)
    before = snapshot(ours)
    with pytest.warns(OsmabenchWarning, match=f'earlier results of {ours} were moved to .*'):
        move_aside(ours)
    [aside] = (ours / PREVIOUS).glob('2*')
    write_text(ours / 'new', '')
    with pytest.warns(OsmabenchWarning):
        move_aside(ours)
    after = {path.relative_to(aside): was for path, was in snapshot(aside).items()}
    assert after == {path.relative_to(ours): was for path, was in before.items()}
    assert sorted(item.name for item in ours.iterdir()) == [MARKER, PREVIOUS]
    move_aside(ours)
    assert len([*(ours / PREVIOUS).glob('2*')]) == 2


@MOVED
def test_a_folder_is_written_again_as_asked(ours: Path) -> None:
    target = ours / 'run' / 'map'
    with pytest.raises(RunError, match='map exists'), atomic_directory(target):
        raise AssertionError('minutes are spent')
    for existing in (Existing.MERGE, Existing.MOVE_ASIDE):
        with atomic_directory(target, existing) as draft:
            (draft / 'dense').mkdir()
            (draft / 'dense' / existing.name).touch()
    moved, *rest = names_in(target)
    assert moved == 'dense/MOVE_ASIDE'
    expected = ['dense/MERGE', 'dense/points.npy', 'map.json']
    assert [name.split('/', 2)[2] for name in rest] == expected


@pytest.mark.parametrize('name', ['report.json', 'run', 'run/map', 'run/map/dense'])
def test_a_link_where_a_result_is_written_is_refused(
    name: str, ours: Path, users: Path, elsewhere: Path
) -> None:
    (ours / name).rename(users / 'moved')
    (ours / name).symlink_to(users / 'moved')
    before = snapshot(ours, users, elsewhere)
    acts: list[Callable[[Path], object]] = [
        lambda path: write_text(path, ''),
        lambda path: write_text(path / 'x', ''),
        claim_folder,
        make_folder,
        discard,
    ]
    for act in acts:
        with pytest.raises(RunError, match=f'{name} is a link'):
            act(ours / name)
    refused = pytest.raises(RunError, match=f'{name} blocks a result')
    with refused, atomic_directory(ours, Existing.MERGE) as draft:
        (draft / name).parent.mkdir(parents=True, exist_ok=True)
        (draft / name).write_text('')
    assert snapshot(ours, users, elsewhere) == before


def test_links_above_a_folder_of_results_and_relative_paths_are_fine(
    ours: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'way').symlink_to(tmp_path)
    write_text(tmp_path / 'way' / 'ours' / 'run' / '..' / 'x', '')
    monkeypatch.chdir(ours / 'run')
    write_text(Path('y'), '')
    claim_folder(Path('../z'))
    assert names_in(ours) == ['report.json', 'run/map/dense/points.npy', 'run/map/map.json',
                              'run/y', 'x']  # fmt: skip
    assert is_ours(ours / 'z')


def test_a_link_before_two_dots_leads_where_the_system_goes(ours: Path, tmp_path: Path) -> None:
    (tmp_path / 'way').symlink_to(ours / 'run')
    write_text(tmp_path / 'way' / '..' / 'x', 'new')
    assert (ours / 'x').read_text() == 'new'
    assert not (tmp_path / 'x').exists()


@MOVED
@pytest.mark.parametrize('existing', [Existing.MERGE, Existing.MOVE_ASIDE])
@pytest.mark.parametrize('moment', range(3))
def test_a_folder_whose_writing_was_cut_off_lost_nothing_and_is_written_again(
    existing: Existing, moment: int, ours: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = ours / 'run' / 'map'
    (target / 'mine').write_text('mine')

    def write() -> None:
        with atomic_directory(target, existing) as draft:
            (draft / 'deep').mkdir()
            (draft / 'deep' / 'new').write_text('new')
            (draft / 'map.json').write_text('new')

    calls, original = iter(range(1000)), os.replace

    def strike(*args: object) -> None:
        if next(calls) == moment:
            raise KeyboardInterrupt
        original(*args)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(files.os, 'replace', strike)
        with contextlib.suppress(KeyboardInterrupt):
            write()
    assert [path.read_text() for path in ours.rglob('mine')] == ['mine']
    write()
    assert [path.read_text() for path in ours.rglob('mine')] == ['mine']
    assert (target / 'deep' / 'new').read_text() == 'new'
    assert not [*ours.rglob(f'{DRAFT_PREFIX}*')]


def test_what_a_killed_process_left_goes_with_the_next_and_no_link_is_followed(
    ours: Path, users: Path, elsewhere: Path
) -> None:
    for folder in (ours, ours / 'run', users / 'src'):
        words = [sys.executable, '-c', KILLED, str(folder), str(users)]
        assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    [in_users] = (users / 'src').glob(f'{DRAFT_PREFIX}*')
    in_users.rename(ours / 'run' / f'{DRAFT_PREFIX}renamed')
    (ours / f'{DRAFT_PREFIX}{"0" * 16}').symlink_to(users)
    before = snapshot(users, elsewhere)
    with draft_in(ours) as used:
        remove_drafts(ours, below=True)
        assert used.is_dir()
    left = sorted(item.name for item in ours.rglob(f'{DRAFT_PREFIX}*'))
    assert left == [f'{DRAFT_PREFIX}{"0" * 16}', f'{DRAFT_PREFIX}renamed']
    assert snapshot(users, elsewhere) == before


def test_only_results_are_discarded(ours: Path, users: Path, elsewhere: Path) -> None:
    before = snapshot(users, elsewhere)
    for path in (users / 'notes.txt', users / 'src', users / 'missing'):
        discard(path)
    assert snapshot(users, elsewhere) == before
    discard(ours / 'run' / 'map')
    discard(ours / 'report.json')
    assert names_in(ours) == []


@pytest.mark.parametrize('content', ['mine', 'osmabench_ros made', ''])
def test_only_our_text_makes_a_marker(content: str, tmp_path: Path) -> None:
    (tmp_path / MARKER).write_text(content)
    assert is_ours(tmp_path) == (content != 'mine')  # a kill may leave a part
    (tmp_path / 'linked').mkdir()
    (tmp_path / 'linked' / MARKER).symlink_to(tmp_path / MARKER)
    assert not is_ours(tmp_path / 'linked')


def test_the_digest_of_a_folder_does_not_depend_on_the_marker(tmp_path: Path) -> None:
    with atomic_directory(tmp_path / 'a') as draft:
        (draft / 'x').write_text('1')
    (tmp_path / 'b').mkdir()
    (tmp_path / 'b' / 'x').write_text('1')
    assert sha256_of(tmp_path / 'a') == sha256_of(tmp_path / 'b')


@pytest.mark.parametrize('name', ['a' * 5000, 'a/' * 3000, 'loop/a', 'file/a', 'gone/a'])
def test_a_place_that_cannot_be_reached_is_an_error_with_a_remedy(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    (tmp_path / 'file').write_text('mine')
    path = tmp_path / name
    if name == 'gone/a':
        (tmp_path / 'gone').mkdir()
        monkeypatch.chdir(tmp_path / 'gone')
        (tmp_path / 'gone').rmdir()
        path = Path('a')
    for act in (claim_folder, lambda path: write_text(path, '')):
        with pytest.raises(RunError, match='another --out') as caught:
            act(path)
        assert len(str(caught.value)) < 1000
    for check in (check_file, check_folder):
        with contextlib.suppress(RunError):
            check(path)
