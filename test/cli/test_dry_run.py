"""`osmabench run --dry-run` lists the work and the requests of a run, and does nothing."""

import pytest
import yaml
from support.commands import output_of
from support.loopback_models import LoopbackModels
from support.world.runs import small_config

from osmabench_ros.errors import ConfigError

ALL = 'to do: prepare, map, evaluate, finish'


def dry_run(tmp_path, *options, **changes):
    file = tmp_path / 'config.yaml'
    file.write_text(yaml.safe_dump(small_config(**changes)))
    output = output_of('run', file, '--out', tmp_path / 'runs', '--dry-run', *options)
    assert not (tmp_path / 'runs').exists()
    return output.splitlines()


def test_it_lists_the_runs(tmp_path):
    runs = dry_run(tmp_path, conditions=['baseline', 'camera'])
    assert [line.partition(': ')[2] for line in runs[:2]] == [ALL, ALL]
    assert '.camera.oracle' in runs[1]
    assert runs[2] == 'no language model is asked'
    assert runs[3].startswith('1 scene: no interval, so no difference can be shown; it takes 3')
    assert len(runs) == 5


@pytest.mark.full
def test_it_says_what_so_many_scenes_or_paths_can_show(tmp_path):
    scenes = [{'reference': 'apartment'}]
    conditions = ['baseline', 'camera']
    lines = dry_run(tmp_path, scenes=scenes, seeds={'scene': [1, 2, 3]}, conditions=conditions)
    # By the noncentral t: 5 points times 3.264 for three pairs.
    assert '3 scenes can show a difference of 16.3 points (in four of five' in lines[-2]
    assert 'scenes needed for a difference in points: 199 for 1, 52 for 2, 10 for 5' in lines[-1]
    assert 'assumed that differences vary by 5 points' in lines[-1]
    lines = dry_run(tmp_path, scenes=scenes, seeds={'path': [1, 2, 3, 4]}, conditions=conditions)
    assert '4 paths can show a difference of' in lines[-2]
    assert 'nothing about other scenes' in lines[-2]
    assert dry_run(tmp_path, scenes=scenes)[-1] == 'no language model is asked'


@pytest.mark.parametrize('model', ['openai:m', 'gemini:m'])
def test_it_needs_no_key(tmp_path, model, monkeypatch):
    for name in ('OPENAI_API_KEY', 'GEMINI_API_KEY', 'GOOGLE_API_KEY', 'OPENAI_BASE_URL'):
        monkeypatch.delenv(name, raising=False)
    options = {'answerer': model, 'judge': model, 'baselines': [f'question_only:{model}']}
    suites = [{'name': 'exact_questions', 'options': options}]
    lines = dry_run(tmp_path, suites=suites)
    assert f'exact_questions asks {model} about the final map of each run, 1 to do' in lines


def test_it_names_the_models_and_what_scores_over_time_leave_out(tmp_path):
    with LoopbackModels() as server:
        options = {'answerer': 'openai:qwen3', 'judge': 'openai:qwen3', 'base_url': server.url}
        suites = [{'name': 'map_geometry'}, {'name': 'exact_questions', 'options': options}]
        lines = dry_run(tmp_path, suites=suites, evaluation={'map_every_frames': 2})
        assert server.received == []
    assert 'exact_questions asks openai:qwen3 about the final map of each run, 1 to do' in lines
    assert 'scores over time (a map every 2 frames) leave out exact_questions' in lines[-1]


def test_it_refuses_all_unknown_names_at_once(tmp_path):
    wrong = {
        'suites': [{'name': 'geometry'}, {'name': 'map_geometry', 'options': {'x': 3}}],
        'conditions': ['baselin', 'camra'],
        'scenes': [{'reference': 'no_house'}, {'reference': 'no_flat'}],
        'mappers': [{'name': 'orcale'}],
        'simulator': {'name': 'opngl'},
    }
    with pytest.raises(ConfigError) as caught:
        dry_run(tmp_path, **wrong)
    faults = str(caught.value).splitlines()
    named = ['"geometry"', '"x"', '"baselin"', '"camra"', '"no_house"', '"no_flat"', '"opngl"',
             '"orcale"']  # fmt: skip
    assert len(faults) == len(named)
    for fault, name in zip(faults, named, strict=True):
        assert name in fault
    wanted = [{'suite': item, 'metric': 'm', 'at_least': 1} for item in ('one', 'two')]
    seeds = {'seeds': {'scene': [1, 2]}, 'scenes': [{'reference': 'apartment', 'seed': 4}]}
    with pytest.raises(ConfigError, match='"one".*"two".*say the same'):
        dry_run(tmp_path, requirements=wanted, **seeds)
