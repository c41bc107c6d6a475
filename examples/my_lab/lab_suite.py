# lab_suite.py
from scipy.spatial import cKDTree

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.metrics.record import MetricRecord


class Reach:
    name = 'reach'

    def __init__(self, *, options):
        validated(Strict, options, 'suite "reach"')  # it has no options

    def evaluate(self, context):
        mapped, value = context.matches.predicted, None
        if mapped is not None:  # else it is not applicable
            true = context.ground_truth.surface.points
            true = true[(true[:, 2] > 0.4) & (true[:, 2] < 1.2)]
            distances_m, _ = cKDTree(mapped.points).query(true)
            value = float((distances_m < 0.05).mean())
        return [MetricRecord(self.name, '', 'share_mapped', value=value, higher_is_better=True)]
