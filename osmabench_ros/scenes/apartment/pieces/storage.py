"""Shelves, cabinets, wardrobes and vessels for things."""

from __future__ import annotations

from collections.abc import Sequence

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece, Support
from osmabench_ros.scenes.apartment.finishes import Finish, Style
from osmabench_ros.semantics.scene_graph import RelationType

BOARD_M = 0.022


def _open_case(
    body: Body,
    size: tuple[float, float, float],
    shelves_m: Sequence[float],
    wood: Finish,
    base_m: float = 0.05,
) -> list[Support]:
    """Add a case that is open to the front; `shelves_m` are the tops of its shelves."""
    width, depth, height = size
    x, y = width / 2, depth / 2
    for side in (-x, x - BOARD_M):
        body.box((side, -y, 0), (side + BOARD_M, y, height - BOARD_M), wood)
    body.box((-x, -y, height - BOARD_M), (x, y, height), wood)
    body.box((-x + BOARD_M, y - 0.01, base_m), (x - BOARD_M, y, height - BOARD_M), wood)
    if base_m > 0.02:
        body.box((-x + BOARD_M, -y + 0.02, 0), (x - BOARD_M, y - 0.01, base_m - 0.001), wood)
    ceilings = [*shelves_m[1:], height]
    supports = []
    for level, ceiling in zip(shelves_m, ceilings, strict=True):
        body.box((-x + BOARD_M, -y, level - BOARD_M), (x - BOARD_M, y - 0.01, level), wood)
        inner = (width - 2 * BOARD_M - 0.03, depth - 0.04)
        clearance = ceiling - level - BOARD_M - 0.02
        supports.append(Support((0, -0.005, level), inner, clearance, RelationType.IN))
    return supports


def bookshelf(style: Style) -> Piece:
    """Return a tall open shelf."""
    body, wood = Body(), style.wood('white', 'light brown', 'brown', 'dark brown')
    size = (style.uniform(0.75, 0.95), 0.32, style.uniform(1.65, 1.85))
    levels = [0.08 + i * (size[2] - 0.1) / 5 for i in range(5)]
    supports = _open_case(body, size, levels, wood, 0.06)
    top = Support((0, 0, size[2]), (size[0] - 0.1, size[1] - 0.08), 0.3)
    return body.piece('bookshelf', wood, [*supports, top])


def cabinet(style: Style) -> Piece:
    """Return a low open cabinet."""
    body, wood = Body(), style.wood('white', 'light brown', 'brown', 'teal')
    size = (style.uniform(0.8, 1.0), 0.42, 0.88)
    supports = _open_case(body, size, (0.08, 0.48), wood, 0.06)
    top = Support((0, 0, size[2]), (size[0] - 0.06, size[1] - 0.06), 0.5)
    return body.piece('cabinet', wood, [top, *supports])


def wall_cabinet(style: Style) -> Piece:
    """Return an open kitchen cabinet that hangs on the wall."""
    body, wood = Body(), style.wood('white', 'light brown', 'dark gray')
    size = (style.uniform(0.7, 0.9), 0.3, 0.6)
    supports = _open_case(body, size, (BOARD_M, 0.3), wood, 0.0)
    return body.piece('wall cabinet', wood, supports)


def tv_stand(style: Style) -> Piece:
    """Return a long low board with open compartments."""
    body, wood = Body(), style.wood('white', 'light brown', 'dark brown', 'black')
    size = (style.uniform(1.4, 1.7), 0.4, 0.46)
    supports = _open_case(body, size, (0.08,), wood, 0.06)
    body.box((-BOARD_M / 2, -0.19, 0.08), (BOARD_M / 2, 0.19, size[2] - BOARD_M), wood)
    depth, quarter = size[1] - 0.08, (size[0] - 0.16) / 2
    clearance = supports[0].clearance_m
    halves = [
        Support((sign * size[0] / 4, 0, 0.08), (quarter, depth), clearance, RelationType.IN)
        for sign in (-1, 1)
    ]
    top = Support((0, 0, size[2]), (size[0] - 0.06, size[1] - 0.06), 1.0)
    return body.piece('tv stand', wood, [top, *halves])


