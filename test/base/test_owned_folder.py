"""What is claimed, written and deleted in folders that hold a user's files."""

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
from osmabench_ros.base.files import (
    Existing,
    check_file,
    check_folder,
    create_file,
    filled_folder,
    sha256_of,
    write_text,
    written_file,
)
from osmabench_ros.base.ledger import HEADER, LEDGER, Ledger
from osmabench_ros.base.owned_folder import (
    claim_folder,
    is_ours,
    move_ours,
    refuse_remains,
    remove_ours,
)
from osmabench_ros.errors import OsmabenchWarning, RunError
from osmabench_ros.runs.results.results_folder import held


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    return tmp_path / 'elsewhere'


@pytest.fixture
def users(tmp_path: Path, elsewhere: Path) -> Path:
    """Return a folder of a user's."""
    fill(tmp_path / 'users', elsewhere)
    return tmp_path / 'users'


@pytest.fixture
def ours(tmp_path: Path) -> Path:
    """Return a folder of results with a map and a report."""
    root = tmp_path / 'ours'
    claim_folder(root)
    write_text(root / 'report.json', '{}')
    with filled_folder(root / 'run' / 'map') as draft:
        (draft / 'dense').mkdir()
        (draft / 'dense' / 'points.npy').write_text('1')
        (draft / 'map.json').write_text('2')
    return root


def tree(folder: Path) -> list[str]:
    return sorted(str(item.relative_to(folder)) for item in folder.rglob('*'))


def test_a_new_and_an_empty_folder_are_ours_and_stay_so_when_they_are_copied(
    tmp_path: Path,
) -> None:
    (tmp_path / 'empty').mkdir()
    for name in ('empty', 'new/deep'):
        for _ in range(2):
            claim_folder(tmp_path / name)
        write_text(tmp_path / name / 'x', '')
    (tmp_path / 'new' / 'deep').rename(tmp_path / 'moved')
    claim_folder(tmp_path / 'moved')
    assert is_ours(tmp_path / 'moved' / 'x')


def link_to_folder(users: Path) -> Path:
    users.with_name('link').symlink_to(users)
    return users.with_name('link')


def link_to_empty_folder(users: Path) -> Path:
    users.with_name('link').symlink_to(users / 'empty')
    return users.with_name('link')


def dangling_link(users: Path) -> Path:
    users.with_name('link').symlink_to(users / 'src' / 'missing')
    return users.with_name('link')


def stranger(users: Path) -> Path:
    return users / 'stranger'


def pipe(users: Path) -> Path:
    os.mkfifo(users.with_name('pipe'))
    return users.with_name('pipe')


REFUSED: list[Callable[[Path], Path]] = [
    lambda users: users,
    lambda users: users / 'notes.txt',
    lambda users: users / 'notes.txt' / 'deeper',
    lambda users: users / 'src' / '..',
    link_to_folder,
    link_to_empty_folder,
    dangling_link,
    stranger,
    lambda users: users / 'stranger' / 'new',
    pipe,
]


@pytest.mark.parametrize('place', REFUSED)
def test_what_is_not_ours_is_refused_and_untouched(
    place: Callable[[Path], Path], users: Path, tmp_path: Path
) -> None:
    path = place(users)
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match='choose another|another --out'):
        claim_folder(path)
    for existing in Existing:
        with pytest.raises(RunError), filled_folder(path, existing):
            raise AssertionError('minutes are spent')
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize('name', ['notes.txt', 'diary', 'nowhere', 'empty', 'photos', '.env'])
def test_a_file_that_is_not_ours_is_not_overwritten(
    name: str, users: Path, elsewhere: Path
) -> None:
    before = snapshot(users, elsewhere)
    for write in (write_text, lambda path, _: create_file(path)):
        with pytest.raises(RunError, match='another --out'):
            write(users / name, 'new')
    assert snapshot(users, elsewhere) == before


