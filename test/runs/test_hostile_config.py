"""Any value at any place of a configuration is accepted, or is one ConfigError."""

import copy
import json
from typing import Any

import pytest
from pydantic import Field
from support.documents import put
from support.sizes import few

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, OsmabenchError
from osmabench_ros.mappers.live_method import load_live_method
from osmabench_ros.mappers.offline_method import load_method
from osmabench_ros.runs.config import MatrixConfig, load_config
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.sequences.topics import reading_from_text
from osmabench_ros.simulation.conditions import Condition, load_condition

VALUES = {
    'null': None,
    'true': True,
    'number': 7,
    'negative': -1,
    'fraction': 0.5,
    '400 digits': 10**400,
    'NaN': float('nan'),
    'infinite': float('inf'),
    'empty': '',
    'text': 'x',
    '5,000 characters': 'a' * 5000,
    'path of 5,000 characters': '/a' * 2500,
    'NUL': 'a\0b',
    'half a character': '\ud800',
    'above': '../../x',
    'absolute': '/etc/passwd',
    'list': [1, 'a'],
    'list of lists': [[[]]],
    'mapping': {'a': 1},
    'number as key': {1: 2},
    'bools': [True, {'a': [False]}],
}


def config():
    """Return a configuration that names everything there is, with its defaults."""
    parts = {
        'name': 'x',
        'mappers': [{'name': 'oracle', 'options': {'a': 1}}],
        'suites': [{'name': 'osma_segmentation'}],
        'requirements': [{'suite': 'osma_segmentation', 'metric': 'miou', 'at_least': 0.1}],
    }
    return MatrixConfig.model_validate(parts).model_dump(mode='json')


def places(data, path=()):
    items = data.items() if isinstance(data, dict) else enumerate(data)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def with_value(data, place, value):
    changed = copy.deepcopy(data)
    put(changed, *place, value=value)
    return changed


def outcome(read, path, data):
    """Return the object read from a file, or its error, which is one line."""
    # JSON is YAML, apart from numbers that are none.
    path.write_text(json.dumps(data).replace('NaN', '.nan').replace('Infinity', '.inf'))
    try:
        return read(str(path))
    except OsmabenchError as error:
        found = error
    assert '\n' not in str(found)
    assert len(str(found)) < 5000
    assert path.name in str(found)
    return found


@pytest.mark.parametrize('name', few(VALUES, *list(VALUES)[::4]))
def test_any_value_at_any_place_is_accepted_or_one_error(tmp_path, name):
    data, path = config(), tmp_path / 'x.yaml'
    assert isinstance(outcome(load_config, path, data), MatrixConfig)
    changed = (with_value(data, place, VALUES[name]) for place in places(data))
    found = [outcome(load_config, path, item) for item in changed]
    assert all(isinstance(item, (MatrixConfig, ConfigError)) for item in found)
    assert any(isinstance(item, ConfigError) for item in found)


@pytest.mark.full
@pytest.mark.parametrize('name', VALUES)
def test_any_value_at_any_place_of_a_condition_is_accepted_or_one_error(tmp_path, name):
    path = tmp_path / 'x.yaml'
    data = load_condition('odometry_drift').model_dump(mode='json', exclude_none=True)
    for place in places(data):
        found = outcome(load_condition, path, with_value(data, place, VALUES[name]))
        assert isinstance(found, (Condition, ConfigError))


@pytest.mark.parametrize(
    ('place', 'value'),
    [
        (('scenes', 0, 'seed'), True),
        (('scenes', 0, 'reference'), '~nobody knows/x'),
        (('camera', 'width'), True),
        (('pacing', 'speed_factor'), False),
        (('requirements', 0, 'at_least'), True),
        (('name',), '../../etc'),
        (('name',), '/abs'),
        (('name',), ''),
        (('name',), 'a/b'),
        (('name',), '.'),
        (('name',), 'n' * 300),
        (('mappers', 0, 'name'), '..'),
        (('mappers', 0, 'name'), 'm' * 300),
    ],
)
def test_what_must_not_be_there_is_refused(tmp_path, place, value):
    found = outcome(load_config, tmp_path / 'x.yaml', with_value(config(), place, value))
    assert isinstance(found, ConfigError)
    assert str(place[0]) in str(found)


@pytest.mark.parametrize(
    ('text', 'expected'),
    [
        ('name: [', r'line \d+, column \d+: is not YAML'),
        ('- a', 'mapping'),
        ('', 'mapping'),
        ('? ' + 'a' * 5000 + '\n: 1', 'unknown key'),
        ('1: 2', 'unknown key "1"'),
    ],
)
def test_a_text_that_is_no_configuration_is_one_line(tmp_path, text, expected):
    path = tmp_path / 'x.yaml'
    path.write_text(text)
    with pytest.raises(ConfigError, match=expected) as caught:
        load_config(str(path))
    assert '\n' not in str(caught.value)


PATHS = [
    '/dev/zero', '/proc/self/mem', '/proc/self/mem.yaml', '.', '/', '', 'a' * 300, 'a/' * 2500,
    'a\0b', 'a\0b.yaml', '/dev/zero/x.yaml', 'x' * 5000 + '.yaml',
]  # fmt: skip


@pytest.mark.parametrize('path', PATHS)
@pytest.mark.parametrize(
    'read', [load_config, load_condition, load_method, load_live_method, reading_from_text]
)
def test_a_path_that_is_no_file_is_one_line(read, path):
    if read is reading_from_text and path == '':
        pytest.skip('means the topics of the contract')
    with pytest.raises(ConfigError) as caught:
        read(path)
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 5000


@pytest.mark.parametrize('name', ['../../x', '/abs', '.', '..', '', 'a/b', 'a\0b', 'c' * 300])
def test_the_name_of_a_condition_leads_nowhere(tmp_path, name):
    found = outcome(load_condition, tmp_path / 'x.yaml', {'name': name})
    assert isinstance(found, ConfigError)


@pytest.mark.parametrize('file', ['../x', '/etc/x', 'a/../../x', ''])
def test_files_of_a_method_stay_in_its_folder(tmp_path, file):
    from osmabench_ros.base.documents import read_yaml

    method = sorted(config_path('methods').glob('*.yaml'))[0]
    data = read_yaml(method, ConfigError)
    assert not isinstance(outcome(load_method, tmp_path / 'x.yaml', data), OsmabenchError)
    found = outcome(load_method, tmp_path / 'x.yaml', {**data, 'files': {file: 'text'}})
    assert isinstance(found, ConfigError)


@pytest.mark.parametrize('text', ['../../etc', '/', '.', 'a' * 300, 'ä' * 200, '\0', ''])
def test_a_run_has_one_folder_whatever_its_names_are(text):
    run = RunIdentity(SceneKey(text, text, 2**31), text, text, text, 1e-300).run_id
    assert '/' not in run
    assert '\0' not in run
    assert len(run.encode()) <= 255
    assert run != RunIdentity(SceneKey(text, f'{text}x', 2**31), text, text, text, 1e-300).run_id


def test_true_is_taken_where_it_belongs():
    class Options(Strict):
        flag: bool = False
        either: bool | float = 0.0
        anything: dict[str, Any] = Field(default_factory=dict)
        number: float = 0.0

    made = Options.model_validate({'flag': True, 'either': True, 'anything': {'a': [True]}})
    assert made.flag
    assert made.either is True
    with pytest.raises(ValueError, match='neither numbers nor texts'):
        Options.model_validate({'number': True})
