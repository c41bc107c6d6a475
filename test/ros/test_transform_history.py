"""How many transforms of others are kept."""

from types import SimpleNamespace

import pytest

pytest.importorskip('rclpy')
pytestmark = pytest.mark.ros

from osmabench_ros.errors import ContractError
from osmabench_ros.nodes import stack_connection
from osmabench_ros.nodes.stack_connection import TransformHistory


def message(count, child='a', parent='world'):
    edge = SimpleNamespace(header=SimpleNamespace(frame_id=parent), child_frame_id=child)
    return SimpleNamespace(transforms=[edge] * count)


@pytest.fixture
def history(monkeypatch):
    monkeypatch.setattr(stack_connection, 'interface_class', lambda _name: None)
    monkeypatch.setattr(stack_connection, 'KEPT', 100)
    monkeypatch.setattr(stack_connection, 'MAX_STATIC', 10)
    node = None
    return TransformHistory(node)


@pytest.mark.parametrize(('transforms', 'messages'), [(1, 100), (30, 3), (0, 100), (1000, 0)])
def test_a_flood_is_kept_to_a_number_of_transforms(transforms, messages, history):
    for _ in range(300):
        history.on_moving(message(transforms))
    assert len(history.messages) == messages


def test_fixed_frames_without_end_are_told(history):
    for number in range(50):
        history.on_static(message(1, str(number % 10)))
    with pytest.raises(ContractError, match='topic "/tf_static": more than 10 transforms'):
        history.on_static(message(1, 'one more'))


def test_frames_are_connected_by_whatever_was_said_of_them(history):
    history.on_moving(message(1, 'base', 'odom'))
    history.on_static(message(1, '/odom', '/map'))
    assert history.connects('map', 'base')
    assert not history.connects('world', 'base')
    history.on_static(message(1, 'map'))
    assert history.connects('world', 'base')
    assert history.connects('base', 'odom')
    assert history.frames == ('base', 'map', 'odom', 'world')
    history.on_static(message(1, 'world', 'base'))
    assert not history.connects('world', 'base')
