# my_bench/my_bench/suite.py
import numpy as np
from pydantic import Field

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.metrics.record import MetricRecord


class Options(Strict):
    share: float = Field(0.99, gt=0, le=1)


class MapHeight:
    """Difference between the top of the map and of the visible surface, in metres."""

    name = 'map_height'

    def __init__(self, *, options):
        self._options = validated(Options, options, f'suite "{self.name}"')

    def evaluate(self, context):
        mapped, value = context.matches.predicted, None
        if mapped is not None:
            clouds = (mapped.points, context.ground_truth.surface.points)
            top, true = (np.quantile(points[:, 2], self._options.share) for points in clouds)
            value = abs(top - true)
        return [MetricRecord(self.name, '', 'error_m', value=value, higher_is_better=False)]
