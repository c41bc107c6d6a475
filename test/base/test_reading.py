"""Whatever a path leads to, reading it ends at once: with its bytes, or with one line."""

import os
from pathlib import Path

import pytest

from osmabench_ros.base.reading import opened, read_bytes
from osmabench_ros.errors import LimitError, SceneError


def make_pipe(folder):
    os.mkfifo(folder / 'pipe')
    return folder / 'pipe'


def make_loop(folder):
    (folder / 'loop').symlink_to(folder / 'loop')
    return folder / 'loop'


PATHS = {
    'missing': (lambda folder: folder / 'missing', 'missing does not exist'),
    'folder': (lambda folder: folder, 'is a folder; give a readable file'),
    'pipe': (make_pipe, 'is not an ordinary file'),
    '/dev/zero': (lambda _: Path('/dev/zero'), 'is not an ordinary file'),
    'loop': (make_loop, 'loop cannot be read: Too many levels of symbolic links'),
    'NUL': (lambda folder: folder / 'a\0b', 'not a path: embedded null byte'),
    '5,000 characters': (lambda folder: folder / ('a/' * 2500), r'\.\.\.'),
    'surrogate': (lambda folder: f'{folder}/\ud800', 'not a path: .* surrogates not allowed'),
    'control characters': (lambda folder: folder / 'a\x1b[2J', r'a\\x1b\[2J does not exist'),
}


def file_in(folder):
    (folder / 'file').write_bytes(b'abc')
    return folder / 'file'


@pytest.mark.parametrize('name', PATHS)
def test_a_path_that_gives_no_file_is_one_line(tmp_path, name):
    made, expected = PATHS[name]
    with pytest.raises(SceneError, match=expected) as caught:
        read_bytes(made(tmp_path), SceneError)
    text = str(caught.value)
    assert text.isprintable()
    assert len(text) < 600


def test_a_file_within_the_limit_is_read_also_through_a_link(tmp_path):
    (tmp_path / 'link').symlink_to(file_in(tmp_path))
    assert read_bytes(tmp_path / 'link', SceneError) == b'abc'
    assert read_bytes(str(tmp_path / 'file'), SceneError, 3) == b'abc'
    with pytest.raises(LimitError, match=r'file has 3 bytes; .*OSMABENCH_LIMITS'):
        read_bytes(tmp_path / 'file', SceneError, 2)


def test_an_error_of_reading_in_the_block_is_one_line(tmp_path):
    refused = pytest.raises(SceneError, match='file cannot be read: Input/output error')
    with refused, opened(file_in(tmp_path), SceneError):
        raise OSError(5, 'Input/output error')
