"""Two shards of a matrix at once, in one folder of results."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from support.small_config import small_config

from osmabench_ros.base.files import read_json

pytestmark = [pytest.mark.ros, pytest.mark.gl, pytest.mark.slow]


def test_shards_run_beside_each_other_and_are_the_whole_matrix_together(tmp_path: Path) -> None:
    file = tmp_path / 'config.yaml'
    file.write_text(
        yaml.safe_dump(small_config(mappers=[{'name': 'noisy_oracle'}], seeds={'method': [1, 2]}))
    )
    command = [sys.executable, '-m', 'osmabench_ros.cli', 'run', str(file), '--out']
    shards = [
        subprocess.Popen([*command, str(tmp_path / 'out'), '--shard', f'{number}/2'])
        for number in (1, 2)
    ]
    assert [shard.wait(300) for shard in shards] == [0, 0]
    ids = [f'apartment.seed_3.baseline.noisy_oracle.opengl.3-m{seed}' for seed in (1, 2)]
    for number, run_id in enumerate(ids, 1):
        root = tmp_path / 'out' / f'small.shard-{number}-of-2'
        assert read_json(root / 'manifest.json')['part']['runs'] == [run_id]
        report = read_json(root / 'report.json')
        assert [run['run_id'] for run in report['runs']] == [run_id]
        assert {record['method_seed'] for record in report['runs'][0]['metrics']} == {number}
    figures = [
        [record['value'] for record in read_json(path)['metrics']]
        for path in sorted((tmp_path / 'out').glob('*/*/report.json'))
    ]
    assert figures[0] != figures[1], 'the seed of the method matters to a noisy one'
