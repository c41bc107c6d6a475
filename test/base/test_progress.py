"""Progress where there is no terminal."""

import pytest

from osmabench_ros.base.progress import FRAME_OF, shown_progress


def test_every_step_is_one_line_of_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    long = f'scoring {"a" * 200} of room[1] [/]'
    with shown_progress() as progress:
        progress('reading the map', 0.0)
        progress('reading the map', 0.5)
        progress(long, 1.0)
    assert capsys.readouterr().err.splitlines() == ['reading the map', long]


def test_the_frames_are_counted_on_a_terminal_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with shown_progress() as progress:
        for number in range(1, 4):
            progress(f'[1/2] a: mapping{FRAME_OF}{number} of 3', number / 6)
    assert capsys.readouterr().err.splitlines() == ['[1/2] a: mapping']


def test_of_several_things_at_once_only_what_is_new_is_told(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with shown_progress() as progress:
        progress('[1/2] a: mapping\n[2/2] b: starting', 0.0)
        progress('[1/2] a: mapping\n[2/2] b: mapping', 0.5)
        progress('[2/2] b: mapping', 0.9)
    assert capsys.readouterr().err.splitlines() == [
        '[1/2] a: mapping', '[2/2] b: starting', '[2/2] b: mapping',
    ]  # fmt: skip
