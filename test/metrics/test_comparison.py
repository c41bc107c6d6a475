import csv
import math

import pytest
from shared_data import shared_path

from osmabench_ros.errors import MetricError
from osmabench_ros.metrics.comparison import compare_with_reference


def test_scenes_are_aligned_by_name_and_inapplicable_ones_leave() -> None:
    figures = {
        'baseline': {'a': 0.4, 'b': 0.6, 'c': 0.5, 'd': None},
        'camera': {'b': 0.3, 'a': 0.2, 'c': None, 'd': 0.9},
    }
    found = compare_with_reference(figures, 'baseline')
    assert list(found) == ['camera']
    assert found['camera'].paired.difference.value == pytest.approx(-0.25)
    assert found['camera'].paired.difference.n == 2
    assert found['camera'].robustness.value == pytest.approx(-0.5)
    assert math.isnan(found['camera'].adjusted_p)


def test_a_figure_of_zero_is_a_figure() -> None:
    found = compare_with_reference({'x': {'a': 0.0, 'b': 1.0}, 'y': {'a': 0.5, 'b': 0.0}}, 'x')
    assert found['y'].paired.difference.value == pytest.approx(-0.25)
    assert found['y'].paired.difference.n == 2


def test_a_missing_reference_is_named() -> None:
    with pytest.raises(MetricError, match='Did you mean "baseline"'):
        compare_with_reference({'baseline': {}}, 'basline')


def test_published_scenes_show_that_light_costs_quality() -> None:
    figures = {}
    for condition in ('baseline', 'camera_lights', 'dynamic_lights', 'no_lights', 'velocity'):
        path = shared_path('oracles', 'segmentation', f'conceptgraphs_replica_cad_{condition}.csv')
        with path.open() as file:
            rows = [row for row in csv.DictReader(file) if not row['scene'].startswith('overall')]
        figures[condition] = {row['scene']: float(row['fmiou']) for row in rows}
    found = compare_with_reference(figures, 'baseline')
    for condition in ('camera_lights', 'dynamic_lights'):
        assert found[condition].paired.difference.excludes_zero
        assert found[condition].robustness.high < 0
        assert found[condition].adjusted_p < 0.01
    dynamic = found['dynamic_lights'].robustness
    assert dynamic.value < found['camera_lights'].robustness.value
    assert (dynamic.n, dynamic.unit) == (22, 'scenes')
