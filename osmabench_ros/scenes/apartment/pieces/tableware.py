"""Dishes, food and other small things that are put on or in something."""

from __future__ import annotations

from itertools import pairwise

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece, Support
from osmabench_ros.scenes.apartment.finishes import Style, plain
from osmabench_ros.semantics.scene_graph import RelationType


def cup(style: Style) -> Piece:
    """Return a mug with a handle."""
    body, glaze = Body(), style.ceramic('white', 'red', 'blue', 'yellow', 'green', 'teal')
    radius, height = 0.04, style.uniform(0.085, 0.1)
    inner = radius - 0.005
    profile = [(0, 0), (radius, 0), (radius, height), (inner, height), (inner, 0.008), (0, 0.008)]
    body.add(solids.lathe(profile, 14), glaze)
    handle = [(radius, 0.75), (radius + 0.028, 0.7), (radius + 0.028, 0.3), (radius, 0.25)]
    for (x0, z0), (x1, z1) in pairwise(handle):
        body.add(solids.rod((x0, 0, z0 * height), (x1, 0, z1 * height), 0.006, 6), glaze)
    return body.piece('cup', glaze)


def plate(style: Style) -> Piece:
    """Return a dinner plate."""
    body, glaze = Body(), style.ceramic('white', 'cream', 'light blue', 'teal')
    radius = style.uniform(0.1, 0.125)
    profile = [(0, 0), (0.6 * radius, 0), (radius, 0.018), (radius - 0.004, 0.022)]
    body.add(solids.lathe([*profile, (0.58 * radius, 0.007), (0, 0.007)], 22), glaze)
    flat = Support((0, 0, 0.007), (0.7 * radius, 0.7 * radius), 0.2)
    return body.piece('plate', glaze, [flat])


def bowl(style: Style) -> Piece:
    """Return a wide bowl for fruit."""
    body, glaze = Body(), style.ceramic('white', 'blue', 'green', 'cream', 'red')
    profile = [(0, 0), (0.06, 0), (0.11, 0.04), (0.14, 0.095), (0.133, 0.095), (0.104, 0.046)]
    body.add(solids.lathe([*profile, (0.06, 0.01), (0, 0.01)], 22), glaze)
    inside = Support((0, 0, 0.01), (0.16, 0.16), 0.2, RelationType.IN)
    return body.piece('bowl', glaze, [inside])


def bottle(style: Style) -> Piece:
    """Return a bottle with a cap."""
    body, glass = Body(), style.glass('green', 'dark brown', 'light blue', 'red')
    radius, height = style.uniform(0.033, 0.042), style.uniform(0.22, 0.27)
    shoulder = 0.62 * height
    profile = [(0, 0), (radius, 0), (radius, shoulder), (0.013, 0.82 * height), (0.013, height)]
    body.add(solids.lathe([*profile, (0, height)], 14), glass)
    label = solids.cylinder(radius + 0.001, 0.3 * height, segments=14)
    body.add(label, plain('cream', 'paper'), (0, 0, 0.2 * height))
    return body.piece('bottle', glass)


def apple(style: Style) -> Piece:
    """Return an apple."""
    body, skin = Body(), style.finish(('red', 'green', 'yellow'), 'fruit')
    body.add(solids.ellipsoid((0.076, 0.076, 0.07), 12), skin, (0, 0, 0.035))
    body.add(solids.rod((0, 0, 0.068), (0.004, 0, 0.085), 0.002, 6), plain('brown', 'fruit'))
    return body.piece('apple', skin)


def orange(style: Style) -> Piece:
    """Return an orange."""
    body, skin = Body(), style.finish(('orange',), 'fruit')
    body.add(solids.ellipsoid((0.08, 0.08, 0.078), 12), skin, (0, 0, 0.039))
    return body.piece('orange', skin)


