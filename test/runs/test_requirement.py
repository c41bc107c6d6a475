"""Which metrics a requirement may name, and which data show that it holds."""

import pytest
from support.world.runs import matrix_config

from osmabench_ros.errors import ConfigError
from osmabench_ros.metrics.over_time import ScoresAtTime, make_over_time_records
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs import config
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.report_model import for_run
from osmabench_ros.runs.timings import SUITE as TIMING

RUN = RunIdentity(SceneKey('d', 's', 0), 'baseline', 'oracle', 'opengl')


def required(suite, metric='m'):
    return config.Requirement(suite=suite, metric=metric, at_least=0.5)


def parsed(suite):
    return matrix_config(requirements=[{'suite': suite, 'metric': 'm', 'at_least': 0}])


@pytest.mark.parametrize(
    'suite',
    ['map_geometry', 'map_geometry@aligned', *config.TIMING_SUITES, *config.BAG_SUITES],
)
def test_a_requirement_may_name_whatever_a_run_or_a_bag_can_give(suite):
    assert parsed(suite).requirements[0].suite == suite


@pytest.mark.parametrize('suite', ['instances', 'instances@aligned', 'timings', ''])
def test_other_suites_are_refused(suite):
    with pytest.raises(ConfigError, match='which is not run'):
        parsed(suite)


def test_each_requirement_is_judged_by_what_has_its_figure():
    assert required('map_geometry').source is config.Source.MAP
    assert required('map_geometry', 'f_score_over_frames').source is config.Source.GROWTH
    assert required(TIMING, 'frame_loss').source is config.Source.TIMING
    assert required('map_geometry@aligned').source is config.Source.BAG
    assert required('trajectory', 'ape_translation_rmse_m').source is config.Source.BAG
    both = (required('map_geometry'), required(TIMING))
    assert for_run(both, RUN, config.Source.MAP, config.Source.GROWTH) == both[:1]


def test_the_names_of_growth_are_those_that_are_written():
    record = MetricRecord('s', '', 'm', value=0.5, n=3)
    names = {item.metric for item in make_over_time_records([ScoresAtTime(1, 0.1, (record,))])}
    assert names == {f'm{suffix}' for suffix in config.GROWTH_SUFFIXES}


def test_a_run_refuses_what_it_can_never_fulfil():
    grown = required('map_geometry', 'm_over_time')
    config.check_for_runs([required('map_geometry'), required(TIMING)], grows=False)
    config.check_for_runs([grown], grows=True)
    with pytest.raises(ConfigError, match='map_every_frames'):
        config.check_for_runs([grown], grows=False)
    with pytest.raises(ConfigError, match='asks a language model.*final map only'):
        config.check_for_runs([grown], grows=True, final_only=['map_geometry'])
    with pytest.raises(ConfigError, match='"alignment", which a run does not have'):
        config.check_for_runs([required('alignment')], grows=True)
