import pytest

from osmabench_ros.semantics.labels import is_structure, is_unnamed


@pytest.mark.parametrize(
    'name', ['wall', 'Bathroom_Wall', 'door', 'door frame', 'room window', 'FLOOR']
)
def test_structure(name):
    assert is_structure(name)


@pytest.mark.parametrize(
    'name', ['cabinet door', 'wall clock', 'floor lamp', 'window curtain', 'table', '']
)
def test_things(name):
    assert not is_structure(name)


def test_unnamed():
    assert is_unnamed('Unknown')
    assert is_unnamed('')
    assert not is_unnamed('cup')
