import numpy as np
import pytest
from support.world.box_room import LABELS
from support.world.graphs import ground_truth_of

from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap
from osmabench_ros.reports.outcomes import OUTCOMES, max_distance_of, shares, surface_outcomes
from osmabench_ros.reports.palette import PointOutcome
from osmabench_ros.runs.config import SuiteConfig
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.semantics.labels import UNLABELLED
from osmabench_ros.semantics.scene_graph import SceneGraph
from osmabench_ros.suites.suite import SuiteContext

SOFA, TABLE = LABELS.id_of('sofa'), LABELS.id_of('table')
POINTS = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]], np.float32)


def context(points, labels) -> SuiteContext:
    surface = LabelledCloud(POINTS, np.full(4, SOFA, np.int32), np.ones(4, np.int32))
    truth = ground_truth_of(SceneGraph(), surface, label_set=LABELS, seen_instances=(1,))
    given = None if labels is None else np.array(labels, np.int32)
    dense = DenseMap(np.array(points, np.float32), labels=given)
    return SuiteContext(
        's', SemanticMap(MapHeader(Provenance('m')), dense=dense, label_set=LABELS), truth, 'cpu'
    )


def test_each_outcome_is_told_from_the_others():
    points = [[0, 0, 0.05], [1, 0, 0], [2, 0, 0], [3, 0, 0.2]]
    codes = surface_outcomes(context(points, [SOFA, TABLE, UNLABELLED, SOFA]), 0.1)
    expected = [
        PointOutcome.CORRECT,
        PointOutcome.WRONG,
        PointOutcome.UNLABELLED,
        PointOutcome.MISSING,
    ]
    assert [OUTCOMES[code] for code in codes] == expected
    assert shares(codes) == dict.fromkeys(PointOutcome, 0.25)


def test_a_map_without_labels_has_no_outcomes():
    assert surface_outcomes(context([[0, 0, 0]], None), 0.1) is None


def test_a_map_without_points_has_only_missing_ones():
    codes = surface_outcomes(context(np.zeros((0, 3)), []), 0.1)
    assert {OUTCOMES[code] for code in codes} == {PointOutcome.MISSING}


def test_the_largest_distance_is_that_of_the_suite():
    assert (
        max_distance_of([SuiteConfig(name='osma_segmentation', options={'max_distance_m': 0.3})])
        == 0.3
    )
    assert max_distance_of([SuiteConfig(name='map_geometry')]) == pytest.approx(0.1)
