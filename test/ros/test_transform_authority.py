import pytest

pytestmark = pytest.mark.ros
pytest.importorskip('rclpy')

from geometry_msgs.msg import TransformStamped

from osmabench_ros.nodes.frame_publisher import REMEMBERED, TransformAuthority


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
