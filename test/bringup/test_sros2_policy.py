"""The SROS2 policy grants each node the rights that it uses, and no others."""

import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import defaultdict
from contextlib import contextmanager

import pytest

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]
pytest.importorskip('rclpy')

import rclpy
from rclpy.node import Node
from support.waiting import wait_until
from support.world.bags import make, write_messages

from osmabench_ros.base import contract as topics
from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.contract import (
    BAG_PLAYER,
    BAG_RECORDER,
    BRIDGE,
    CONTRACT,
    EVALUATOR,
    MAPPER,
    RECORDER,
)
from osmabench_ros.bringup.isolation import make_isolated_environment, private_domain
from osmabench_ros.bringup.runner.observer import RunObserver
from osmabench_ros.nodes import frame_publisher
from osmabench_ros.ros.messages import map_messages

RUNNER = 'osmabench_runner'

KINDS = ('publish', 'subscribe', 'reply', 'request')
ACTION_SERVICES = ('send_goal', 'get_result', 'cancel_goal')
ACTION_TOPICS = ('feedback', 'status')

VISION = {f'/{topics.VISION_LABEL_INFO}', f'/{topics.SEMANTIC_MAP_DETECTIONS}'}
# What nodes have only where a package is installed.
OPTIONAL = (
    (frame_publisher.TF_AVAILABLE, {'/tf', '/tf_static'}),
    (map_messages.VISION_AVAILABLE, VISION),
)

COMMANDS = {
    MAPPER: ('mapper', {'options': '"{{albedo: true}}"'}),
    RECORDER: ('map_recorder', {'map_directory': '{tmp}/map', 'frames_directory': '{tmp}/frames'}),
    EVALUATOR: ('evaluator', {'ground_truth_directory': '{tmp}', 'output_directory': '{tmp}/out'}),
    'map_viewer': ('map_viewer', {}),
    # With the topics that a run has by itself; users add topics of a stack or a bag.
    'map_adapter': ('map_adapter', {'map_topic': 'none'}),
    'bag_recorder': ('bag_recorder', {'bag_directory': '{tmp}/bag', 'acks': True}),
    BAG_PLAYER: ('bag_player', {'bag': '{tmp}/played', 'paused': True}),
    BRIDGE: (
        'simulator_bridge',
        {'image_width': 64, 'image_height': 48, 'goals': 1, 'seed': 3, 'pacing': 'realtime'},
    ),
}


# Where the name that a node has in a run is not that of its enclave.
NODE_NAMES = {'map_adapter': MAPPER}


def granted():
    """Return the rights in the policy, by enclave."""
    tree = ET.parse(config_path('sros2', 'policy.xml'))
    found = {}
    for enclave in tree.iter('enclave'):
        [profile] = enclave.iter('profile')
        node = enclave.attrib['path'].removeprefix('/osmabench/')
        assert profile.attrib['node'] == NODE_NAMES.get(node, node)
        found[node] = rights = defaultdict(set)
        for group in profile:
            for kind, rule in group.attrib.items():
                assert rule == 'ALLOW'
                for item in group:
                    grant(rights, kind, full_name(item.text or '', node))
    return found


def full_name(name, node):
    assert '*' not in name
    return f'/{node}{name[1:]}' if name.startswith('~') else f'/{name.lstrip("/")}'


def grant(rights, kind, name):
    if kind == 'execute':
        rights['reply'] |= {f'{name}/_action/{part}' for part in ACTION_SERVICES}
        rights['publish'] |= {f'{name}/_action/{part}' for part in ACTION_TOPICS}
    else:
        assert name not in rights[kind], f'{name} twice'
        rights[kind].add(name)


def rights_in_use(node, name):
    """Return the rights that a node uses, from the graph."""
    found = {}
    for kind, of_graph in zip(
        KINDS, ('publisher', 'subscriber', 'service', 'client'), strict=True
    ):
        list_names = getattr(node, f'get_{of_graph}_names_and_types_by_node')
        found[kind] = {topic for topic, _types in list_names(name, '/')}
    return found


