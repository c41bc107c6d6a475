"""Exact shortest ways of a robot through `ramp_house`: straight lines and arcs, without a grid."""

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, csgraph

from osmabench_ros.simulation.walkable_grid import CLIMB_M
from support.world.scenes import RAMP_RUN_M, STOREY_M

Points = NDArray[np.float64]

SLOPE = STOREY_M / RAMP_RUN_M
LOW, HIGH = 1 + CLIMB_M / SLOPE, 9 - CLIMB_M / SLOPE
"""The x between which the side of the ramp is too high for a step."""

UNDER = 1 + 1.5 / SLOPE
"""The x from which a robot of 1.5 m fits below the ramp."""

ENDS = [(0, 0, 10, 0), (10, 0, 10, 6), (0, 6, 10, 6), (0, 0, 0, 6)]
PILLAR = [(4, 1.5, 4.1, 1.5), (4, 1.5, 4, 4.7), (4.1, 1.5, 4.1, 4.7), (4, 4.7, 4.1, 4.7)]
PARTITION = [(6, 0, 6, 3), (6.1, 0, 6.1, 3), (6, 3, 6.1, 3)]
FOOT = [(1, 4.7, LOW, 4.7), (1, 4.7, 1, 6)]
HEAD = [(HIGH, 4.7, 9, 4.7), (9, 4.7, 9, 6)]

FACES = (
    ([*ENDS, *PILLAR, (LOW, 4.7, UNDER, 4.7), (UNDER, 4.7, UNDER, 6)], FOOT),
    ([*ENDS, (LOW, 4.7, HIGH, 4.7)], FOOT + HEAD),
    ([*ENDS, *PARTITION, (0, 4.7, HIGH, 4.7)], HEAD),
)
"""Edges to keep clear of, and edges to the next face, of lower floor, ramp and upper floor."""


def heights_m(face, x, y):
    """Return the heights of a face, NaN outside of it."""
    on_ramp = (x > 1 - 1e-6) & (x < 9 + 1e-6) & (y > 4.7 - 1e-6)
    on_edge = on_ramp & ((x < 1 + 1e-6) | (x > 9 - 1e-6) | (y < 4.7 + 1e-6))
    inside = (~on_ramp | on_edge | (x > UNDER), on_ramp, ~on_ramp | on_edge)[face]
    return np.where(inside, (0.0, SLOPE * (x - 1), STOREY_M)[face], np.nan)


def exact_distances_m(pairs, clearance_m):
    """Return the lengths of the shortest ways between pairs of points on floors (N, 2, 3).

    Ways are straight between the edges of faces and the arcs around the ends of walls.
    """
    turns = np.linspace(0, 2 * np.pi, 65)[:-1]
    # Corners of a polygon around the circle, so that its edges keep clear as well.
    radius_m = clearance_m / np.cos(np.pi / 64)
    circle = radius_m * np.column_stack([np.cos(turns), np.sin(turns)])
    shares = np.linspace(0, 1, 100)[:, None]
    ends = pairs.reshape(-1, 3)
    nodes, links = [ends], []
    count = len(ends)
    for face, (walls, gates) in enumerate(FACES):
        flat = [corner + circle for corner in np.unique(np.reshape(walls, (-1, 2)), axis=0)]
        flat += [gate[:2] + shares * (gate[2:] - gate[:2]) for gate in np.array(gates)]
        around = np.concatenate(flat)
        around = np.column_stack([around, heights_m(face, *around.T)])
        around = around[np.isfinite(around[:, 2])]
        around = around[are_clear(around, around, walls, gates, clearance_m)]
        here = np.flatnonzero(np.abs(ends[:, 2] - face * STOREY_M / 2) < 0.1)
        index = np.array([*here, *range(count, count + len(around))])
        count += len(around)
        nodes.append(around)
        points = np.concatenate([ends[here], around])
        a, b = np.triu_indices(len(points), 1)
        free = are_clear(points[a], points[b], walls, gates, clearance_m)
        free &= np.isfinite(heights_m(face, *(points[a] + points[b])[:, :2].T / 2))
        a, b = a[free], b[free]
        links.append((index[a], index[b], np.linalg.norm(points[a] - points[b], axis=1)))
    every = np.concatenate(nodes)
    # A gate is a point of two faces, with a step between them.
    _, place = np.unique(every[:, :2].round(6), axis=0, return_inverse=True)
    order = np.argsort(place, kind='stable')
    same = np.diff(place[order]) == 0
    a, b = order[:-1][same], order[1:][same]
    rise = np.abs(every[a, 2] - every[b, 2])
    step = rise < CLIMB_M + 1e-6
    links.append((a[step], b[step], np.maximum(rise[step], 1e-9)))
    a, b, lengths = (np.concatenate(column) for column in zip(*links, strict=True))
    graph = coo_array((lengths, (a, b)), shape=(count, count)).tocsr()
    starts = np.arange(0, len(ends), 2)
    ways = csgraph.dijkstra(graph, directed=False, indices=starts)
    return np.asarray(ways[np.arange(len(starts)), starts + 1])


def are_clear(start, end, walls, gates, clearance_m):
    """Return which lines between points (N, 3) keep clear of walls and go through no gate."""
    p, q = start[:, None, :2], end[:, None, :2]

    def product(a, b):
        return a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0]

    def are_crossed(edges):
        a, b = np.split(np.array(edges, float), 2, axis=1)
        first = product(q - p, a - p) * product(q - p, b - p)
        second = product(b - a, p - a) * product(b - a, q - a)
        return (first < -1e-9) & (second < -1e-9)

    def measure(point, a, b):
        way = b - a
        along = ((point - a) * way).sum(axis=-1) / np.maximum((way**2).sum(axis=-1), 1e-12)
        return np.linalg.norm(point - a - np.clip(along, 0, 1)[..., None] * way, axis=-1)

    a, b = np.split(np.array(walls, float), 2, axis=1)
    gaps = [measure(p, a, b), measure(q, a, b), measure(a, p, q), measure(b, p, q)]
    near = (np.min(gaps, axis=0) < clearance_m - 1e-6) | are_crossed(walls)
    return ~near.any(axis=1) & ~are_crossed(gates).any(axis=1)
