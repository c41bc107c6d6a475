"""Progress where there is no terminal."""

import re

import pytest

from osmabench_ros.base.progress import FRAME_OF, noticed, shown_progress

LONG = f'scoring {"a" * 200} of room[1] [/]'


@pytest.mark.parametrize(
    ('texts', 'lines'),
    [
        (['reading the map', 'reading the map', LONG], ['reading the map', LONG]),
        ([f'a: mapping{FRAME_OF}{number} of 3' for number in range(1, 4)], ['a: mapping']),
        (
            ['a: mapping\nb: starting', 'a: mapping\nb: mapping', 'b: mapping'],
            ['a: mapping', 'b: starting', 'b: mapping'],
        ),
    ],
)
def test_every_new_step_is_one_line_of_plain_text(texts, lines, capsys):
    with shown_progress() as progress:
        for text in texts:
            progress(text, 0.5)
    assert capsys.readouterr().err.splitlines() == lines


@pytest.mark.parametrize('columns', [80, 40])
def test_the_bar_keeps_its_place_whatever_goes_on(columns, capfd, monkeypatch):
    monkeypatch.setenv('FORCE_COLOR', '1')
    monkeypatch.setenv('COLUMNS', str(columns))
    monkeypatch.setenv('TERM', 'xterm')
    run = f'[1/6] apartment.{"seed_5." * 20}opengl.5: evaluating: 30 of 184 questions (16%)'
    with shown_progress() as progress:
        progress('[1/6] short', 0.1)
        progress(f'{run}\n[2/6] another', 0.5)
    lines = re.sub(r'\x1b\[[0-9;?]*[A-Za-z]', '', capfd.readouterr().err).splitlines()
    lines = [line for part in lines for line in part.split('\r') if line.strip()]
    assert all(len(line) <= columns for line in lines)
    ends = {line.index('left') for line in lines if 'left' in line}
    assert len(ends) == 1, 'the bar has moved'
    assert any(line.startswith('  [1/6] ap') and line.endswith('(16%)') for line in lines)


def test_what_a_signal_tells_stands_below_the_bar(capfd, monkeypatch):
    monkeypatch.setenv('FORCE_COLOR', '1')
    with shown_progress() as progress:
        progress('mapping', 0.5)
        assert noticed('interrupted')
    assert 'interrupted' in capfd.readouterr().err
    assert not noticed('there is no bar')
