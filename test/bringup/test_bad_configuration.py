"""Bad configurations end before any node is started, with an error that names the culprit."""

from pathlib import Path
from typing import Any

import pytest
from support.world.runs import small_config

from osmabench_ros.base.progress import silent
from osmabench_ros.errors import OsmabenchError

pytestmark = pytest.mark.ros


def run(config: dict[str, Any], out: Path) -> str:
    from osmabench_ros.bringup.runner.matrix_runner import run_matrix
    from osmabench_ros.runs.config import parse_config

    report = run_matrix(parse_config(config, 'test.yaml'), out, progress=silent)
    assert not report.passed
    return report.runs[0].error


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        (
            {'scenes': [{'reference': 'no/such.scene_dataset_config.json'}]},
            r'no/such\.scene_dataset_config\.json',
        ),
        ({'conditions': ['camra']}, 'unknown condition "camra". Did you mean "camera"'),
        ({'mappers': [{'name': 'orcale'}]}, '"orcale".*"oracle"'),
        ({'mappers': [{'name': 'oracle', 'options': {'voxl_m': 1}}]}, 'voxl_m'),
        ({'simulator': {'name': 'opngl'}}, '"opngl".*"opengl"'),
        ({'suites': [{'name': 'map_geometri'}]}, '"map_geometri".*"map_geometry"'),
        ({'name': '../small'}, 'name: a name consists of'),
        (
            {
                'requirements': [
                    {
                        'suite': 'map_geometry',
                        'metric': 'coverage',
                        'mapper': 'oracel',
                        'at_least': 1,
                    }
                ]
            },
            'mapper "oracel", which is not run. Did you mean "oracle"',
        ),
        (
            {'mappers': [{'name': 'mine', 'command': ['x'], 'options': {'a': 1}}]},
            'only one way to start it may be given; leave out one of command and',
        ),
    ],
)
def test_the_culprit_is_named(tmp_path, changes, words):
    with pytest.raises(OsmabenchError, match=words):
        run(small_config(**changes), tmp_path)


@pytest.mark.gl
@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'simulator': {'name': 'opengl', 'options': {'nearest': 3}}}, 'nearest'),
        (
            {'trajectory': {'goal_points': [[5.02, 2.57], [99.0, 99.0]]}},
            'goal (99.00, 99.00) cannot be reached',
        ),
    ],
)
def test_a_run_that_cannot_be_prepared_fails_with_its_reason(tmp_path, changes, words):
    assert words in run(small_config(**changes), tmp_path)
