"""What settings the nodes of a run get."""

from pathlib import Path

import pytest
import yaml
from support.world.runs import matrix_config, plans_of

from osmabench_ros.errors import ConfigError

pytestmark = pytest.mark.ros


def test_the_evaluator_finds_text_features_wherever_it_starts(tmp_path):
    from osmabench_ros.bringup.definition import nodes_of_run

    config = matrix_config(text_features={'clip': 'text/clip.npy'})
    [plan] = plans_of(config, tmp_path)
    [evaluator] = [spec for spec in nodes_of_run(plan) if spec.name == 'evaluator']
    assert evaluator.settings.text_features == {'clip': Path.cwd() / 'text' / 'clip.npy'}


def specs(tmp_path, mapper):
    """Return the nodes of a run with a mapper, by name."""
    from osmabench_ros.bringup.definition import nodes_of_run

    config = matrix_config(mappers=[mapper])
    [plan] = plans_of(config, tmp_path, 'a', 'flat')
    return {spec.name: spec for spec in nodes_of_run(plan)}


def test_options_may_name_the_folder_of_the_run(tmp_path):
    options = {'work': '${run}/method', 'scene': '${scene}', 'limits': [1, '${condition}']}
    mapper = {'name': 'bbq', 'implementation': 'offline', 'options': options}
    settings = specs(tmp_path, mapper)['mapper'].settings
    assert settings.mapper == 'offline'
    assert settings.options == {
        'work': str(tmp_path / 'a.flat.baseline.bbq.opengl.0' / 'method'),
        'scene': 'flat',
        'limits': [1, 'baseline'],
    }


def test_the_seed_of_the_method_reaches_it_and_not_the_simulator(tmp_path):
    from osmabench_ros.bringup.definition import nodes_of_run

    command = ['mine', '--seed=${seed}', '${HOME}']
    options = {'seed_file': '${seed}.txt'}
    mappers = [{'name': 'noisy_oracle', 'options': options}, {'name': 'mine', 'command': command}]
    config = matrix_config(mappers=mappers, seeds={'scene': [3], 'path': [4], 'method': [8]})
    plans = plans_of(config, tmp_path, 'a', 'flat')
    bundled, foreign = ({spec.name: spec for spec in nodes_of_run(plan)} for plan in plans)
    mapper, bridge = bundled['mapper'].settings, bundled['simulator_bridge'].settings
    assert (mapper.seed, mapper.options) == (8, {'seed_file': '8.txt'})
    assert (bridge.scene.seed, bridge.scene.seed_of_path) == (3, 4)
    assert bridge.run_id == 'a.flat.baseline.noisy_oracle.opengl.3-p4-m8'
    assert foreign['mapper'].command == ('mine', '--seed=8', '${HOME}')


def test_an_unknown_placeholder_names_the_mapper(tmp_path):
    mapper = {'name': 'oracle', 'options': {'work': '${rum}'}}
    with pytest.raises(ConfigError, match=r'options of mapper oracle\.work: \$\{rum\} is unknown'):
        specs(tmp_path, mapper)


def test_a_stack_has_an_adapter_and_the_bridge_waits_for_both(tmp_path):
    nodes = specs(tmp_path, {'name': 'khronos', 'stack': 'khronos'})
    assert nodes['method'].command_line(tmp_path)[:3] == ['ros2', 'launch', 'osmabench_ros']
    adapter = nodes['mapper'].settings
    assert adapter.map_topic == '/khronos_node/backend/dsg'
    assert adapter.finish_service == '/khronos_node/experiment/finish_mapping_and_save'
    bridge = nodes['simulator_bridge'].settings
    assert [item.name for item in bridge.participants[:2]] == ['khronos_node', 'mapper']
    assert bridge.pacing.mode.value == 'realtime'


OWN_EDGES = ['map->odom', 'odom->base_link']


def test_the_bridge_leaves_the_edges_of_a_stack_to_it(tmp_path):
    file = tmp_path / 'slam.yaml'
    stack = {
        'name': 'slam', 'source': 'x', 'install': [], 'program': {'command': ['slam']},
        'map': {'topic': '/cloud', 'type': 'sensor_msgs/msg/PointCloud2'},
        'transforms': ['map->odom', 'odom->${base_frame}'], 'map_origin': 'world',
    }  # fmt: skip
    file.write_text(yaml.safe_dump(stack))
    by_file = {'name': 'slam', 'stack': str(file)}
    for mapper, edges, origin in (
        (by_file, OWN_EDGES, 'world'),
        (by_file | {'transforms': [], 'map_origin': 'first_pose'}, [], 'first_pose'),
        ({'name': 'mine', 'command': ['mine'], 'transforms': OWN_EDGES}, OWN_EDGES, 'first_pose'),
        ({'name': 'oracle'}, [], 'first_pose'),
    ):
        bridge = specs(tmp_path, mapper)['simulator_bridge'].settings
        assert (bridge.tf.transforms, bridge.tf.map_origin.value) == (tuple(edges), origin)
        assert bridge.tf.publish_tf.value == 'auto'


@pytest.mark.parametrize(
    ('edges', 'reason'),
    [
        (['odom'], r'mappers\.0\.transforms: .*"odom" is not an edge of TF'),
        (['map->base_link', 'odom->base_link'], 'frame "base_link" has two parents'),
        (['a->b', 'b->a'], 'is its own ancestor, over'),
    ],
)
def test_edges_that_are_no_tree_are_refused_by_their_key(edges, reason, tmp_path):
    with pytest.raises(ConfigError, match=reason):
        specs(tmp_path, {'name': 'mine', 'command': ['mine'], 'transforms': edges})
