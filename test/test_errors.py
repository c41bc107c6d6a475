"""Messages of errors, which quote untrusted text."""

import os
import pty
from importlib import import_module

import pytest
from support.programs import run_python

from osmabench_ros.errors import ConfigError, MissingDependencyError, errors_as, needing

WARN = """
import sys, warnings
from osmabench_ros.base.log import format_warning, send_warnings
from osmabench_ros.errors import OsmabenchWarning
send_warnings(lambda text: sys.stderr.write(format_warning(text)))
warnings.warn(sys.argv[1], OsmabenchWarning)
"""


def test_a_message_cannot_steer_the_terminal_or_fill_it():
    assert str(ConfigError('key "a\x1b[2J\0\ud800ü"\nline')) == (
        'key "a\\x1b[2J\\x00\\ud800ü"\nline'
    )
    text = str(ConfigError('x ' * 50_000))
    assert len(text) < 5000
    assert text.endswith('... (and 96000 characters more)')
    path = f'/{"x" * 5000}/map.json'
    assert str(ConfigError(f'{path} is missing')) == f'{path[:150]}...{path[-150:]} is missing'


def test_a_warning_cannot_steer_the_terminal():
    done = run_python('-c', WARN, 'file \x1b[2J.png', check=True)
    assert done.stderr == 'warning: file \\x1b[2J.png\n'


def test_errors_that_are_named_become_ours_and_others_pass():
    named = errors_as(ConfigError, 'a.yaml', KeyError, TypeError, remedy='write b')
    with pytest.raises(ConfigError, match=r"^a\.yaml: KeyError\('b'\); write b$") as caught, named:
        {}['b']
    assert isinstance(caught.value.__cause__, KeyError)
    with pytest.raises(ValueError, match=r'^plain$'), errors_as(ConfigError, 'a.yaml', KeyError):
        raise ValueError('plain')
    with errors_as(ConfigError, 'a.yaml', KeyError):
        pass


def test_an_import_that_fails_says_what_for_and_what_to_do():
    text = r'^maps need no_such \(.*\); install it$'
    with (
        pytest.raises(MissingDependencyError, match=text),
        needing('maps need no_such', 'install it'),
    ):
        import_module('no_such_module')


def test_a_terminal_gets_warnings_broken_between_words():
    words = [f'word_{number:02d}' for number in range(30)]
    read, write = pty.openpty()
    output = {'stderr': write, 'capture_output': False}
    run_python('-c', WARN, ' '.join(words), variables={'COLUMNS': '50'}, check=True, **output)
    os.close(write)
    lines = os.read(read, 4096).decode().splitlines()
    assert ' '.join(lines).split() == ['warning:', *words]
    assert len(lines) > 4
    assert max(map(len, lines)) <= 50
