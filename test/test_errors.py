"""Messages of errors, which quote untrusted text."""

from __future__ import annotations

from importlib import import_module

import pytest

from osmabench_ros.errors import ConfigError, MissingDependencyError, errors_as, needing


def test_a_message_cannot_steer_the_terminal_or_fill_it() -> None:
    assert str(ConfigError('key "a\x1b[2J\0\ud800ü"\nline')) == (
        'key "a\\x1b[2J\\x00\\ud800ü"\nline'
    )
    text = str(ConfigError('x' * 100_000))
    assert len(text) < 5000
    assert text.endswith('... (and 96000 characters more)')


def test_errors_that_are_named_become_ours_and_others_pass() -> None:
    named = errors_as(ConfigError, 'a.yaml', KeyError, TypeError, remedy='write b', shown=repr)
    with pytest.raises(ConfigError, match=r"^a\.yaml: KeyError\('b'\); write b$") as caught, named:
        {}['b']
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r'^plain$'), errors_as(ConfigError, 'a.yaml', KeyError):
        raise ValueError('plain')
    with errors_as(ConfigError, 'a.yaml', KeyError):
        pass


def test_an_import_that_fails_says_what_for_and_what_to_do() -> None:
    text = r'^maps need no_such \(.*\); install it$'
    with (
        pytest.raises(MissingDependencyError, match=text),
        needing('maps need no_such', 'install it'),
    ):
        import_module('no_such_module')
