"""In which order runs side by side begin."""

from pathlib import Path
from typing import Any

import pytest
from support.world.runs import small_config

from osmabench_ros.runs.config import parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import RunPlan, plan_runs

pytestmark = pytest.mark.ros


def planned(root: Path, **changes: Any) -> list[RunPlan]:
    """Return the runs of three scenes with two mappers, the first of them realtime."""
    unpaced = {'name': 'unpaced', 'command': ['true'], 'acks': False}
    data = small_config(
        scenes=[{'reference': 'apartment', 'seed': seed} for seed in (3, 4, 5)],
        mappers=[unpaced, {'name': 'oracle'}],
        **changes,
    )
    config = parse_config(data, 'test')
    keys = {item: SceneKey('apartment', f'seed_{item.seed}', item.seed) for item in config.scenes}
    return plan_runs(config, keys, root)


def order(plans: list[RunPlan], jobs: int) -> list[str]:
    from osmabench_ros.bringup.runner.side_by_side import lined_up

    return [
        f'{"prepare" if task.prepares else task.plan.mapper.name} {task.plan.scene.seed}'
        for task in lined_up(plans, jobs)
    ]


def test_scenes_are_prepared_ahead_and_runs_that_must_be_alone_come_last(tmp_path: Path) -> None:
    assert order(planned(tmp_path), 2) == [
        'prepare 3', 'prepare 4', 'oracle 3', 'prepare 5', 'oracle 4', 'oracle 5',
        'unpaced 3', 'unpaced 4', 'unpaced 5',
    ]  # fmt: skip
    assert order(planned(tmp_path), 9)[:3] == ['prepare 3', 'prepare 4', 'prepare 5']


def test_realtime_runs_keep_their_place_if_they_may_have_company(tmp_path: Path) -> None:
    plans = planned(tmp_path, pacing={'side_by_side': True})
    found = [item for item in order(plans, 1) if 'prepare' not in item]
    assert found == [f'{plan.mapper.name} {plan.scene.seed}' for plan in plans]


def test_what_is_done_is_not_prepared_again(tmp_path: Path) -> None:
    plans = planned(tmp_path)
    plans[0].shared_directory.mkdir(parents=True)
    for plan in plans[2:4]:
        plan.directory.mkdir(parents=True)
        plan.report_file.write_text('{}')
    assert [item for item in order(plans, 2) if 'prepare' in item] == ['prepare 5']
    plans[3].report_file.unlink()
    assert [item for item in order(plans, 2) if 'prepare' in item] == ['prepare 4', 'prepare 5']
