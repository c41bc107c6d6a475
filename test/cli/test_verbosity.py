"""The options --verbose and --quiet of every command, and the log of a matrix."""

import logging

import pytest
from support.commands import commands, osmabench

from osmabench_ros.base import log
from osmabench_ros.base.log import LOG_FILE, log_to
from osmabench_ros.base.progress import shown_progress
from osmabench_ros.bringup.preflight import Finding, Severity
from osmabench_ros.cli import doctor
from osmabench_ros.errors import ConfigError, RunError


def test_every_command_takes_both_options():
    for name, command in commands().items():
        options = {text for item in command.params for text in item.opts}
        assert {'--verbose', '--quiet'} <= options, name


def test_options_that_contradict_each_other_are_refused():
    with pytest.raises(ConfigError, match='contradict'):
        osmabench('conditions', 'list', '--verbose', '--quiet')


@pytest.mark.parametrize(
    ('options', 'shown'),
    [
        ({}, ['step', 'warning: careful', 'broken']),
        ({'quiet': True}, ['broken']),
        ({'verbose': True}, ['step', 'detail', 'warning: careful', 'broken']),
    ],
)
def test_the_terminal_shows_as_much_as_is_wanted_and_the_log_everything(
    options, shown, tmp_path, capsys
):
    log.set_verbosity(**options)
    with log_to(tmp_path), shown_progress() as progress:
        progress('step', 0.5)
        log.LOG.debug('detail')
        log.LOG.warning('careful')
        log.LOG.error('broken')
    log.set_verbosity()
    assert capsys.readouterr().err.splitlines() == shown
    lines = (tmp_path / LOG_FILE).read_text('utf-8').splitlines()
    assert [line.partition(': ')[2] for line in lines] == ['step', 'detail', 'careful', 'broken']


def test_an_error_names_the_log_and_its_traceback_is_there(tmp_path):
    with pytest.raises(RunError) as error, log_to(tmp_path):
        raise RunError('no map')
    assert error.value.log_file == tmp_path / LOG_FILE
    text = (tmp_path / LOG_FILE).read_text('utf-8')
    assert 'Traceback' in text
    assert 'no map' in text
    assert not [item for item in log.LOG.handlers if isinstance(item, logging.FileHandler)]


def test_a_healthy_stack_is_a_few_lines():
    names = ('run_info', 'camera/color/image_raw', 'camera/depth/image_rect', 'lighting')
    findings = [Finding(name, Severity.OK, 'fine') for name in names]
    own = Finding('/my_mapper/cloud', Severity.OK, '1 message')
    wrong = Finding('camera/depth/image_rect', Severity.WARN, 'slow')
    shown = doctor._without_passed([*findings, own, wrong])
    assert [item.part for item in shown] == [
        'run_info', 'camera/color/image_raw', '/my_mapper/cloud', 'camera/depth/image_rect',
    ]  # fmt: skip
