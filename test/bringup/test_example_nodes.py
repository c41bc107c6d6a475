"""The nodes of examples/ around libraries of others, as processes of one scored matrix."""

import sys
from pathlib import Path

import pytest
from support.world.runs import run_small, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

EXAMPLES = Path(__file__).resolve().parents[2] / 'examples'


def node(name, script):
    return {'name': name, 'command': [sys.executable, str(EXAMPLES / script)]}


@pytest.mark.full
def test_octomap_and_kiss_icp_are_scored_as_processes_of_their_own(prepared, nodes, tmp_path):
    for library in ('pyoctomap', 'kiss_icp'):
        pytest.importorskip(library, reason=f'{library} is not installed')

    data = small_config(
        mappers=[node('octomap', 'octomap_mapper.py'), node('kiss_icp', 'kiss_icp_odometry.py')],
        scenes=[{'reference': 'apartment', 'seed': 5}],
        camera={'width': 160, 'height': 120},
        trajectory={'goals': 2, 'frame_rate_hz': 10.0, 'max_frames': 20},
        pacing={'ack_timeout_s': 60.0, 'match_timeout_s': 60.0},
        suites=[{'name': 'map_geometry'}, {'name': 'map_trajectory'}],
    )
    report = run_small(data, tmp_path, prepared=prepared, nodes=nodes)
    assert report.passed, report
    found = {
        (item.mapper, item.metric): item.value for item in report.metrics if not item.class_name
    }
    assert found['octomap', 'f_score_0.05m'] > 0.98
    assert found['octomap', 'ape_translation_rmse_m'] is None  # it estimates no poses
    assert found['kiss_icp', 'reference_path_length_m'] > 0.9
    assert found['kiss_icp', 'matched_poses'] == 1.0
    assert found['kiss_icp', 'ape_translation_rmse_m'] < 0.1
    assert found['kiss_icp', 'f_score_0.05m'] > 0.9
