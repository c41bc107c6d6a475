from dataclasses import replace

import numpy as np
import pytest
from pydantic import ValidationError
from support.world import maps
from support.world.runs import matrix_config

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.axes import World
from osmabench_ros.metrics.over_time import ScoresAtTime, make_over_time_records
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.runs import config, report_model
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.runs.timings import SUITE as TIMING
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode, ScoredLabel

IDENTITY = RunIdentity(SceneKey('set', 'home', 5), 'camera', 'oracle', 'opengl')


def record(value=0.5, **parts):
    given = {'suite': 's', 'mode': 'strict', 'metric': 'm', 'value': value, **parts}
    return report_model.join_run(IDENTITY, [MetricRecord(**given)])[0]


def requirement(**parts):
    return config.Requirement(**{'suite': 's', 'metric': 'm', **parts})


def failures(needed, *records):
    return report_model.unmet((needed,), records)


def test_a_record_knows_its_run():
    given = MetricRecord('s', 'strict', 'm', 'chair', 0.25, 0.2, 0.3, 7, higher_is_better=False)
    [made] = report_model.join_run(IDENTITY, [given])
    run = {'dataset': 'set', 'scene': 'home', 'condition': 'camera', 'mapper': 'oracle'}
    run |= {'run_id': 'set.home.camera.oracle.opengl.5', 'simulator': 'opengl', 'seed': 5}
    assert made == replace(given, **run)
    plain = report_model.RunReport(
        run_id='r', status=report_model.Status.COMPLETE, metrics=(record(mode=''),)
    )
    assert plain.model_dump(mode='json')['metrics'][0]['mode'] is None


@pytest.mark.parametrize(
    ('bounds', 'value', 'holds'),
    [
        ({'at_least': 0.5}, 0.5, True),
        ({'at_least': 0.5}, 0.4999, False),
        ({'at_most': 0.5}, 0.5, True),
        ({'at_most': 0.5}, 0.5001, False),
        ({'at_least': 0.4, 'at_most': 0.6}, 0.5, True),
        ({'at_least': 0.4, 'at_most': 0.6}, 0.3, False),
        ({'at_least': 0.4, 'at_most': 0.6}, 0.7, False),
        ({'at_least': 0.0}, None, False),
        ({'at_most': 1.0}, None, False),
    ],
)
def test_bounds_are_part_of_what_is_allowed(bounds, value, holds):
    assert (failures(requirement(**bounds), record(value)) == ()) is holds


def test_a_failure_names_requirement_value_and_run():
    needed = requirement(mode='strict', at_least=0.9, at_most=1.0, mapper='oracle')
    assert failures(needed, record(0.5)) == (
        's strict m >= 0.9 <= 1 mapper oracle: 0.5 in set.home.camera.oracle.opengl.5',
    )


@pytest.mark.parametrize(
    ('key', 'value'),
    [('suite', 't'), ('metric', 'k'), ('mode', 'compat'), ('class_name', 'chair'),
     ('mapper', 'appearance'), ('condition', 'baseline')],
)  # fmt: skip
def test_a_requirement_that_nothing_matches_does_not_hold(key, value):
    [sentence] = failures(requirement(**{'at_least': 0.0, key: value}), record(1.0))
    assert sentence.endswith(': no such metric was computed')


def test_without_a_mode_all_modes_must_hold_but_a_class_is_no_part_of_the_whole():
    records = (record(0.9), record(0.2, mode='compat'), record(0.1, class_name='chair'))
    [sentence] = failures(requirement(at_least=0.5), *records)
    assert ': 0.2 in ' in sentence
    [sentence] = failures(requirement(at_least=0.5, class_name='chair'), *records)
    assert ': 0.1 in ' in sentence
    assert failures(requirement(at_least=0.5, mode='strict'), *records) == ()


def test_every_failure_is_told_in_the_order_of_the_requirements():
    needed = (requirement(at_least=0.8), requirement(at_least=0.1), requirement(at_most=0.3))
    sentences = report_model.unmet(needed, (record(0.5),))
    assert [sentence.split(':')[0] for sentence in sentences] == ['s m >= 0.8', 's m <= 0.3']


def test_only_requirements_of_a_run_concern_it():
    places = {}, {'mapper': 'oracle'}, {'condition': 'camera', 'mapper': 'oracle'}
    kept = tuple(requirement(at_least=0.5, **place) for place in places)
    places = {'mapper': 'appearance'}, {'condition': 'baseline'}
    places = *places, {'condition': 'baseline', 'mapper': 'oracle'}
    others = tuple(requirement(at_least=0.5, **place) for place in places)
    assert report_model.for_run((*others, *kept), IDENTITY) == kept


def test_a_matrix_has_the_records_of_all_its_runs():
    first, second = record(0.1), record(0.2)
    complete = {'status': report_model.Status.COMPLETE}
    runs = [
        report_model.RunReport(run_id=str(i), metrics=(x,), **complete)
        for i, x in enumerate((first, second))
    ]
    failed = report_model.RunReport(run_id='2', status=report_model.Status.FAILED, error='why')
    report = report_model.MatrixReport(name='n', passed=False, runs=(*runs, failed))
    assert report.metrics == (first, second)
    assert report_model.MatrixReport.model_validate_json(report.model_dump_json()) == report


def test_reports_from_before_encoders_were_named_can_be_read():
    data = report_model.RunReport(run_id='a', status=report_model.Status.COMPLETE).model_dump(
        mode='json'
    )
    del data['encoders']
    assert report_model.RunReport.model_validate(data).encoders == {}
    with pytest.raises(ValidationError, match='unknown key'):
        report_model.RunReport.model_validate({**data, 'metric': []})


@pytest.mark.parametrize(
    ('change', 'remedy'),
    [
        (lambda points: points * 1000, '--metres-per-unit 0.001'),
        (lambda points: points / 1000, '--metres-per-unit 1000'),
        (lambda points: points @ World.HABITAT.rotation, '--world habitat instead of z_up'),
        (
            lambda points: points @ World.HABITAT.rotation * 1000,
            '--world habitat instead of z_up and --metres-per-unit 0.001',
        ),
        (
            lambda points: points @ World.HABITAT.rotation.T,
            '--world z_up instead of habitat (if it was not imported as that: --pose with the '
            'rotation 1 0 0, 0 0 1, 0 -1 0)',
        ),
    ],
)
def test_a_map_in_other_axes_or_units_is_told_the_option_that_makes_it_fit(change, remedy):
    truth, there = maps.ground_truth(), maps.labelled_map()
    points = change(there.dense.points).astype('float32')
    away = replace(there, dense=replace(there.dense, points=points))
    [remark] = report_model.place_remarks(away, truth)
    assert f'With {remedy}, 100% of it would be: import it again so' in remark


def test_classes_that_the_scene_lacks_have_a_remark():
    known, classes = maps.labelled_map(), maps.ground_truth().label_set
    assert report_model.label_remarks(known, classes) == ()
    unknown = np.full_like(known.dense.labels, classes.id_of('chiar'))
    node = SceneNode(1, labels=(ScoredLabel('chiar', 0.5),))
    [points, nodes] = report_model.label_remarks(
        replace(known, dense=replace(known.dense, labels=unknown), graph=SceneGraph((node,))),
        classes,
    )
    assert points.startswith('every point has the label 65535: no class')
    assert nodes == 'no node has the name of a class of the scene; the map has chiar'


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
    assert (
        report_model.for_run(both, IDENTITY, config.Source.MAP, config.Source.GROWTH) == both[:1]
    )


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
