"""A user's files in a folder of results outlive runs, --fresh, kills and what goes on after."""

import os
import signal
from pathlib import Path

import pytest
from support.fault_runs import COMMAND, mapper_says, orphans, run_directory, start, success
from support.users_files import fill, lost, snapshot
from support.waiting import wait_until
from support.world.runs import PreparedScenes, foreign, repeatable, small_config

from osmabench_ros.base.owned_folder import PREVIOUS

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]

MAPPER = 'foreign_on_order'
FRESH = (*COMMAND, '--fresh')
CONFIG = small_config(mappers=[foreign('on_order')], pacing={'ack_timeout_s': 300.0})


def test_a_users_files_outlive_runs_fresh_starts_and_kills(
    prepared: PreparedScenes, tmp_path: Path
) -> None:
    prepared.put_into(tmp_path / 'runs', CONFIG)
    root, run = tmp_path / 'runs' / 'small', run_directory(tmp_path, MAPPER)
    elsewhere = tmp_path / 'elsewhere'
    success(start(tmp_path, CONFIG))
    expected = repeatable(root)
    made = {*snapshot(root)}
    places = [root, root / 'shared', run, run / 'logs', run / 'vqa']
    assert all(place.is_dir() for place in places)
    for place in places:
        fill(place, elsewhere)
    before = {path: was for path, was in snapshot(root).items() if path not in made}
    before |= snapshot(elsewhere)

    def kept() -> bool:
        return lost(before, root, elsewhere) == []

    process = start(tmp_path, CONFIG, command=FRESH, TEST_ORDER='hang')
    wait_until(lambda: mapper_says(tmp_path, MAPPER, 'hanging'))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=180)
    wait_until(lambda: not orphans(tmp_path))
    assert kept()
    success(start(tmp_path, CONFIG))
    assert kept()
    again = repeatable(root)
    again = {name: again[name] for name in again if not name.startswith(PREVIOUS)}
    assert {name for name in expected if again[name] != expected[name]} == set()