@pytest.mark.parametrize('name', ['diary', 'nowhere', 'empty', 'photos'])
def test_overwriting_replaces_a_file_and_never_goes_through_a_link(
    name: str, users: Path, elsewhere: Path
) -> None:
    with written_file(users / 'hard_link', overwrite=True) as draft:
        draft.write_text('new')
    assert (elsewhere / 'report.json').read_text() == 'my report.json'
    before = snapshot(users, elsewhere)
    with pytest.raises(RunError), written_file(users / name, overwrite=True):
        raise AssertionError('minutes are spent')
    assert snapshot(users, elsewhere) == before


def test_a_users_files_in_a_folder_of_results_outlive_everything(
    ours: Path, elsewhere: Path
) -> None:
    for folder in (ours, ours / 'run', ours / 'run' / 'map', ours / 'run' / 'map' / 'dense'):
        fill(folder, elsewhere) if folder == ours else (folder / '.keep').write_text('mine')
    listed = {ours / entry.path for entry in Ledger(ours).entries()} | {ours, ours / LEDGER}
    before = {path: was for path, was in snapshot(ours).items() if path not in listed}
    before |= snapshot(elsewhere)
    claim_folder(ours)
    with filled_folder(ours / 'run' / 'map', Existing.MERGE) as draft:
        (draft / 'map.json').write_text('3')
    with (
        pytest.warns(OsmabenchWarning, match=r'\.keep.* is not ours and stays'),
        filled_folder(ours / 'run' / 'map', Existing.REPLACE) as draft,
    ):
        (draft / 'map.json').write_text('4')
    assert not (ours / 'run' / 'map' / 'dense' / 'points.npy').exists()
    with pytest.warns(OsmabenchWarning, match='and [0-9]+ more is not ours and stays'):
        remove_ours(ours)
    assert not (ours / 'report.json').exists()
    assert lost(before, ours, elsewhere) == []


def test_a_folder_of_which_only_the_users_files_are_left_is_refused(ours: Path) -> None:
    (ours / 'run' / 'map' / '.keep').write_text('mine')
    refuse_remains([ours / 'run' / 'map', ours / 'run' / 'missing'])
    with pytest.warns(OsmabenchWarning):
        remove_ours(ours)
    with pytest.raises(RunError, match=r'map holds .*\.keep, which is not ours; move it'):
        refuse_remains([ours / 'run' / 'map'])


def test_what_is_ours_is_deleted_to_the_last_file(ours: Path) -> None:
    remove_ours(ours / 'run')
    assert tree(ours) == [LEDGER, 'report.json']
    remove_ours(ours)
    assert tree(ours) == [LEDGER]
    assert (ours / LEDGER).read_bytes() == HEADER


@pytest.mark.parametrize('name', ['report.json', 'run', 'run/map', 'run/map/dense'])
def test_a_link_where_a_result_was_written_is_refused(
    name: str, ours: Path, users: Path, elsewhere: Path
) -> None:
    (ours / name).rename(users / 'moved')
    (ours / name).symlink_to(users / 'moved')
    before = snapshot(ours, users, elsewhere)
    with pytest.raises(RunError, match=f'{name} is a link'):
        claim_folder(ours)
    with pytest.raises(RunError, match='is a link'):
        write_text(ours / 'run' / 'map' / 'dense' / 'x' if '/' in name else ours / name, '')
    if name != 'report.json':
        with pytest.raises(RunError, match='is a link'):
            write_text(ours / name / 'x', '')
    assert snapshot(ours, users, elsewhere) == before
    with pytest.warns(OsmabenchWarning):
        remove_ours(ours)
    assert lost(snapshot(users, elsewhere), users, elsewhere) == []
    assert (users / 'moved').exists()


def test_a_file_of_the_user_that_stands_where_ours_would_go_is_named(ours: Path) -> None:
    (ours / 'run' / 'vqa').mkdir()
    (ours / 'run' / 'vqa' / 'answers.jsonl').write_text('mine')
    (ours / 'report.csv').write_text('mine')
    with pytest.raises(RunError, match=r'report\.csv is there and not ours'):
        write_text(ours / 'report.csv', '')
    with (
        pytest.raises(RunError, match='run/vqa is not empty'),
        filled_folder(ours / 'run' / 'vqa', Existing.MERGE) as draft,
    ):
        (draft / 'answers.jsonl').write_text('')
    (ours / 'run' / 'map' / 'new.npy').write_text('mine')
    before = snapshot(ours)
    with (
        pytest.raises(RunError, match=r'new\.npy is there and not ours'),
        filled_folder(ours / 'run' / 'map', Existing.REPLACE) as draft,
    ):
        (draft / 'new.npy').write_text('')
    assert snapshot(ours) == before


