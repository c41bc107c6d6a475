"""What the nodes of a run are told."""

from pathlib import Path

import pytest
import yaml

from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import plan_runs

pytestmark = pytest.mark.ros


def test_the_evaluator_finds_text_features_wherever_it_starts(tmp_path: Path) -> None:
    from osmabench_ros.bringup.definition import nodes_of_run

    data = {
        'name': 'own',
        'mappers': [{'name': 'oracle'}],
        'suites': [{'name': 'map_geometry'}],
        'text_features': {'clip': 'text/clip.npy'},
    }
    config = parse_config(data, 'test')
    [plan] = plan_runs(config, {config.scenes[0]: SceneKey('a', 'b', 3)}, tmp_path)
    [evaluator] = [spec for spec in nodes_of_run(plan) if spec.name == 'evaluator']
    told = yaml.safe_load(evaluator.parameters['text_features'])
    assert told == {'clip': str(Path.cwd() / 'text' / 'clip.npy')}
