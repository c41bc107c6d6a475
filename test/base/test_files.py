import hashlib
import json
import os
from pathlib import Path

import pytest

from osmabench_ros.base.files import atomic_directory, read_json, sha256_of, write_json, write_text
from osmabench_ros.base.owned_folder import MARKER, Existing, claim_folder
from osmabench_ros.errors import RunError


def names_in(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir() if path.name != MARKER)


@pytest.fixture(autouse=True)
def results(tmp_path: Path) -> None:
    claim_folder(tmp_path)


def test_json_is_written_in_one_order_and_comes_back(tmp_path: Path) -> None:
    path = tmp_path / 'deep' / 'x.json'
    write_json(path, {'b': [1.5, None], 'a': 'é'})
    first = path.read_bytes()
    assert read_json(path) == {'a': 'é', 'b': [1.5, None]}
    write_json(path, {'a': 'é', 'b': [1.5, None]})
    assert path.read_bytes() == first
    assert first.index(b'"a"') < first.index(b'"b"')
    assert names_in(path.parent) == ['x.json']
    assert path.stat().st_mode & 0o777 == 0o644


def test_what_is_no_json_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / 'x.json'
    write_json(path, 1)
    with pytest.raises(ValueError, match='not JSON compliant'):
        write_json(path, float('nan'))
    assert read_json(path) == 1


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / 'x.txt'
    write_text(path, 'old')

    def fail(source: object, target: object) -> None:
        raise OSError(28, 'No space left on device')

    monkeypatch.setattr(os, 'replace', fail)
    with pytest.raises(RunError, match=r'cannot write .*x\.txt: No space left on device'):
        write_text(path, 'new')
    assert path.read_text() == 'old'
    assert names_in(tmp_path) == ['x.txt']


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / 'file').write_text('')
    with pytest.raises(RunError, match=r'file.* choose another --out'):
        write_text(tmp_path / 'file' / 'x.txt', '')


@pytest.mark.parametrize('content', [None, b'{', b'\xff\xfe'])
def test_json_that_cannot_be_read_is_named(content: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / 'x.json'
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(RunError, match=r'x\.json'):
        read_json(path)


def test_a_folder_stays_if_what_fills_its_successor_fails(tmp_path: Path) -> None:
    target = tmp_path / 'target'
    write_text(target / 'old', '')

    def fill_by_half() -> None:
        with atomic_directory(target, Existing.MERGE) as temporary:
            (temporary / 'half').write_text('')
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fill_by_half()
    assert names_in(target) == ['old']
    assert names_in(tmp_path) == ['target']


def test_the_digest_of_a_file_covers_its_name_and_bytes(tmp_path: Path) -> None:
    path = tmp_path / 'x.bin'
    path.write_bytes(b'abc')
    assert sha256_of(path) == hashlib.sha256(b'x.bin' + b'abc').hexdigest()


def test_the_digest_of_a_folder_depends_on_nothing_but_names_and_bytes(tmp_path: Path) -> None:
    def made(name: str, files: dict[str, str]) -> str:
        for file, text in files.items():
            path = tmp_path / name / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return sha256_of(tmp_path / name)

    first = made('a', {'x': '1', 'deep/y': '2'})
    assert made('b', {'deep/y': '2', 'x': '1'}) == first
    assert made('c', {'x': '1', 'deep/y': '3'}) != first
    assert made('d', {'x': '1', 'deep/z': '2'}) != first
    assert made('e', {'x': '1', 'y': '2'}) != first


def test_written_text_is_utf8(tmp_path: Path) -> None:
    write_text(tmp_path / 'x', json.dumps('ü', ensure_ascii=False))
    assert (tmp_path / 'x').read_bytes() == b'"\xc3\xbc"'
