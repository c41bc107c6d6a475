"""Who may start a node of some name in a ROS domain, without launch."""

import pytest

from osmabench_ros.bringup import isolation
from osmabench_ros.bringup.isolation import claim_nodes, full_name

pytestmark = pytest.mark.ros


@pytest.mark.parametrize(
    ('namespace', 'expected'),
    [('', '/mapper'), ('robot', '/robot/mapper'), ('/a/b/', '/a/b/mapper')],
)
def test_a_name_has_its_namespace_whole(namespace, expected):
    assert full_name(namespace, 'mapper') == expected


def test_a_node_is_claimed_once_for_a_domain_and_namespace(ros_domain):
    first, second = {}, {}
    assert claim_nodes(first, ros_domain, ['/mapper']) == []
    assert claim_nodes(first, ros_domain, ['/mapper']) == [], 'it is ours already'
    assert claim_nodes(second, ros_domain, ['/evaluator', '/mapper']) == ['/mapper']
    assert claim_nodes(second, ros_domain, ['/robot/mapper']) == []


def test_an_unclaimed_node_is_seen_on_the_graph(ros_domain, ros_context, monkeypatch):
    import rclpy

    # It looks until it sees one; a busy machine takes its time to discover.
    monkeypatch.setattr(isolation, 'LOOK_S', 60.0)
    node = rclpy.create_node('mapper', namespace='robot', context=ros_context)
    names = ['/robot/mapper', '/robot/evaluator']
    assert claim_nodes({}, ros_domain, names) == ['/robot/mapper']
    node.destroy_node()