@pytest.fixture(scope='module')
def in_use(tmp_path_factory):
    """Start every node of a run with the runner's own, and look at the graph."""
    tmp = tmp_path_factory.mktemp('sros2')
    write_messages(tmp / 'played', [(topics.CLOCK, 0, make('rosgraph_msgs/msg/Clock'))])
    with private_domain() as domain, pytest.MonkeyPatch.context() as shell:
        environment = dict(make_isolated_environment(domain))
        for name, value in environment.items():
            shell.setenv(name, value)
        context = rclpy.Context()
        rclpy.init(context=context, domain_id=domain, args=[])
        observer, look = RunObserver(domain, 60.0), Node('look', context=context)
        try:
            # A bridge ends a run in which a second node publishes its clock or the map.
            apart = ['map_adapter', BAG_PLAYER]
            with started([n for n in COMMANDS if n not in apart], tmp, environment) as nodes:
                rights = wait_for_all(look, {*nodes, RUNNER}, nodes)
            with started(apart, tmp, environment) as nodes:
                rights |= wait_for_all(look, set(nodes), nodes)
            yield rights
        finally:
            observer.close()
            look.destroy_node()
            context.try_shutdown()


@contextmanager
def started(nodes, tmp, environment):
    processes = {node: start(node, tmp, environment) for node in nodes}
    try:
        yield processes
    finally:
        for process in processes.values():
            process.terminate()
        for process in processes.values():
            process.wait(timeout=180)


def start(node, tmp, environment):
    executable, values = COMMANDS[node]
    pairs = {'autostart': 'true', **{k: str(v).format(tmp=tmp) for k, v in values.items()}}
    options = [text for name, value in pairs.items() for text in ('-p', f'{name}:={value}')]
    command = [sys.executable, '-m', f'osmabench_ros.nodes.{executable}_node', '--ros-args']
    command += ['-r', f'__node:={node}', *options]
    nowhere = {'stdout': subprocess.DEVNULL, 'stderr': subprocess.DEVNULL}
    return subprocess.Popen(command, env=environment, **nowhere)


def wait_for_all(look, names, processes):
    """Return the rights in use once all nodes are there and nothing has changed for a while."""
    seen = {}
    since_s = time.monotonic()

    def settled():
        nonlocal seen, since_s
        assert {process.poll() for process in processes.values()} <= {None}
        now = {n: rights_in_use(look, n) for n in names if n in look.get_node_names()}
        if now != seen:
            seen, since_s = now, time.monotonic()
        bridges = [now[name]['publish'] for name in names & {BRIDGE} if name in now]
        full = len(now) == len(names) and all('/run_state' in item for item in bridges)
        return full and time.monotonic() - since_s > 3.0

    wait_until(settled, 90.0, step=lambda: time.sleep(0.2), state=lambda: sorted(seen))
    return seen


def optional():
    lacking = [names for available, names in OPTIONAL if not available]
    return set().union(*lacking)


@pytest.mark.full
@pytest.mark.parametrize('node', [*COMMANDS, RUNNER])
@pytest.mark.parametrize('kind', KINDS)
def test_a_node_may_do_what_it_does_and_nothing_else(node, kind, in_use):
    allowed = granted()[node].get(kind, set())
    used = in_use[node][kind]
    if node == RUNNER and kind == 'request':
        # Its clients live only as long as a transition takes.
        used = {f'/{name}/change_state' for name in (MAPPER, RECORDER, EVALUATOR, BRIDGE)}
    assert allowed - optional() == used


@pytest.mark.parametrize('topic', CONTRACT, ids=lambda topic: topic.name)
def test_the_policy_grants_a_topic_to_whom_a_run_declares(topic):
    acknowledges = {MAPPER, RECORDER, BAG_RECORDER} if topic.name == topics.FRAME_ACK else set()
    name = f'/{topic.name.lstrip("/")}'
    allowed = {node for node, rights in granted().items() if name in rights['publish']}
    # A player has the topics of its bag, and /clock if that has none.
    allowed = {NODE_NAMES.get(node, node) for node in allowed - {'bag_player'}}
    assert allowed == {topic.publisher} | acknowledges


def test_the_policy_names_no_node_that_is_not_looked_at():
    assert set(granted()) == {*COMMANDS, RUNNER}
