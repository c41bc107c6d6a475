# my_bench/my_bench/mapper.py
import numpy as np
from pydantic import Field

from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.maps.semantic_map import DenseMap, MapHeader, Provenance, SemanticMap


class Options(Strict):
    step: int = Field(50, ge=1)


class PointMapper:
    """Keeps every n-th point, without labels."""

    uses_ground_truth = False

    def __init__(self, *, label_set, seed, options):
        self._step = validated(Options, options, 'mapper "points"').step
        self._points = [np.zeros((0, 3), np.float32)]

    def integrate(self, frame):
        self._points.append(frame.world_points()[:: self._step])

    def semantic_map(self, *, final):
        provenance = Provenance('points', frames_used=len(self._points) - 1)
        return SemanticMap(MapHeader(provenance), dense=DenseMap(np.concatenate(self._points)))
