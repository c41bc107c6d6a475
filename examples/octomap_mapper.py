"""OctoMap as a mapper: its occupied cells.

    mappers: [{name: octomap, command: [python3, examples/octomap_mapper.py]}]

Needs `pip install pyoctomap`. Hornung et al., OctoMap: An Efficient Probabilistic 3D Mapping
Framework Based on Octrees, Autonomous Robots, 2013.
"""

import numpy as np
from pyoctomap import OcTree

from osmabench_ros.participant import DenseMap, MapHeader, Participant, Provenance, SemanticMap

CELL_M = 0.04
RANGE_M = 6.0
# Rays of every so many-th pixel are enough to fill cells of this size.
EVERY = 4


class OctoMapMapper:
    """Casts rays of every frame, with the poses given, into an octree."""

    def __init__(self):
        self.tree, self.frames = OcTree(CELL_M), 0

    def integrate(self, frame):
        """Mark the cells that rays pass as free, and the cells at their ends as occupied."""
        points = frame.world_points()[::EVERY].astype(np.float64)
        self.tree.insertPointCloud(points, frame.camera_pose.translation, RANGE_M)
        self.frames += 1

    def semantic_map(self, final):
        """Return the centres of the cells that are more likely occupied than not."""
        tree = self.tree
        # Not extractPointCloud: in version 1.2.2 it returns corners of the cells.
        leaves = (leaf for leaf in tree.begin_leafs() if tree.isNodeOccupied(leaf))
        points = np.array([leaf.getCoordinate() for leaf in leaves], np.float32).reshape(-1, 3)
        header = MapHeader(Provenance('octomap', frames_used=self.frames), complete=final)
        return SemanticMap(header, dense=DenseMap(points))


if __name__ == '__main__':
    Participant(OctoMapMapper).spin()
