import dataclasses

import numpy as np
import pytest
from support.world.bags import make, point_cloud

from osmabench_ros.errors import ContractError
from osmabench_ros.maps.importer import TopicOptions
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.maps.standard_messages import map_of_point_cloud
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet

LABELS = LabelSet.from_names('room', ['chair', 'table'])
POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [np.nan, 0, 0], [5, 5, 5]], np.float32)
DENSE = DenseMap(
    POINTS,
    np.arange(15, dtype=np.uint8).reshape(5, 3),
    np.array([1, 1, 2, 2, 0], np.int32),
    np.array([7, 7, 9, 9, 0], np.int32),
)


def read(message, label_set=LABELS):
    return map_of_point_cloud(message, '/cloud', TopicOptions('dualmap', label_set))


@pytest.mark.parametrize('names', [{}, {'label': 'semantic', 'instance': 'object_id'}])
def test_labels_and_instances_become_a_map(names):
    made = read(point_cloud(DENSE, 3_000_000_005, '/odom', **names))
    assert (made.header.frame_id, made.header.stamp_ns) == ('odom', 3_000_000_005)
    assert made.header.provenance.method == 'dualmap'
    np.testing.assert_array_equal(made.dense.points, POINTS[[0, 1, 2, 4]])
    np.testing.assert_array_equal(made.dense.colors, DENSE.colors[[0, 1, 2, 4]])
    assert made.dense.labels.tolist() == [1, 1, 2, UNLABELLED]
    assert made.extras == {'points_dropped_because_not_finite': 1}
    assert [(node.id, node.label) for node in made.graph.nodes] == [(7, 'chair'), (9, 'table')]
    np.testing.assert_array_equal(made.graph.by_id[7].box.maximum, [1, 0, 0])
    assert made.graph.frame_id == 'odom'


def test_labels_without_meaning_keep_their_numbers():
    made = read(point_cloud(DENSE), None)
    assert [node.label for node in made.graph.nodes] == ['class 1', 'class 2']
    assert made.dense.labels.tolist() == [1, 1, 2, UNLABELLED]


def test_a_bare_cloud_is_geometry_only():
    """As RTAB-Map's cloud_map: x, y, z, rgb."""
    made = read(point_cloud(DenseMap(POINTS[:3], DENSE.colors[:3])), None)
    assert made.dense.labels is None
    assert made.dense.instances is None
    assert (made.graph.nodes, made.label_set) == ((), None)


def test_a_cloud_at_fault_is_named():
    unknown = dataclasses.replace(DENSE, labels=np.full(5, 40, np.int32))
    with pytest.raises(ContractError, match=r'"/cloud": label ids \[40\].*--labels'):
        read(point_cloud(unknown))
    message = point_cloud(DENSE)
    message.width = 900
    with pytest.raises(ContractError, match='"/cloud".*900 points'):
        read(message)
    with pytest.raises(ContractError, match='x, y, z are needed'):
        read(make('sensor_msgs/PointCloud2', point_step=4))
