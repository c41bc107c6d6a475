"""Transforms of others: how many are kept, and which contest ours."""

from types import SimpleNamespace

import pytest
from geometry_msgs.msg import TransformStamped

from osmabench_ros.errors import ContractError
from osmabench_ros.nodes import stack_connection
from osmabench_ros.nodes.frame_publisher import REMEMBERED, TransformAuthority
from osmabench_ros.nodes.stack_connection import TransformHistory


def message(count, child='a', parent='world'):
    edge = SimpleNamespace(header=SimpleNamespace(frame_id=parent), child_frame_id=child)
    return SimpleNamespace(transforms=[edge] * count)


@pytest.fixture
def history(monkeypatch):
    monkeypatch.setattr(stack_connection, 'interface_class', lambda _name: None)
    monkeypatch.setattr(stack_connection, 'MAX_MOVING', 100)
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


def edge(parent, child, stamp_s=1, x=0.5):
    transform = TransformStamped(child_frame_id=child)
    transform.header.frame_id = parent
    transform.header.stamp.sec = stamp_s
    transform.transform.translation.x = x
    return transform


@pytest.fixture
def authority():
    authority = TransformAuthority()
    authority.claim([edge('base_link', 'camera_link', 0)], fixed=True)
    authority.claim([edge('world', 'base_link')], fixed=False)
    return authority


def test_our_own_echo_and_the_edges_of_others_are_no_conflict(authority):
    heard = [edge('world', 'base_link'), edge('base_link', 'camera_link', 0), edge('map', 'odom')]
    assert authority.contested(heard) is None


@pytest.mark.parametrize(
    'foreign',
    [edge('odom', 'base_link'), edge('world', 'base_link', x=0.6), edge('/odom', '/base_link')],
)
def test_another_parent_and_another_pose_contest_the_edge(authority, foreign):
    parent = foreign.header.frame_id.lstrip('/')
    expected = (('world', 'base_link'), (parent, 'base_link'))
    assert authority.contested([edge('map', 'odom'), foreign]) == expected


def test_the_way_of_others_is_what_was_heard_of_it(authority):
    assert authority.contested([edge('/map', 'odom'), edge('odom', 'base_link')]) is not None
    assert authority.way_of_others('base_link') == ['map->odom', 'odom->base_link']
    assert authority.contested([edge('base_link', 'map')]) is None
    assert authority.way_of_others('base_link') == ['odom->base_link']


def test_what_is_fixed_is_remembered_for_good(authority):
    for stamp_s in range(REMEMBERED + 10):
        authority.claim([edge('world', 'base_link', stamp_s)], fixed=False)
    assert authority.contested([edge('base_link', 'camera_link', 0)]) is None
    assert authority.contested([edge('world', 'base_link', REMEMBERED)]) is None
    assert authority.contested([edge('world', 'base_link', 3)]) is not None
