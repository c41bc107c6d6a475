"""Maps on the way, over DDS: published, kept and scored."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.world.runs import PreparedScenes, small_config

from osmabench_ros.base.files import read_json
from osmabench_ros.base.progress import silent
from osmabench_ros.bringup.spec.isolation import isolated_environment
from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.evaluate.over_time import ReportOverTime

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]


@pytest.mark.full
def test_a_run_scores_the_maps_it_had_on_the_way(
    prepared: PreparedScenes, nodes: Any, tmp_path: Path
) -> None:
    from osmabench_ros.bringup.runner.matrix_runner import run_matrix

    # Smaller images resolve no surface, and no surface can be covered.
    config = small_config(camera={'width': 160, 'height': 120}, evaluation={'map_every_frames': 2})
    prepared.put_into(tmp_path, config)
    # Libraries may add variables of theirs.
    before = {name: os.environ.get(name) for name in isolated_environment(0)}
    matrix = parse_config(config, 'test')
    report = run_matrix(matrix, tmp_path, nodes=nodes, progress=silent)
    assert report.passed, report
    assert {name: os.environ.get(name) for name in before} == before, 'a run changes no variable'
    [file] = (tmp_path / 'small').glob('*/growth.json')
    growth = ReportOverTime.model_validate(read_json(file))
    assert [moment.frames for moment in growth.moments] == [2, 4, 5]
    assert [moment.time_s for moment in growth.moments] == [1.0, 3.0, 4.0]
    coverage = [
        record.value
        for moment in growth.moments
        for record in moment.metrics
        if record.metric == 'coverage' and not record.class_name
    ]
    assert coverage == sorted(coverage)
    assert coverage[0] > 0.0
    final = [
        item.value for item in report.metrics if (item.metric, item.class_name) == ('coverage', '')
    ]
    assert coverage[-1:] == final
