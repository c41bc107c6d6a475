"""What `osmabench run --speeds` takes from the command line and from the configuration."""

from unittest.mock import Mock

import pytest
import yaml
from support.commands import osmabench, output_of
from support.world.runs import small_config

from osmabench_ros.bringup.runner import matrix_runner
from osmabench_ros.errors import ConfigError, RequirementError, RunError
from osmabench_ros.runs.config import SweepConfig
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

pytestmark = pytest.mark.ros

POINT = SweepPoint(run_id='r', speed_factor=2.0, frames=500, loss=0.0)


@pytest.fixture
def config(tmp_path):
    file = tmp_path / 'config.yaml'
    file.write_text(yaml.safe_dump(small_config(sweep={'speeds': [1, 3], 'max_loss': 0.1})))
    return file


@pytest.fixture
def asked(monkeypatch):
    """A function in place of the sweep, which only notes its calls."""
    noted = Mock(return_value=made(POINT))
    monkeypatch.setattr(matrix_runner, 'run_sweep', noted)
    return noted


def made(point):
    parts = {'dataset': 'd', 'scene': 's', 'seed': 0, 'condition': 'c', 'mapper': 'm'}
    series = SweepSeries(max_loss=0.05, points=(point,), **parts)
    return SweepReport(name='own', max_loss=0.05, series=(series,))


@pytest.mark.parametrize(
    ('speeds', 'expected'), [('auto', (1, 3)), ('0.5, 2,4', (0.5, 2, 4)), ('4,2', (2, 4))]
)
def test_speeds_of_the_command_line_win_over_the_configuration(config, asked, speeds, expected):
    output = output_of('run', config, '--speeds', speeds)
    assert asked.call_args.args[2] == SweepConfig(speeds=expected, max_loss=0.1)
    assert 'fastest speed with at most 5 % loss: 2' in output


@pytest.mark.parametrize(
    ('words', 'named'),
    [
        (('--speeds', '1,fast'), '--speeds 1,fast: speeds.1: .*number'),
        (('--speeds', '0'), '--speeds 0: speeds: speed factors must be between'),
        (('--speeds', 'auto', '--jobs', 2), '--speeds goes without --rerun, --jobs'),
    ],
)
def test_speeds_that_make_no_sense_are_refused(config, asked, words, named):
    with pytest.raises(ConfigError, match=named):
        osmabench('run', config, *words)
    asked.assert_not_called()


@pytest.mark.parametrize(
    ('point', 'kind', 'named'),
    [
        (POINT.model_copy(update={'loss': 0.5}), RequirementError, 'at 2: 50.0 % loss'),
        (POINT.model_copy(update={'error': 'mapper died'}), RunError, 'r: mapper died'),
    ],
)
def test_the_verdict_is_the_exit_code(config, asked, point, kind, named):
    asked.return_value = made(point)
    with pytest.raises(kind, match=named):
        osmabench('run', config, '--speeds', 'auto')
