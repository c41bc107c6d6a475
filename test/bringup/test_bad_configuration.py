"""Bad configurations end before any node is started, with an error that names the culprit."""

import re

import pytest
from support.world.runs import run_small, small_config

from osmabench_ros.errors import OsmabenchError

pytestmark = pytest.mark.ros


REQUIREMENT = {'suite': 'map_geometry', 'metric': 'coverage', 'at_least': 1}
NOWHERE = 'no/such.scene_dataset_config.json'


def run(config, out):
    report = run_small(config, out)
    assert not report.passed
    return report.runs[0].error


@pytest.mark.parametrize(
    ('changes', 'words'),
    [
        ({'scenes': [{'reference': NOWHERE}]}, re.escape(NOWHERE)),
        ({'mappers': [{'name': 'oracle', 'options': {'voxl_m': 1}}]}, 'voxl_m'),
        (
            {'requirements': [{**REQUIREMENT, 'mapper': 'oracel'}]},
            'mapper "oracel", which is not run. Did you mean "oracle"',
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
