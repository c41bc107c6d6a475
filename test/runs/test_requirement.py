"""Which metrics a requirement may name, and which data show that it holds."""

import pytest
from support.world.runs import matrix_config

from osmabench_ros.errors import ConfigError
from osmabench_ros.metrics.over_time import ScoresAtTime, make_over_time_records
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs import requirement
from osmabench_ros.runs.timings import SUITE as TIMING


def required(suite, metric='m'):
    return requirement.Requirement(suite=suite, metric=metric, at_least=0.5)


def parsed(suite):
    return matrix_config(requirements=[{'suite': suite, 'metric': 'm', 'at_least': 0}])


@pytest.mark.parametrize(
    'suite',
    ['map_geometry', 'map_geometry@aligned', *requirement.TIMING_SUITES, *requirement.BAG_SUITES],
)
def test_a_requirement_may_name_whatever_a_run_or_a_bag_can_give(suite):
    assert parsed(suite).requirements[0].suite == suite


@pytest.mark.parametrize('suite', ['instances', 'instances@aligned', 'timings', ''])
def test_other_suites_are_refused(suite):
    with pytest.raises(ConfigError, match='which is not run'):
        parsed(suite)


def test_each_requirement_is_judged_by_what_has_its_figure():
    assert required('map_geometry').source is requirement.Source.MAP
    assert required('map_geometry', 'f_score_over_frames').source is requirement.Source.GROWTH
    assert required(TIMING, 'frame_loss').source is requirement.Source.TIMING
    assert required('map_geometry@aligned').source is requirement.Source.BAG
    assert required('trajectory', 'ape_translation_rmse_m').source is requirement.Source.BAG
    both = (required('map_geometry'), required(TIMING))
    assert (
        requirement.of_sources(both, requirement.Source.MAP, requirement.Source.GROWTH) == both[:1]
    )


def test_the_names_of_growth_are_those_that_are_written():
    record = MetricRecord('s', '', 'm', value=0.5, n=3)
    names = {item.metric for item in make_over_time_records([ScoresAtTime(1, 0.1, (record,))])}
    assert names == {f'm{suffix}' for suffix in requirement.GROWTH_SUFFIXES}


def test_a_run_refuses_what_it_can_never_fulfil():
    grown = required('map_geometry', 'm_over_time')
    requirement.check_for_runs([required('map_geometry'), required(TIMING)], grows=False)
    requirement.check_for_runs([grown], grows=True)
    with pytest.raises(ConfigError, match='map_every_frames'):
        requirement.check_for_runs([grown], grows=False)
    with pytest.raises(ConfigError, match='asks a language model.*final map only'):
        requirement.check_for_runs([grown], grows=True, final_only=['map_geometry'])
    with pytest.raises(ConfigError, match='"alignment", which a run does not have'):
        requirement.check_for_runs([required('alignment')], grows=True)
