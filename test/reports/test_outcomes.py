import numpy as np
import pytest
from support.world.outcomes import SOFA, TABLE, context

from osmabench_ros.reports.palette import PointOutcome
from osmabench_ros.reports.pictures.graph_errors import (
    OUTCOMES,
    compute_shares,
    compute_surface_outcomes,
    read_max_distance,
)
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.semantics.labels import UNLABELLED


def test_each_outcome_is_told_from_the_others():
    points = [[0, 0, 0.05], [1, 0, 0], [2, 0, 0], [3, 0, 0.2]]
    codes = compute_surface_outcomes(context(points, [SOFA, TABLE, UNLABELLED, SOFA]), 0.1)
    expected = [
        PointOutcome.CORRECT,
        PointOutcome.WRONG,
        PointOutcome.UNLABELLED,
        PointOutcome.MISSING,
    ]
    assert [OUTCOMES[code] for code in codes] == expected
    assert compute_shares(codes) == dict.fromkeys(PointOutcome, 0.25)


def test_a_map_without_labels_has_no_outcomes():
    assert compute_surface_outcomes(context([[0, 0, 0]], None), 0.1) is None


def test_a_map_without_points_has_only_missing_ones():
    codes = compute_surface_outcomes(context(np.zeros((0, 3)), []), 0.1)
    assert {OUTCOMES[code] for code in codes} == {PointOutcome.MISSING}


def test_the_largest_distance_is_that_of_the_suite():
    assert (
        read_max_distance([SuiteConfig(name='osma_segmentation', options={'max_distance_m': 0.3})])
        == 0.3
    )
    assert read_max_distance([SuiteConfig(name='map_geometry')]) == pytest.approx(0.1)
