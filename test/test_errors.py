"""Messages of errors, which quote what strangers wrote."""

from __future__ import annotations

from osmabench_ros.errors import ConfigError


def test_a_message_cannot_steer_the_terminal_or_fill_it() -> None:
    assert str(ConfigError('key "a\x1b[2J\0\ud800ü"\nline')) == (
        'key "a\\x1b[2J\\x00\\ud800ü"\nline'
    )
    text = str(ConfigError('x' * 100_000))
    assert len(text) < 5000
    assert text.endswith('... (and 96000 characters more)')
