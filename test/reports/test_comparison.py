"""Conditions and mappers compared on the page."""

import re
from dataclasses import replace

import numpy as np
import pytest
from support.world.matrix import changed_run

from osmabench_ros.metrics.comparison import find_smallest_difference
from osmabench_ros.metrics.statistics import jackknife_interval
from osmabench_ros.reports.comparison import (
    OBJECTS,
    build_comparison_view,
    build_power_rows,
    describe_expected_power,
)
from osmabench_ros.reports.content import gather
from osmabench_ros.reports.matrix_charts import draw_robustness_chart
from osmabench_ros.reports.palette import PointOutcome
from osmabench_ros.reports.pictures.graph_errors import OUTCOMES, compute_object_shares
from osmabench_ros.runs.identity import SceneKey


@pytest.fixture(scope='module')
def content(runs):
    return gather(runs)


@pytest.fixture(scope='module')
def view(runs, content):
    return build_comparison_view(runs, content)


@pytest.mark.full
def test_one_scene_is_compared_by_its_questions_and_objects(view):
    rows = {(row.subject, row.other, row.metric): row for row in view.mappers}
    questions = rows['baseline', 'noisy_oracle', 'VQA']
    assert questions.units == '4 objects of one scene'
    objects = rows['baseline', 'noisy_oracle', OBJECTS]
    assert objects.units.endswith('objects of one scene')
    difference = objects.comparison.paired.difference
    assert difference.low <= difference.value <= difference.high < 0
    # One scene has one mAcc, of which nothing can be resampled.
    alone = rows['baseline', 'noisy_oracle', 'mAcc']
    assert alone.units == '1 scene'
    assert alone.cells[0].interval == ''
    assert 'constant' not in {row.metric for row in view.mappers}
    assert {row.reference for row in view.conditions} == {'baseline'}


def test_the_mean_over_objects_is_that_of_their_shares(view, content):
    shares = {
        section.run.mapper: np.array(list(section.pictures.object_shares.values()))
        for section in content.sections
        if section.pictures is not None and section.run.condition == 'baseline'
    }
    [row] = [row for row in view.mappers if row.metric == OBJECTS and row.subject == 'baseline']
    expected = jackknife_interval(shares['noisy_oracle'] - shares['oracle'], unit='objects')
    assert row.comparison.paired.difference == expected


def test_objects_count_their_own_points_only(content):
    truth = content.scenes[0].truth
    codes = np.full(len(truth.surface), OUTCOMES.index(PointOutcome.WRONG), np.uint8)
    first = int(truth.surface.instances[truth.surface.instances > 0][0])
    codes[truth.surface.instances == first] = OUTCOMES.index(PointOutcome.CORRECT)
    found = compute_object_shares(codes, truth)
    assert found.pop(first) == 1.0
    assert set(found.values()) == {0.0}
    assert set(found) == set(truth.surface.instances.tolist()) - {0, first}


def scenes_of(runs, values):
    """Return two runs by scene: the first has a value there, the second 0.25."""
    return [
        changed_run(
            run, [replace(record, value=given) for record in run.report.metrics], scene_key=key
        )
        for key, value in values.items()
        for run, given in zip(runs, (value, 0.25), strict=False)
    ]


def test_the_power_is_that_of_the_observed_spread(runs, content):
    values = {SceneKey('boxes', f'room_{i}', 0): 0.5 + 0.1 * i for i in range(3)}
    three = scenes_of(runs, values)
    found = build_power_rows(build_comparison_view(three, content))
    [(_, between, units, cells)] = [row for row in found if row[0] == 'mAcc']
    # Changes of -25, -35 and -45 points.
    assert (between, units, cells[0].text) == ('mappers', '3 scenes', '10.0')
    assert cells[1].text == f'{100 * find_smallest_difference(3, 0.1):.1f}' == '32.6'
    assert [cell.text for cell in cells[3:]] == ['787', '199', '34', '10']
    assert cells[2].text == '\N{EN DASH}', 'one path a scene says nothing of more'

    keys = [SceneKey('boxes', f'room_{i}', 0, path) for i in range(3) for path in (1, 2)]
    paths = scenes_of(runs, dict(zip(keys, (0.4, 0.6, 0.5, 0.7, 0.6, 0.8), strict=True)))
    found = build_power_rows(build_comparison_view(paths, content))
    [(_, _, units, cells)] = [row for row in found if row[0] == 'mAcc']
    assert (units, cells[0].text) == ('3 scenes', '10.0')
    # Paths differ by 14.1 points inside: 10**2 - 14.1**2 / 4 is left with four instead of two.
    assert cells[2].text == f'{100 * find_smallest_difference(3, 0.0707107):.1f}'


@pytest.mark.full
def test_without_three_units_the_power_is_that_of_an_assumed_spread(runs, content, html):
    assert build_power_rows(build_comparison_view(runs, content)) == []
    expected = describe_expected_power(runs)
    assert '1 scene: no interval' in expected[0]
    assert f'<p class="notice">{expected[0]}.</p>' in html


def test_several_scenes_are_the_units(runs, content):
    values = {SceneKey('boxes', f'room_{i}', 0): 0.5 + 0.1 * i for i in range(3)}
    view = build_comparison_view(scenes_of(runs, values), content)
    [row] = [row for row in view.mappers if row.metric == 'mAcc']
    assert row.units == '3 scenes'
    found = row.comparison
    assert found.paired.difference.value == pytest.approx(-0.35)
    assert found.paired.rank_biserial == -1.0
    assert found.robustness.value == pytest.approx(0.25 / 0.6 - 1)
    assert row.cells[0].text == '-35.0'
    assert re.fullmatch(r'\[-\d+\.\d, -\d+\.\d\]', row.cells[0].interval)
    assert row.cells[4].text == '\N{EN DASH}', 'no outcome of three pairs could be significant'


@pytest.mark.full
def test_the_page_says_what_was_resampled(html):
    section = html[html.index('<section id="comparison"') :].split('</section>')[0]
    assert '4 objects of one scene' in section
    assert 'nothing about other scenes' in section
    assert 'aria-label="Relative change of metrics by condition"' in section
    assert '<a href="#comparison">' in html


def test_nothing_is_compared_where_there_is_one_run(runs, content):
    view = build_comparison_view(runs[:1], content)
    assert view.conditions == view.mappers == ()
    assert draw_robustness_chart(view.conditions, runs[:1]) is None
