"""Ways on triangles, which prove the lengths of ways that questions ask for."""

import math

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import dijkstra
from support.benchmark_scripts import benchmark_script

TriangleNavigation = benchmark_script('triangle_ways').TriangleNavigation


def grid_mesh(free, cell_m):
    corners = {}
    faces = []
    for x, y in np.argwhere(free):
        a, b, c, d = (
            corners.setdefault(place, len(corners))
            for place in ((x, y), (x + 1, y), (x + 1, y + 1), (x, y + 1))
        )
        faces += [(a, b, c), (a, c, d)]
    points = np.array([(x * cell_m, y * cell_m, 0.0) for x, y in corners])
    return points, np.array(faces)


def visible_way_m(corners, blocked, start, goal):
    """Return the shortest way by the visibility graph of the corners of axis-aligned blocks."""
    points = np.array([start, goal, *corners])
    count = len(points)
    lengths = np.zeros((count, count))
    for i in range(count):
        for j in range(i):
            line = points[i] + np.linspace(0, 1, 4001)[:, None] * (points[j] - points[i])
            inside = [
                ((line > np.add(low, 1e-9)) & (line < np.subtract(high, 1e-9))).all(axis=1).any()
                for low, high in blocked
            ]
            if not any(inside):
                lengths[i, j] = math.dist(points[i], points[j])
    return dijkstra(coo_array(lengths).tocsr(), directed=False, indices=0)[1]


def test_ways_on_small_triangles_are_those_of_a_visibility_graph_but_for_two_percent():
    free = np.ones((40, 30), bool)
    blocked = [((1.0, 0.5), (1.4, 3.0)), ((2.2, 0.0), (2.6, 2.1))]
    for low, high in blocked:
        x, y = (slice(*(round(10 * v) for v in pair)) for pair in zip(low, high, strict=True))
        free[x, y] = False
    navigation = TriangleNavigation(*grid_mesh(free, 0.1))
    # The other corners are on the border.
    corners = [(1.0, 0.5), (1.4, 0.5), (2.2, 2.1), (2.6, 2.1)]
    rng = np.random.default_rng(0)
    for _ in range(6):
        start, goal = rng.uniform((0.1, 0.1), (0.9, 2.9)), rng.uniform((2.7, 0.1), (3.9, 2.9))
        true_m = visible_way_m(corners, blocked, start, goal)
        found_m = navigation.distance_m((*start, 0), (*goal, 0))
        assert true_m - 1e-6 <= found_m <= 1.02 * true_m


def test_there_is_no_way_between_parts_that_do_not_touch():
    free = np.ones((9, 4), bool)
    free[4] = False
    navigation = TriangleNavigation(*grid_mesh(free, 1.0))
    assert navigation.distance_m((1, 1, 0), (8, 1, 0)) == math.inf
    # From outside of the mesh, from the nearest point of it.
    assert navigation.distance_m((-1, 1, 0), (3, 1, 0)) == pytest.approx(3)
