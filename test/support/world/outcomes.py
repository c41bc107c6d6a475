"""Four points of a sofa, and maps that know some of them."""

import numpy as np

from osmabench_ros.maps.semantic_map import DenseMap
from osmabench_ros.semantics.cloud import LabelledCloud
from osmabench_ros.suites.suite import SuiteContext
from support.world.box_room import LABELS
from support.world.graphs import EMPTY, as_map, ground_truth_of

SOFA, TABLE = LABELS.id_of('sofa'), LABELS.id_of('table')
POINTS = np.array([[0, 0, 0], [1, 0, 0], [2, 0, 0], [3, 0, 0]], np.float32)


def context(points, labels):
    surface = LabelledCloud(POINTS, np.full(4, SOFA, np.int32), np.ones(4, np.int32))
    truth = ground_truth_of(EMPTY, surface, label_set=LABELS, seen_instances=(1,))
    given = None if labels is None else np.array(labels, np.int32)
    dense = DenseMap(np.array(points, np.float32), labels=given)
    return SuiteContext('s', as_map(EMPTY, LABELS, dense), truth, 'cpu')
