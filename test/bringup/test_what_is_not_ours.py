"""A user's files in a folder of results outlive runs, --fresh, kills and what goes on after."""

import os
import signal
from pathlib import Path

import pytest
from support.fault_runs import (
    COMMAND,
    failure,
    mapper_says,
    orphans,
    run_directory,
    start,
    success,
)
from support.prepared_scenes import PreparedScenes
from support.small_config import foreign, repeatable, small_config
from support.users_files import fill, lost, snapshot
from support.waiting import wait_until

from osmabench_ros.base.ledger import LEDGER, Ledger

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
    listed = {root / entry.path for entry in Ledger(root).entries()} | {root, root / LEDGER}
    places = [root, root / 'shared', run, run / 'logs', run / 'map', run / 'vqa']
    assert all(place.is_dir() for place in places)
    assert {path for path in root.rglob('*') if path not in listed} == set()
    for place in places:
        fill(place, elsewhere)
    before = {path: was for path, was in snapshot(root).items() if path not in listed}
    before |= snapshot(elsewhere)

    def kept() -> bool:
        return lost(before, root, elsewhere) == []

    said = success(start(tmp_path, CONFIG))
    assert kept()
    assert '.osmabench-partial-x' in said
    assert 'is not ours and stays' in ' '.join(said.split())
    # A map appears whole, so nothing may lie where it will.
    assert f'{run / "map"} holds' in failure(
        tmp_path, start(tmp_path, CONFIG, command=FRESH), tidy=False
    )
    assert kept()
    for path in [path for path in before if path.is_relative_to(run / 'map')]:
        del before[path]
    (run / 'map').rename(tmp_path / 'moved')
    process = start(tmp_path, CONFIG, command=FRESH, TEST_ORDER='hang')
    wait_until(lambda: mapper_says(tmp_path, MAPPER, 'hanging'))
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=180)
    wait_until(lambda: not orphans(tmp_path))
    assert kept()
    success(start(tmp_path, CONFIG))
    assert kept()
    again = repeatable(root)
    assert {name for name in expected if name != LEDGER and again[name] != expected[name]} == set()