def test_a_folder_outside_is_one_of_results_by_itself_and_can_be_replaced(
    tmp_path: Path,
) -> None:
    for text in ('old', 'new'):
        with filled_folder(tmp_path / 'map', Existing.REPLACE) as draft:
            (draft / text).write_text(text)
        assert tree(tmp_path / 'map') == [LEDGER, text]
        assert is_ours(tmp_path / 'map' / text)
    assert tree(tmp_path) == ['map', f'map/{LEDGER}', 'map/new']
    with pytest.raises(RunError, match='map exists'), filled_folder(tmp_path / 'map'):
        raise AssertionError('minutes are spent')


def test_the_digest_of_a_folder_does_not_depend_on_the_ledger(tmp_path: Path) -> None:
    with filled_folder(tmp_path / 'a') as draft:
        (draft / 'x').write_text('1')
    (tmp_path / 'b').mkdir()
    (tmp_path / 'b' / 'x').write_text('1')
    assert sha256_of(tmp_path / 'a') == sha256_of(tmp_path / 'b')


def test_a_folder_is_moved_with_what_is_listed_unless_something_else_is_in_it(ours: Path) -> None:
    move_ours(ours / 'run' / 'map', ours / 'run' / 'map_1')
    assert is_ours(ours / 'run' / 'map_1' / 'dense' / 'points.npy')
    assert not [entry for entry in Ledger(ours).entries() if 'map/' in entry.path]
    (ours / 'run' / 'map_1' / 'diary').write_text('mine')
    with pytest.raises(RunError, match='map_1/diary is not ours'):
        move_ours(ours / 'run' / 'map_1', ours / 'run' / 'map_2')
    assert (ours / 'run' / 'map_1' / 'diary').exists()


def test_links_above_a_folder_of_results_are_fine(ours: Path, tmp_path: Path) -> None:
    (tmp_path / 'way').symlink_to(tmp_path)
    write_text(tmp_path / 'way' / 'ours' / 'run' / 'x', '')
    assert is_ours(ours / 'run' / 'x')
    write_text(tmp_path / 'way' / 'ours' / 'run' / '..' / 'y', '')
    assert is_ours(ours / 'y')


def test_relative_paths_find_their_folder(ours: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ours / 'run')
    write_text(Path('x'), '')
    write_text(Path('../y'), '')
    claim_folder(Path('z'))
    assert all(is_ours(ours / name) for name in ('run/x', 'y', 'run/z'))
    assert not (ours / 'run' / 'z' / LEDGER).exists()


def test_a_nested_claim_belongs_to_the_outer_folder(ours: Path) -> None:
    claim_folder(ours / 'more')
    assert tree(ours / 'more') == []
    (ours / 'more' / 'mine').write_text('')
    claim_folder(ours / 'more')
    (ours / 'users').mkdir()
    (ours / 'users' / 'mine').write_text('')
    with pytest.raises(RunError, match='users is not empty'):
        claim_folder(ours / 'users')


def test_a_name_that_no_ledger_can_hold_is_refused(ours: Path) -> None:
    with pytest.raises(RunError, match='has a name that no result may have'):
        write_text(ours / 'a\\b', '')
    with pytest.raises(RunError):
        write_text(ours / LEDGER, '')
    claim_folder(ours)


