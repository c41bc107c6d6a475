"""Parts of a matrix: stable, disjoint, complete, and paths kept whole where that is possible."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from osmabench_ros.base.files import read_json
from osmabench_ros.errors import ConfigError, RunError
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.plan import RunPlan, plan_runs
from osmabench_ros.runs.results.results_folder import claim
from osmabench_ros.runs.shard import Shard, ShardPart, results_root


def config(**parts: Any) -> MatrixConfig:
    data = {
        'name': 'parted',
        'conditions': ['baseline', 'camera'],
        'mappers': [{'name': 'oracle'}, {'name': 'appearance'}],
        'suites': [{'name': 'map_geometry'}],
        **parts,
    }
    return parse_config(data, 'test')


def planned(paths: int) -> list[RunPlan]:
    """Return four runs on each of some paths."""
    settings = config(seeds={'path': list(range(paths))})
    keys = {item: SceneKey('set', 'home', 0, item.path_seed) for item in settings.seeded_scenes}
    return plan_runs(settings, keys, Path('root'))


@pytest.mark.parametrize('paths', [1, 2, 3, 7])
@pytest.mark.parametrize('count', [1, 2, 3, 4, 5, 8, 11, 12, 28])
def test_every_run_is_in_one_shard_and_no_path_is_prepared_more_often_than_needed(
    paths: int, count: int
) -> None:
    plans = planned(paths)
    if count > len(plans):
        with pytest.raises(ConfigError, match=f'has {len(plans)} runs, and no more parts'):
            Shard(number=1, count=count).plans(plans)
        return
    shards = [Shard(number=i + 1, count=count).plans(plans) for i in range(count)]
    together = [plan.identity.run_id for shard in shards for plan in shard]
    assert Counter(together) == Counter(plan.identity.run_id for plan in plans)
    assert all(shards)
    prepared = [len({plan.shared_directory for plan in shard}) for shard in shards]
    assert sum(prepared) == max(paths, count)
    if count <= paths:
        assert max(prepared) - min(prepared) <= 1
    else:
        assert set(prepared) == {1}


def test_a_shard_depends_on_the_configuration_alone() -> None:
    shard = Shard.of_text('2/3')
    assert [plan.identity.run_id for plan in shard.plans(planned(3))] == [
        f'set.home.{condition}.{mapper}.opengl.0-p1'
        for condition in ('baseline', 'camera')
        for mapper in ('oracle', 'appearance')
    ]  # fmt: skip


@pytest.mark.parametrize(
    'text', ['0/3', '4/3', '3', '1/0', '-1/3', 'a/b', '1/2/3', ' 1/2', '\u0661/2']
)
def test_what_is_no_part_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r'is no part of a matrix; give I/N'):
        Shard.of_text(text)


def test_shards_have_folders_of_their_own_beside_each_other() -> None:
    out, settings = Path('out'), config()
    assert results_root(settings, out) == out / 'parted'
    found = [results_root(settings, out, Shard.of_text(text)) for text in ('1/2', '2/2', '1/3')]
    assert [path.name for path in found] == [
        'parted.shard-1-of-2', 'parted.shard-2-of-2', 'parted.shard-1-of-3'
    ]  # fmt: skip


def test_the_manifest_has_the_whole_configuration_and_the_runs_of_the_part(tmp_path: Path) -> None:
    settings = config(seeds={'path': [0, 1, 2]})
    part = Shard.of_text('2/3').part(planned(3))
    claim(tmp_path, settings, {}, part=part)
    written = read_json(tmp_path / 'manifest.json')
    assert parse_config(written['config'], 'manifest') == settings
    assert ShardPart.model_validate(written['part']) == part
    assert part.description == 'part 2/3 of the matrix: 4 of 12 runs'
    claim(tmp_path, settings, {}, part=part)
    for other in (None, Shard.of_text('1/3').part(planned(3))):
        with pytest.raises(RunError, match='holds other runs of that configuration'):
            claim(tmp_path, settings, {}, part=other)
    claim(tmp_path / 'whole', settings, {})
    assert 'part' not in read_json(tmp_path / 'whole' / 'manifest.json')
