import numpy as np
from std_msgs.msg import Header

from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.maps.standard_messages import convert_records, read_records
from osmabench_ros.ros.messages.map_messages import point_cloud_message


def cloud(count):
    rng = np.random.default_rng(0)
    return DenseMap(
        rng.normal(size=(count, 3)).astype(np.float32),
        rng.integers(0, 256, (count, 3)).astype(np.uint8),
        rng.integers(0, 50, count).astype(np.int32),
        rng.integers(0, 9, count).astype(np.int32),
    )


def read(message):
    return convert_records(read_records(message))[0]


def test_points_labels_instances_and_colours_survive_the_message():
    dense = cloud(20)
    message = point_cloud_message(dense, Header(frame_id='world'))
    again = read(message)
    for name in ('points', 'colors', 'labels', 'instances'):
        np.testing.assert_array_equal(getattr(again, name), getattr(dense, name))
    assert message.header.frame_id == 'world'
    assert message.row_step == message.point_step * message.width == len(message.data)


def test_a_large_cloud_is_thinned_evenly_from_end_to_end():
    dense = cloud(1000)
    again = read(point_cloud_message(dense, Header(), max_points=100))
    assert len(again.points) == 100
    np.testing.assert_array_equal(again.points[[0, -1]], dense.points[[0, -1]])