@pytest.mark.filterwarnings('ignore::osmabench_ros.errors.OsmabenchWarning')
@pytest.mark.parametrize('function', ['replace', 'mkdir'])
@pytest.mark.parametrize('moment', range(4))
def test_what_is_interrupted_loses_nothing_and_can_be_done_again(
    function: str, moment: int, ours: Path, elsewhere: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ours, elsewhere)
    (ours / 'run' / 'map' / 'mine').write_text('mine')
    listed = {ours / entry.path for entry in Ledger(ours).entries()} | {ours, ours / LEDGER}
    before = {path: was for path, was in snapshot(ours).items() if path not in listed}

    def again() -> None:
        with filled_folder(ours / 'run' / 'map', Existing.REPLACE) as draft:
            (draft / 'deep').mkdir()
            (draft / 'deep' / 'new').write_text('new')
            (draft / 'map.json').write_text('new')

    calls, original = iter(range(1000)), getattr(os, function)

    def strike(*args: object, **options: object) -> object:
        if next(calls) == moment:
            raise KeyboardInterrupt
        return original(*args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(files.os, function, strike)
        with contextlib.suppress(KeyboardInterrupt):
            again()
    assert lost(before, ours) == []
    again()
    assert lost(before, ours) == []
    assert tree(ours / 'run' / 'map') == ['deep', 'deep/new', 'map.json', 'mine']
    check_file(ours / 'run' / 'map' / 'map.json')


def test_results_of_another_kind_are_not_replaced(ours: Path) -> None:
    before = snapshot(ours)
    with (
        pytest.raises(RunError, match=r'holds something else \(no scene\.json of ours\)'),
        filled_folder(ours, Existing.REPLACE, 'scene.json'),
    ):
        raise AssertionError('minutes are spent')
    assert snapshot(ours) == before


def test_a_folder_that_was_only_claimed_counts_as_empty_also_after_a_kill(tmp_path: Path) -> None:
    code = (
        'import os, pathlib, signal, sys\n'
        'from osmabench_ros.base import ledger, owned_folder\n'
        'ledger.os.link = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n'
        'owned_folder.claim_folder(pathlib.Path(sys.argv[1]))\n'
    )
    path = tmp_path / 'claimed'
    killed = subprocess.run([sys.executable, '-c', code, str(path)], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert len(list(path.iterdir())) == 1
    claim_folder(path)
    assert tree(path) == [LEDGER]
    with filled_folder(path) as draft:
        (draft / 'x').write_text('')
    assert tree(path) == [LEDGER, 'x']


def test_a_folder_of_results_may_be_held_within_another_or_in_a_scratch_folder(ours: Path) -> None:
    with held(ours / 'deeper'):
        write_text(ours / 'deeper' / 'x', '')
    assert is_ours(ours / 'deeper' / 'x')
    with filled_folder(ours / 'whole') as draft, held(draft):
        write_text(draft / 'x', '')
    assert is_ours(ours / 'whole' / 'x')


@pytest.mark.parametrize(
    'make',
    [
        lambda path, _: path.write_text('mine'),
        lambda path, _: path.mkdir(),
        lambda path, other: path.symlink_to(other),
        lambda path, other: path.symlink_to(other / 'missing'),
        lambda path, other: os.link(other, path),
        lambda path, _: os.mkfifo(path),
    ],
)
def test_what_only_has_the_name_of_a_ledger_is_not_replaced(
    make: Callable[[Path, Path], object], tmp_path: Path
) -> None:
    users, other = tmp_path / 'users', tmp_path / 'other'
    users.mkdir()
    other.write_text('mine too')
    make(users / LEDGER, other)
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match='choose another --out'):
        claim_folder(users)
    with pytest.raises(RunError, match='choose another --out'), filled_folder(users):
        raise AssertionError('minutes are spent')
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize(
    'act',
    [
        lambda link: write_text(link / 'report.json', ''),
        lambda link: create_file(link / 'new.log'),
        lambda link: claim_folder(link / 'new'),
        lambda link: remove_ours(link / 'report.json'),
        lambda link: move_ours(link / 'run', link / 'moved'),
        lambda link: move_ours(link, link.with_name('moved')),
    ],
)
def test_a_link_to_results_within_others_is_not_followed(
    act: Callable[[Path], object], ours: Path, tmp_path: Path
) -> None:
    claim_folder(tmp_path / 'other')
    (tmp_path / 'other' / 'link').symlink_to(ours)
    before = snapshot(tmp_path)
    with pytest.raises(RunError, match='link is a link'):
        act(tmp_path / 'other' / 'link')
    assert snapshot(tmp_path) == before


@pytest.mark.filterwarnings('ignore::osmabench_ros.errors.OsmabenchWarning')
def test_results_that_were_moved_into_others_are_not_deleted_with_them(
    ours: Path, tmp_path: Path
) -> None:
    outer = tmp_path / 'outer'
    claim_folder(outer)
    write_text(outer / 'shared' / 'report.json', '{}')
    write_text(outer / 'shared' / 'run' / 'map' / 'mine', '')
    (outer / 'shared').rename(tmp_path / 'away')
    (ours / 'run' / 'map' / 'mine').write_text('mine')
    ours.rename(outer / 'shared')
    before = snapshot(outer / 'shared')
    remove_ours(outer)
    assert snapshot(outer / 'shared') == before


def test_two_that_claim_a_folder_at_once_have_one_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, original = tmp_path / 'results', os.link

    def other_first(source: Path, target: Path) -> None:
        monkeypatch.setattr(os, 'link', original)
        claim_folder(path)
        write_text(path / 'report.json', '{}')
        original(source, target)

    monkeypatch.setattr(os, 'link', other_first)
    claim_folder(path)
    assert is_ours(path / 'report.json')


def test_a_file_system_without_hard_links_will_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, 'link', refuse)
    claim_folder(tmp_path / 'results')
    assert is_ours(tmp_path / 'results')


