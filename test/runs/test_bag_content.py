"""Content of bags apart from maps; maps at a time, from cut bags and from bags of Humble."""

import os

import pytest
from rosbags.rosbag2 import StoragePlugin
from support.figures import figure_of
from support.world.bags import FOREIGN, S, header, make, point_cloud, write_messages
from support.world.maps import cloud, labelled_map, write_inputs
from support.world.recorded_room import START_NS, labels, own_map, write_room

from osmabench_ros.errors import SequenceError
from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.runs.bag_content import read_content
from osmabench_ros.runs.bag_evaluation import BagSource, evaluate_bag
from osmabench_ros.runs.config import SuiteConfig, load_config
from osmabench_ros.sequences.bags.bag import open_bag


def content_of(folder):
    with open_bag(folder) as bag:
        return read_content(bag)


def evaluated(bag, out, truth=None, **more):
    source = BagSource(path=bag, config=load_config('single_run'), run=truth, device='cpu', **more)
    return evaluate_bag(source, [SuiteConfig(name='map_geometry')], out).report


def test_labels_come_from_either_package(tmp_path):
    own = content_of(write_room(tmp_path / 'own', labels()))
    assert {item.name: item.structure for item in own.label_set.classes} == {
        'chair': False, 'floor': True, 'table': False,
    }  # fmt: skip
    classes = [
        make('vision_msgs/VisionClass', class_id=number, class_name=name)
        for number, name in ((7, 'Coffee_table'), (3, 'chair'))
    ]
    message = make('vision_msgs/LabelInfo', class_map=classes)
    vision = content_of(write_messages(tmp_path / 'vision', [('/labels', 5, message)]))
    assert [(item.id, item.name) for item in vision.label_set.classes] == [
        (3, 'chair'),
        (7, 'coffee table'),
    ]
    twice = make('vision_msgs/LabelInfo', class_map=[classes[0], classes[0]])
    broken = content_of(write_messages(tmp_path / 'twice', [('/labels', 5, twice)]))
    with pytest.raises(SequenceError, match=r'"/labels".*occurs more than once'):
        _ = broken.label_set


def test_latency_of_simulated_time_is_that_of_the_clock(tmp_path):
    messages = []
    for i in range(50):
        clock = make('rosgraph_msgs/Clock', clock=header(i * S // 10).stamp)
        messages.append(('/clock', START_NS + i * S // 5, clock))
    for i in range(10, 40, 10):
        image = make('sensor_msgs/Image', header=header(i * S // 10 - S // 4))
        messages.append(('/image', START_NS + i * S // 5 + 1, image))
    messages.sort(key=lambda item: item[1])
    timing = content_of(write_messages(tmp_path / 'bag', messages)).timings()['/image']
    assert timing.latency_p50_s == pytest.approx(0.25)
    assert timing.count == 3


def growing(tmp_path, **how):
    seen = cloud()
    messages = []
    for i in (1, 2, 3):
        part = DenseMap(seen.points[: 100 * i])
        messages.append(('/cloud_map', START_NS + i * S, point_cloud(part, START_NS + i * S)))
    return write_messages(tmp_path / 'bag', messages, **how)


def test_the_map_is_scored_as_it_was_at_a_time(tmp_path):
    _, truth = write_inputs(tmp_path, labelled_map())
    bag = growing(tmp_path)
    # The first message is at 1 s of the recording's second count: 0 s after its start.
    reports = [evaluated(bag, tmp_path / str(at), truth, at_s=at) for at in (0.0, 1.5, None)]
    shares = [figure_of(report.metrics, 'coverage', suite='map_geometry') for report in reports]
    assert shares == [pytest.approx(1 / 3), pytest.approx(2 / 3), 1.0]
    report = evaluated(bag, tmp_path / 'last', truth)
    assert any('geometry only' in remark for remark in report.remarks)
    assert report.map_topic == '/cloud_map'


def test_a_bag_that_was_cut_off_is_read_as_far_as_it_goes_and_says_so(tmp_path):
    made = labelled_map()
    filler = make('std_msgs/String', data='x' * 300_000)
    messages = [*own_map(made), labels()]
    messages += [('/filler', START_NS + 5 * S + i, filler) for i in range(20)]
    bag = write_room(tmp_path / 'bag', *messages)
    [file] = bag.glob('*.mcap')
    os.truncate(file, file.stat().st_size * 3 // 4)
    report = evaluated(bag, tmp_path / 'out')
    assert figure_of(report.metrics, 'points', suite='map_statistics') == 300
    assert any(remark.startswith('the bag is not complete') for remark in report.remarks)


def test_a_bag_of_humble_takes_definitions_from_files(tmp_path):
    seen = [make('vision_msgs/Detection3D', header=header(), id='5')]
    message = make('vision_msgs/Detection3DArray', header=header(), detections=seen)
    seen[0].bbox.size.x = seen[0].bbox.center.orientation.w = 1.0
    bag = write_messages(
        tmp_path / 'bag', [('/boxes', START_NS, message)], StoragePlugin.SQLITE3, version=5
    )
    with pytest.raises(SequenceError, match=r'vision_msgs/msg/Detection3DArray.*--msg-path'):
        evaluated(bag, tmp_path / 'out')
    assert not (tmp_path / 'out').exists()
    folder = tmp_path / 'vision_msgs' / 'msg'
    folder.mkdir(parents=True)
    for name, text in FOREIGN.items():
        if name.startswith('vision_msgs'):
            (folder / f'{name.rpartition("/")[2]}.msg').write_text(text)
    report = evaluated(bag, tmp_path / 'out', msg_paths=(folder,))
    assert figure_of(report.metrics, 'nodes', suite='map_statistics') == 1
    assert figure_of(report.metrics, 'points', suite='map_statistics') is None
    assert any('no points' in remark for remark in report.remarks)


def test_an_empty_bag_is_named(tmp_path):
    with pytest.raises(SequenceError, match='holds no message'):
        evaluated(write_messages(tmp_path / 'bag', []), tmp_path / 'out')


def test_equal_bags_give_equal_reports(tmp_path):
    bag = growing(tmp_path)
    for name in ('one', 'two'):
        evaluated(bag, tmp_path / name)
    one, two = ((tmp_path / name / 'report.json').read_bytes() for name in ('one', 'two'))
    assert one == two
