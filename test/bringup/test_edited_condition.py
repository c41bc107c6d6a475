"""A condition that is edited while its matrix runs, over real processes."""

import json
from pathlib import Path

import pytest
from support.fault_runs import read_until, start, success
from support.world.runs import foreign, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]


@pytest.mark.full
def test_a_run_renders_the_condition_that_it_was_planned_with(tmp_path: Path) -> None:
    file = tmp_path / 'dusk.yaml'
    file.write_text('lighting: {exposure: 0.5}\n')
    config = small_config(conditions=[str(file)], mappers=[foreign('good')])
    process = start(tmp_path, config)
    read_until(process, 'the path sees')
    # From here on, reading the file again would fail.
    file.write_text('lighting: [unclosed')
    success(process)
    [manifest] = (tmp_path / 'runs' / 'small').glob('*.dusk.*/manifest.json')
    recorded = json.loads(manifest.read_text())['config']['condition']
    assert recorded['lighting']['exposure'] == 0.5
