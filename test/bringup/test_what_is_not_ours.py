"""A user's files in a folder of results outlive runs, kills and --fresh."""

import os
import signal

import pytest
from support.fault_runs import COMMAND, mapper_says, orphans, run_directory, start, success
from support.users_files import fill, lost, snapshot
from support.waiting import wait_until
from support.world.runs import foreign, small_config

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

MAPPER = 'foreign_on_order'
FRESH = (*COMMAND, '--fresh')
CONFIG = small_config(mappers=[foreign('on_order')], pacing={'ack_timeout_s': 300.0})


def test_a_users_files_outlive_a_kill_and_a_fresh_start(prepared, tmp_path):
    prepared.put_into(tmp_path / 'runs', CONFIG)
    root, run = tmp_path / 'runs' / 'small', run_directory(tmp_path, MAPPER)
    elsewhere = tmp_path / 'elsewhere'
    process = start(tmp_path, CONFIG, TEST_ORDER='hang')
    wait_until(lambda: mapper_says(tmp_path, MAPPER, 'hanging'))
    made = {*snapshot(root)}
    places = [root, root / 'shared', run, run / 'logs']
    for place in places:
        fill(place, elsewhere)
    before = {path: was for path, was in snapshot(root).items() if path not in made}
    before |= snapshot(elsewhere)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=180)
    wait_until(lambda: not orphans(tmp_path))
    assert lost(before, root, elsewhere) == []
    success(start(tmp_path, CONFIG, command=FRESH))
    assert lost(before, root, elsewhere) == []
