# my_mapper.py
import numpy as np

from osmabench_ros.participant import DenseMap, MapHeader, Participant, Provenance, SemanticMap


class MyMapper:
    def __init__(self):
        self.points = []

    def integrate(self, frame):  # colour, depth, pose and intrinsics of one stamp
        self.points.append(frame.world_points()[::50])

    def semantic_map(self, final):
        dense = DenseMap(np.concatenate(self.points))
        return SemanticMap(MapHeader(Provenance('mine')), dense=dense)


Participant(MyMapper).spin()