def test_paths_that_cannot_be_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RunError, match='NUL character'):
        claim_folder(tmp_path / 'a\0b')
    (tmp_path / 'gone').mkdir()
    monkeypatch.chdir(tmp_path / 'gone')
    (tmp_path / 'gone').rmdir()
    with pytest.raises(RunError, match='current folder, which no longer exists'):
        write_text(Path('report.json'), '')


@pytest.mark.parametrize('name', ['a' * 5000, 'a/' * 3000, 'loop/a', 'file/a'])
def test_places_that_cannot_be_reached_are_named_in_one_short_line(
    name: str, tmp_path: Path
) -> None:
    (tmp_path / 'loop').symlink_to(tmp_path / 'loop')
    (tmp_path / 'file').write_text('mine')
    for act in (claim_folder, check_file, check_folder):
        with contextlib.suppress(RunError):
            act(tmp_path / name)
    with pytest.raises(RunError, match='choose another --out') as caught:
        claim_folder(tmp_path / name)
    assert str(tmp_path)[:20] in str(caught.value)
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize('function', ['open', 'write'])
def test_a_kill_before_a_scratch_folder_had_its_mark_leaves_the_folder_usable(
    function: str, tmp_path: Path
) -> None:
    code = (
        'import os, pathlib, signal, sys\n'
        'from osmabench_ros.base import owned_folder\n'
        'path = pathlib.Path(sys.argv[1])\n'
        'original = getattr(os, sys.argv[2])\n'
        'def strike(*given):\n'
        '    if isinstance(given[0], int) or given[1] & os.O_CREAT:\n'
        '        os.kill(os.getpid(), signal.SIGKILL)\n'
        '    return original(*given)\n'
        'setattr(os, sys.argv[2], strike)\n'
        'owned_folder.claim_folder(path)\n'
    )
    path = tmp_path / 'claimed'
    words = [sys.executable, '-c', code, str(path), function]
    assert subprocess.run(words, check=False).returncode == -signal.SIGKILL
    [left] = path.iterdir()
    claim_folder(path)
    assert left.is_dir(), 'it has no proof'
    assert is_ours(path)


def test_a_folder_that_only_looks_like_a_scratch_folder_is_a_users(tmp_path: Path) -> None:
    fake = tmp_path / 'users' / '.osmabench-partial-0123456789abcdef'
    fake.mkdir(parents=True)
    (fake / 'diary').write_text('')
    with pytest.raises(RunError, match='is not empty'):
        claim_folder(tmp_path / 'users')
    assert [path.name for path in fake.iterdir()] == ['diary']