def vase(style: Style) -> Piece:
    """Return a vase with flowers."""
    body, glaze = Body(), style.ceramic('white', 'blue', 'teal', 'black', 'purple')
    height = style.uniform(0.2, 0.26)
    profile = [(0, 0), (0.045, 0), (0.07, 0.4 * height), (0.035, 0.85 * height), (0.045, height)]
    inner = [(0.039, height), (0.029, 0.85 * height), (0, 0.8 * height)]
    body.add(solids.lathe([*profile, *inner], 18), glaze)
    petals = style.finish(('red', 'yellow', 'pink', 'purple', 'white'), 'plant')
    stem = plain('green', 'plant')
    for x, y, z in ((0.04, 0.02, 0.12), (-0.04, 0.03, 0.1), (0.0, -0.045, 0.14)):
        tip = (x, y, height + z)
        body.add(solids.rod((x * 0.1, y * 0.1, 0.8 * height), tip, 0.003, 6), stem)
        body.add(solids.ellipsoid((0.06, 0.06, 0.04), 10), petals, tip)
    return body.piece('vase', glaze)


def candle(style: Style) -> Piece:
    """Return a thick candle."""
    body, wax = Body(), style.finish(('cream', 'red', 'white', 'purple'), 'wax')
    height = style.uniform(0.08, 0.14)
    body.add(solids.cylinder(0.032, height, segments=14), wax)
    body.add(solids.cylinder(0.002, 0.015, segments=6), plain('black', 'fabric'), (0, 0, height))
    return body.piece('candle', wax)


def book(style: Style) -> Piece:
    """Return a book that lies flat."""
    body = Body()
    cover = style.paper('red', 'blue', 'green', 'navy', 'orange', 'purple', 'black', 'yellow')
    width, depth = style.uniform(0.14, 0.17), style.uniform(0.2, 0.24)
    height = style.uniform(0.025, 0.045)
    x, y = width / 2, depth / 2
    body.box((-x, -y, 0), (x, y, 0.003), cover)
    body.box((-x, -y, height - 0.003), (x, y, height), cover)
    body.box((-x, -y, 0.003), (-x + 0.003, y, height - 0.003), cover)
    pages = plain('cream', 'paper')
    body.box((-x + 0.003, -y + 0.004, 0.003), (x - 0.004, y - 0.004, height - 0.003), pages)
    return body.piece('book', cover, [Support((0, 0, height), (0.9 * width, 0.9 * depth), 0.2)])


def standing_books(style: Style) -> Piece:
    """Return a row of upright books; the row is one thing."""
    body, count = Body(), int(style.rng.integers(5, 10))
    colors = ('red', 'blue', 'green', 'navy', 'orange', 'cream', 'black', 'teal')
    covers = [style.paper(*colors) for _ in range(3)]
    x = 0.0
    for i in range(count):
        width, height = style.uniform(0.022, 0.042), style.uniform(0.19, 0.25)
        depth = style.uniform(0.15, 0.19)
        cover = covers[i % 3]
        body.box((x, 0.0, 0), (x + 0.003, depth, height), cover)
        body.box((x + width - 0.003, 0.0, 0), (x + width, depth, height), cover)
        body.box((x + 0.003, 0.0, 0), (x + width - 0.003, 0.003, height), cover)
        pages = plain('cream', 'paper')
        low, high = (x + 0.003, 0.003, 0.003), (x + width - 0.003, depth - 0.004, height - 0.004)
        body.box(low, high, pages)
        x += width + 0.001
    return body.piece('book', covers[0])


def clothes(style: Style) -> Piece:
    """Return a crumpled bundle of laundry."""
    body = Body()
    cloth = style.fabric('blue', 'red', 'white', 'green', 'gray', 'pink')
    for size, at in (
        ((0.17, 0.15, 0.12), (0.0, 0.01, 0.06)),
        ((0.12, 0.14, 0.1), (-0.025, -0.015, 0.12)),
        ((0.13, 0.1, 0.09), (0.025, 0.02, 0.15)),
    ):
        body.add(solids.ellipsoid(size, 12, 0.8), cloth, at)
    return body.piece('clothes', cloth)


def shoes(style: Style) -> Piece:
    """Return a pair of shoes; the toes point to the front."""
    body = Body()
    upper = style.leather('black', 'brown', 'white', 'red', 'navy')
    sole = plain('dark gray', 'rubber')
    for x in (-0.06, 0.06):
        body.box((x - 0.042, -0.13, 0), (x + 0.042, 0.13, 0.02), sole)
        body.add(solids.ellipsoid((0.084, 0.26, 0.11), 12, 0.7), upper, (x, 0, 0.07))
        body.add(solids.cylinder(0.04, 0.06, 0.036, 12), upper, (x, 0.07, 0.08))
    return body.piece('shoes', upper)
