import pytest
from support.distributions import install_distribution

from osmabench_ros.base import configuration
from osmabench_ros.base.configuration import MAPPERS, SUITES, extension_names, load_extension
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.mapper import make_mapper
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.suites.suite import make_suite

CODE = """
class Mine:
    name = 'mine'
    uses_ground_truth = False

    def __init__(self, **arguments):
        self.arguments = arguments
"""


@pytest.fixture
def distribution(tmp_path, monkeypatch):
    """A third-party distribution that adds a mapper and a suite, and a broken one."""
    points = {
        MAPPERS: ['mine = somebodys_package:Mine', 'broken = somebodys_package:Absent',
                  'gone = no_such_module:Mapper'],
        SUITES: ['mine = somebodys_package:Mine'],
    }  # fmt: skip
    install_distribution(tmp_path, monkeypatch, points, somebodys_package=CODE)


@pytest.mark.usefixtures('distribution')
def test_another_distribution_adds_a_mapper_and_a_suite():
    labels = LabelSet.from_names('tiny', ['mug'])
    mapper = make_mapper('mine', label_set=labels, seed=3, options={'a': 1})
    assert mapper.arguments == {'label_set': labels, 'seed': 3, 'options': {'a': 1}}
    assert make_suite('mine').name == 'mine'
    assert {'mine', 'oracle'} <= set(extension_names(MAPPERS))


@pytest.mark.usefixtures('distribution')
@pytest.mark.parametrize(
    ('name', 'place'), [('broken', 'somebodys_package:Absent'), ('gone', 'no_such_module')]
)
def test_what_cannot_be_imported_is_told_with_its_place(name, place):
    with pytest.raises(ConfigError, match=f'mapper "{name}" cannot be imported from "{place}'):
        load_extension(MAPPERS, name)


@pytest.mark.parametrize(('group', 'kind'), [
    (configuration.SIMULATORS, 'simulator'),
    (configuration.MAP_IMPORTERS, 'map importer'),
    (MAPPERS, 'mapper'),
    (SUITES, 'suite'),
    (configuration.LANGUAGE_MODELS, 'language model'),
    (configuration.EFFECTS, 'effect'),
    (configuration.ANSWERERS, 'answerer'),
])  # fmt: skip
def test_unknown_names_are_refused_with_the_choices(group, kind):
    known = extension_names(group)
    assert known
    with pytest.raises(ConfigError, match=f'no {kind} "nothing".*{known[0]}'):
        load_extension(group, 'nothing')
