"""Shortest ways on triangles, a second way to the lengths that exact questions ask for."""

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from trimesh.triangles import closest_point

# Vertices nearer than this are one: exporters repeat them for each polygon.
WELD_M = 1e-3

SPACING_M = 0.1
# Points inside each edge that a way may cross at.
LEAST_POINTS, MOST_POINTS = 3, 40


class TriangleNavigation:
    """Where one can walk: triangles in the world, z up.

    The shortest way crosses edges at their ends or at points SPACING_M apart, at least
    LEAST_POINTS of them in an edge (Lanthier, Maheshwari, Sack, Algorithmica 2001). It is never
    shorter than the true one, and 1 to 2 % longer in a plane of triangles of 0.1 m, less in one of
    larger triangles.

    Parameters
    ----------
    vertices : ndarray of float64, shape (V, 3)
        Metres.
    triangles : ndarray of int64, shape (F, 3)
        Vertex indices.
    """

    def __init__(self, vertices: NDArray[np.float64], triangles: NDArray[np.int64]) -> None:
        places = np.round(vertices / WELD_M)
        _, first, row = np.unique(places, axis=0, return_index=True, return_inverse=True)
        welded = row.reshape(-1)[triangles]
        whole = (welded != np.roll(welded, 1, axis=1)).all(axis=1)
        self.vertices = np.asarray(vertices[first], np.float64)
        self.triangles = np.asarray(welded[whole] if whole.any() else welded, np.int64)

    def snap(self, point_m: ArrayLike) -> tuple[NDArray[np.float64], int]:
        """Return the point (3,) of the mesh nearest to one, and the triangle that it is in."""
        corners = self.vertices[self.triangles]
        point = np.broadcast_to(np.asarray(point_m, np.float64), (len(corners), 3))
        found = closest_point(corners, point)
        nearest = int(np.argmin(np.linalg.norm(found - point, axis=1)))
        return np.asarray(found[nearest]), nearest

    def distance_m(self, start_m: ArrayLike, goal_m: ArrayLike) -> float:
        """Return the length of the way between two points, both snapped; inf if there is none."""
        (start, first), (goal, last) = self.snap(start_m), self.snap(goal_m)
        if first == last:
            return float(np.linalg.norm(goal - start))
        points, of_triangle, edges = self._crossings
        size = len(points)
        rows, columns, lengths = [edges.row], [edges.col], [edges.data]
        for place, end, triangle in ((size, start, first), (size + 1, goal, last)):
            around = of_triangle[triangle]
            rows.append(np.full(len(around), place))
            columns.append(around)
            # A length of 0 would be no edge.
            away = np.linalg.norm(points[around] - end, axis=1)
            lengths.append(np.maximum(away, 1e-9))
        graph = coo_array(
            (np.concatenate(lengths), (np.concatenate(rows), np.concatenate(columns))),
            shape=(size + 2, size + 2),
        ).tocsr()
        found = float(dijkstra(graph, directed=False, indices=size)[size + 1])
        return found if math.isfinite(found) else math.inf

    @cached_property
    def _crossings(self) -> tuple[NDArray[np.float64], list[NDArray[np.int64]], Any]:
        """Points where ways cross edges, the points of each triangle, and ways between them."""
        sides = np.sort(self.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1)
        edges, side = np.unique(sides, axis=0, return_inverse=True)
        ends = self.vertices[edges]
        lengths = np.linalg.norm(ends[:, 1] - ends[:, 0], axis=1)
        counts = np.clip(np.ceil(lengths / SPACING_M) - 1, LEAST_POINTS, MOST_POINTS).astype(int)
        starts = len(self.vertices) + np.concatenate([[0], np.cumsum(counts)])
        owner = np.repeat(np.arange(len(edges)), counts)
        rank = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        share = ((rank + 1) / (counts[owner] + 1))[:, None]
        inside = ends[owner, 0] * (1 - share) + ends[owner, 1] * share
        points = np.concatenate([self.vertices, inside])
        side = side.reshape(-1, 3)
        of_triangle, pairs = [], []
        for corners, own in zip(self.triangles, side, strict=True):
            along = [np.arange(starts[edge], starts[edge + 1]) for edge in own]
            around = np.concatenate([corners, *along])
            of_triangle.append(around)
            a, b = np.triu_indices(len(around), 1)
            pairs.append(np.column_stack([around[a], around[b]]))
        size = len(points) + 2
        low, high = np.sort(np.concatenate(pairs), axis=1).T
        # As one number each: rows of a table take ten times as long to sort out.
        both = np.column_stack(np.divmod(np.unique(low * size + high), size))
        ways = np.linalg.norm(points[both[:, 0]] - points[both[:, 1]], axis=1)
        graph = coo_array((np.maximum(ways, 1e-9), (both[:, 0], both[:, 1])), shape=(size, size))
        return points, of_triangle, graph