def shoe_rack(style: Style) -> Piece:
    """Return a low rack of two levels, open on all sides."""
    body, frame = Body(), style.metal('black', 'silver', 'white')
    wood, width, depth = style.wood(), style.uniform(0.7, 0.85), 0.3
    body.legs(width, depth, 0.5, 0.025, frame)
    supports = []
    for level in (0.18, 0.5):
        low = (-width / 2, -depth / 2, level - 0.02)
        body.box(low, (width / 2, depth / 2, level), wood)
        supports.append(Support((0, 0, level), (width - 0.06, depth - 0.02), 0.28))
    return body.piece('shoe rack', wood, supports)


def wardrobe(style: Style) -> Piece:
    """Return a wardrobe with two doors."""
    body, wood = Body(), style.wood('white', 'light brown', 'brown', 'dark brown')
    width, depth, height = style.uniform(1.1, 1.4), 0.58, style.uniform(1.95, 2.1)
    x, y = width / 2, depth / 2
    body.box((-x, -y + 0.02, 0.06), (x, y, height), wood)
    body.box((-x + 0.03, -y + 0.05, 0), (x - 0.03, y - 0.02, 0.06), wood)
    for low, high in ((-x + 0.004, -0.003), (0.003, x - 0.004)):
        body.box((low, -y, 0.07), (high, -y + 0.02, height - 0.01), wood)
    knob = style.metal('silver', 'black', 'gold')
    for side in (-0.05, 0.05):
        body.add(solids.rod((side, -y - 0.02, 0.9), (side, -y - 0.02, 1.15), 0.008), knob)
        for z in (0.92, 1.13):
            body.add(solids.rod((side, -y, z), (side, -y - 0.02, z), 0.006), knob)
    top = Support((0, 0, height), (width - 0.1, depth - 0.1), 0.35)
    return body.piece('wardrobe', wood, [top])


def dresser(style: Style) -> Piece:
    """Return a chest of drawers."""
    body, wood = Body(), style.wood('white', 'light brown', 'brown', 'dark brown')
    width, depth, height = style.uniform(0.8, 1.0), 0.45, style.uniform(0.8, 0.95)
    x, y = width / 2, depth / 2
    body.box((-x, -y + 0.02, 0.05), (x, y, height), wood)
    body.legs(width - 0.02, depth - 0.06, 0.05, 0.05, wood)
    knob = style.metal('silver', 'black', 'gold')
    each = (height - 0.1) / 4
    for row in range(4):
        low = 0.07 + row * each
        body.box((-x + 0.015, -y, low), (x - 0.015, -y + 0.02, low + each - 0.012), wood)
        for side in (-x / 2, x / 2):
            at = (side, -y - 0.01, low + each / 2)
            body.add(solids.ellipsoid((0.03, 0.03, 0.03), 8), knob, at)
    top = Support((0, 0.01, height), (width - 0.06, depth - 0.1), 0.6)
    return body.piece('dresser', wood, [top])


def basket(style: Style) -> Piece:
    """Return a wicker laundry basket."""
    body, radius, height = Body(), 0.2, 0.48
    wicker = style.finish(('beige', 'light brown', 'brown'), 'wicker', 'wicker', 0.3)
    profile = [(0, 0), (radius - 0.03, 0), (radius, height), (radius - 0.018, height)]
    body.add(solids.lathe([*profile, (radius - 0.048, 0.02), (0, 0.02)], 20), wicker)
    inside = Support((0, 0, 0.02), (0.21, 0.21), 0.4, RelationType.IN)
    return body.piece('laundry basket', wicker, [inside])


def carton(style: Style) -> Piece:
    """Return an open cardboard box."""
    body, paper = Body(), style.finish(('light brown', 'beige'), 'cardboard', 'granite', 0.5)
    width, depth, height = style.uniform(0.36, 0.44), style.uniform(0.28, 0.34), 0.28
    x, y, wall = width / 2, depth / 2, 0.01
    body.tray(x, y, height, wall, paper)
    inside = Support((0, 0, wall), (width - 0.06, depth - 0.06), 0.35, RelationType.IN)
    return body.piece('box', paper, [inside])


def trash_can(style: Style) -> Piece:
    """Return an open waste bin."""
    body, shell = Body(), style.plastic('gray', 'black', 'white', 'green', 'red')
    profile = [(0, 0), (0.1, 0), (0.13, 0.3), (0.122, 0.3), (0.092, 0.012), (0, 0.012)]
    body.add(solids.lathe(profile, 18), shell)
    inside = Support((0, 0, 0.012), (0.11, 0.11), 0.25, RelationType.IN)
    return body.piece('trash can', shell, [inside])
