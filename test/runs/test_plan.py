from pathlib import Path

import pytest
from support.world.runs import matrix_config, plans_of

from osmabench_ros.bringup.definition import bridge_settings
from osmabench_ros.errors import ConfigError
from osmabench_ros.ros.node.settings import BridgeSettings
from osmabench_ros.runs.plan import config_digest
from osmabench_ros.runs.run_manifest import config_of_run
from osmabench_ros.simulation import conditions


def config(**parts):
    several = {
        'scenes': [{'seed': 1}, {'seed': 2}],
        'conditions': ['baseline', 'camera'],
        'mappers': [{'name': 'oracle'}, {'name': 'appearance'}],
    }
    return matrix_config(**{**several, **parts})


def planned(settings, scene='home'):
    return plans_of(settings, Path('root'), 'set', scene)


def test_runs_go_scene_by_scene_and_condition_by_condition():
    assert [plan.identity.run_id for plan in planned(config())] == [
        f'set.home.{condition}.{mapper}.opengl.{seed}'
        for seed in (1, 2)
        for condition in ('baseline', 'camera')
        for mapper in ('oracle', 'appearance')
    ]


def test_a_run_knows_its_part_of_the_configuration():
    settings = config()
    plan = planned(settings)[5]
    assert (plan.scene, plan.mapper) == (settings.scenes[1], settings.mappers[1])
    assert plan.config is settings


def test_every_run_has_a_folder_and_runs_of_a_scene_share_one():
    plans = planned(config())
    assert len({plan.directory for plan in plans}) == 8
    assert [plan.shared_directory for plan in plans] == [
        Path('root/shared/set.home.1')] * 4 + [Path('root/shared/set.home.2')] * 4  # fmt: skip
    first = plans[0].directory
    assert first == Path('root/set.home.baseline.oracle.opengl.1')
    assert plans[0].map_directory == first / 'map'
    assert plans[0].report_file == first / 'report.json'


@pytest.mark.parametrize(
    'parts',
    [
        {'conditions': ['baseline', 'baseline']},
        {'mappers': [{'name': 'oracle'}, {'name': 'oracle', 'options': {'voxel_m': 0.1}}]},
        {'scenes': [{'seed': 1}, {'reference': 'other', 'seed': 1}]},
    ],
)
def test_runs_of_the_same_name_are_refused(parts):
    reason = r'"own" lists run set\.home\.baseline\.\w+\.opengl\.1 more than once'
    with pytest.raises(ConfigError, match=reason):
        planned(config(**parts))


def test_the_digest_tells_configurations_apart_and_nothing_else():
    digest = config_digest(config())
    assert len(digest) == 64
    mappers = [{'name': 'oracle', 'resources': {'cpus': 4}}, {'name': 'appearance'}]
    sweep = {'speeds': [1, 2]}
    for same in ({'simulator': {'name': 'opengl'}}, {'mappers': mappers}, {'sweep': sweep}):
        assert config_digest(config(**same)) == digest
    others = [
        config(conditions=['camera', 'baseline']),
        config(camera={'width': 320}),
        config(text_features={'clip': 'a.npy'}),
        config(requirements=[{'suite': 'map_geometry', 'metric': 'm', 'at_least': 0.5}]),
    ]
    assert len({digest, *map(config_digest, others)}) == 5


def test_realtime_runs_carry_their_speed_and_lockstep_runs_do_not():
    silent = {'name': 'mine', 'command': ['x'], 'acks': False}
    lockstep = planned(config(mappers=[{'name': 'oracle'}, silent], pacing={'speed_factor': 2}))
    assert [plan.identity.speed_factor for plan in lockstep[:2]] == [None, 2.0]
    realtime = planned(config(pacing={'mode': 'realtime', 'speed_factor': 0.5}))
    assert {plan.identity.speed_factor for plan in realtime} == {0.5}
    assert realtime[0].identity.run_id.endswith('.opengl.1.x0-5')


def test_a_condition_in_a_file_gives_the_run_its_name_and_stays_its_file(tmp_path):
    path = tmp_path / 'dusk.yaml'
    path.write_text('lighting: {exposure: 0.5}')
    file = str(path)
    config = matrix_config(conditions=[file, 'baseline'])
    plans = plans_of(config, tmp_path)
    assert [plan.identity.run_id for plan in plans] == [
        'd.s.dusk.oracle.opengl.0', 'd.s.baseline.oracle.opengl.0'
    ]  # fmt: skip


def test_a_condition_that_is_edited_meanwhile_renders_as_it_was_hashed(tmp_path):
    file = tmp_path / 'dusk.yaml'
    file.write_text('lighting: {exposure: 0.5}')
    made = config(conditions=[str(file)])
    recorded = config_of_run(planned(made)[0])
    file.write_text('lighting: {exposure: 2.0}')
    plan = planned(made.model_copy(update={'requirements': ()}))[0]
    assert config_of_run(plan) == recorded
    written = bridge_settings(plan).model_dump_json()
    file.unlink()
    given = BridgeSettings.model_validate_json(written).condition
    assert given == plan.condition
    assert given.lighting.exposure == 0.5


@pytest.mark.parametrize('name', conditions.list_conditions())
def test_every_condition_reaches_a_node_as_it_is(name):
    condition = conditions.load_condition(name)
    assert conditions.parse_condition_text(condition.model_dump_json()) == condition
    written = BridgeSettings(condition=condition).model_dump_json()
    assert BridgeSettings.model_validate_json(written).condition == condition


def test_runs_whose_names_differ_in_case_only_are_refused():
    twins = [{'name': 'mine', 'command': ['x']}, {'name': 'Mine', 'command': ['y']}]
    with pytest.raises(ConfigError, match=r'runs .*\.mine\..* and .*\.Mine\.'):
        planned(config(mappers=twins))
