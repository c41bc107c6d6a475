import sys

import pytest

from osmabench_ros.base.extensions import KINDS, MAPPERS, SUITES, extension_names, load_extension
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
    (tmp_path / 'somebodys_package.py').write_text(CODE)
    metadata = tmp_path / 'somebodys_package-1.0.dist-info'
    metadata.mkdir()
    (metadata / 'METADATA').write_text(
        'Metadata-Version: 2.1\nName: somebodys-package\nVersion: 1\n'
    )
    (metadata / 'entry_points.txt').write_text(
        f'[{MAPPERS}]\nmine = somebodys_package:Mine\nbroken = somebodys_package:Absent\n'
        f'[{SUITES}]\nmine = somebodys_package:Mine\n'
    )
    monkeypatch.setattr(sys, 'path', [str(tmp_path), *sys.path])


@pytest.mark.usefixtures('distribution')
def test_another_distribution_adds_a_mapper_and_a_suite():
    labels = LabelSet.from_names('tiny', ['mug'])
    mapper = make_mapper('mine', label_set=labels, seed=3, options={'a': 1})
    assert mapper.arguments == {'label_set': labels, 'seed': 3, 'options': {'a': 1}}
    assert make_suite('mine').name == 'mine'
    assert {'mine', 'oracle'} <= set(extension_names(MAPPERS))


@pytest.mark.usefixtures('distribution')
def test_what_cannot_be_imported_is_told_with_its_place():
    with pytest.raises(ConfigError, match='mapper "broken".*somebodys_package:Absent'):
        load_extension(MAPPERS, 'broken')


@pytest.mark.parametrize('group', KINDS)
def test_unknown_names_are_refused_with_the_choices(group):
    known = extension_names(group)
    assert known
    with pytest.raises(ConfigError, match=f'no {KINDS[group]} "nothing".*{known[0]}'):
        load_extension(group, 'nothing')
