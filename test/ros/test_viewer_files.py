"""The RViz configuration and the Foxglove layout against the topics that exist."""

import json
from pathlib import Path

import pytest
import yaml
from geometry_msgs.msg import PoseStamped
from nav_msgs.msg import Path as PathMessage
from rclpy.qos import DurabilityPolicy, HistoryPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import CameraInfo, Image, PointCloud2
from visualization_msgs.msg import MarkerArray

from osmabench_ros.base import contract as topics
from osmabench_ros.ros import qos
from osmabench_ros.ros.messages.markers import EDGES, LABELS, NODES, STRUCTURE
from osmabench_ros.ros.messages.message_definitions import message_class
from osmabench_ros.semantics.scene_graph import RelationType

CONFIG = Path(__file__).resolve().parents[2] / 'config'
FRAMES = qos.frame_profile(lockstep=True)
OF_RUNS = {topics.Delivery.FRAME: FRAMES, topics.Delivery.LATCHED: qos.latched_profile()}
OF_VIEWER = {
    topics.VIEW_PATH: PathMessage,
    **dict.fromkeys(
        (topics.VIEW_CLASSES, topics.VIEW_ERRORS, topics.VIEW_GROUND_TRUTH), PointCloud2
    ),
    **dict.fromkeys((topics.VIEW_GRAPH, topics.VIEW_GRAPH_ERRORS), MarkerArray),
}
# What a viewer may show, with the profile of the publisher.
PUBLISHED = {
    **{
        item.name: (message_class(item.message_type), OF_RUNS[item.delivery])
        for item in topics.CONTRACT
        if item.delivery in OF_RUNS
    },
    **{name: (kind, qos.latched_profile()) for name, kind in OF_VIEWER.items()},
    topics.VIEW_SEMANTIC: (Image, qos.observer_profile()),
}

DISPLAYS = {
    'Image': Image, 'Pose': PoseStamped, 'Path': PathMessage, 'PointCloud2': PointCloud2,
    'MarkerArray': MarkerArray,
}  # fmt: skip


def rviz():
    text = (CONFIG / 'rviz' / 'osmabench.rviz').read_text()
    return yaml.safe_load(text)['Visualization Manager']


def displays():
    return [item for item in rviz()['Displays'] if 'Topic' in item]


def profile(topic):
    """Return the profile that RViz subscribes with, by the words of its configuration."""

    def choice(kind, name):
        return kind[topic[f'{name} Policy'].upper().replace(' ', '_')]

    kinds = {'history': HistoryPolicy, 'reliability': ReliabilityPolicy,
             'durability': DurabilityPolicy}  # fmt: skip
    policies = {name: choice(kind, name.capitalize()) for name, kind in kinds.items()}
    return QoSProfile(depth=topic['Depth'], **policies)


@pytest.mark.parametrize('display', displays(), ids=lambda item: item['Name'])
def test_rviz_subscribes_to_what_is_published_and_gets_it(display):
    name = display['Topic']['Value']
    kind, published = PUBLISHED[name]
    assert kind is DISPLAYS[display['Class'].removeprefix('rviz_default_plugins/')]
    wanted = profile(display['Topic'])
    qos.require_compatible(name, ('publisher', published), ('rviz', wanted))
    assert wanted.durability == published.durability, 'what is latched comes to late viewers'
    if published.reliability == ReliabilityPolicy.RELIABLE and published is FRAMES:
        assert wanted.reliability == ReliabilityPolicy.BEST_EFFORT, 'a viewer slows no run down'


def test_rviz_starts_in_the_world_with_a_name_for_every_display():
    manager = rviz()
    assert manager['Global Options']['Fixed Frame'] == topics.WORLD_FRAME
    names = [item['Name'] for item in manager['Displays']]
    assert len(set(names)) == len(names)
    assert all(item['Enabled'] is item['Value'] for item in manager['Displays'])
    shown = {item['Topic']['Value'] for item in displays() if item['Enabled']}
    assert {topics.COLOR, topics.DEPTH, topics.VIEW_SEMANTIC} <= shown
    assert {topics.VIEW_CLASSES, topics.VIEW_GRAPH, topics.VIEW_PATH} <= shown


def test_relations_that_hide_the_others_are_off_and_names_are_those_of_the_markers():
    configured = [item['Namespaces'] for item in displays() if 'Namespaces' in item]
    configured += [
        {name: item['visible'] for name, item in config['namespaces'].items()}
        for config in layout()['configById']['3D!map']['topics'].values()
        if 'namespaces' in config
    ]
    assert len(configured) == 6
    known = {f'{EDGES}/{item.value}' for item in RelationType}
    known |= {NODES, LABELS, f'{STRUCTURE}/{NODES}', f'{STRUCTURE}/{LABELS}'}
    for namespaces in configured:
        assert set(namespaces) == known
        assert {name for name, on in namespaces.items() if on} == {
            'nodes', 'labels', 'edges/on', 'edges/in', 'edges/under',
        }  # fmt: skip


def layout():
    return json.loads((CONFIG / 'foxglove' / 'osmabench.json').read_text())


def panels(node):
    """Yield the panels of a layout tree, checking its splits."""
    if isinstance(node, str):
        yield node
        return
    assert set(node) <= {'direction', 'first', 'second', 'splitPercentage'}
    assert node['direction'] in ('row', 'column')
    assert 0 < node['splitPercentage'] < 100
    yield from panels(node['first'])
    yield from panels(node['second'])


def test_every_panel_of_the_layout_is_configured_once():
    data = layout()
    placed = list(panels(data['layout']))
    assert sorted(placed) == sorted(data['configById'])
    assert {name.split('!')[0] for name in placed} == {
        '3D', 'Image', 'StateTransitions', 'Plot', 'DiagnosticSummary', 'RawMessages',
    }  # fmt: skip


def absolute():
    return {f'/{name}': kind for name, (kind, _profile) in PUBLISHED.items()}


def test_foxglove_shows_topics_that_exist_by_panels_that_can():
    known = absolute()
    for name, config in layout()['configById'].items():
        kind = name.split('!')[0]
        if kind == '3D':
            assert set(config['topics']) <= set(known)
            assert config['followTf'] == topics.WORLD_FRAME
        elif kind == 'Image':
            mode = config['imageMode']
            assert known[mode['imageTopic']] is Image
            assert known[mode.get('calibrationTopic', '/camera/color/camera_info')] is CameraInfo
        elif kind == 'RawMessages':
            assert config['topicPath'] in known
        elif kind == 'DiagnosticSummary':
            assert config['topicToRender'] == topics.DIAGNOSTICS


def test_plotted_fields_are_fields_of_their_messages():
    from osmabench_ros import msg

    configs = layout()['configById'].values()
    paths = [path['value'] for config in configs for path in config.get('paths', ())]
    assert len(paths) >= 5
    for path in paths:
        topic, *fields = path.split('.')
        kind = absolute()[topic]
        for field in fields:
            inner = kind.get_fields_and_field_types()[field.removesuffix('[:]')]
            if field.endswith('[:]'):
                name = inner.removeprefix('sequence<osmabench_ros/').removesuffix('>')
                kind = getattr(msg, name)
