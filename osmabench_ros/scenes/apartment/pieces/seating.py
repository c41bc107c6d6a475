"""Things to sit and lie on, tables and desks."""

from __future__ import annotations

import numpy as np

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece, Support
from osmabench_ros.scenes.apartment.finishes import Finish, Style
from osmabench_ros.semantics.scene_graph import RelationType


def _on_legs(
    class_name: str, size: tuple[float, float, float], top: Finish, legs: Finish, leg_m: float
) -> Piece:
    """Build a table with two supports: its top, and the floor below it."""
    width, depth, height = size
    body = Body()
    body.legs(width - 0.04, depth - 0.04, height - 0.035, leg_m, legs)
    body.box((-width / 2, -depth / 2, height - 0.035), (width / 2, depth / 2, height), top)
    inset = leg_m + 0.03
    for y in (-depth / 2 + 0.03, depth / 2 - 0.05):
        body.box(
            (-width / 2 + inset, y, height - 0.11),
            (width / 2 - inset, y + 0.02, height - 0.035),
            legs,
        )
    place = Support((0, 0, height), (width - 0.06, depth - 0.06), 0.7)
    below = Support((0, 0, 0), (width - 0.2, depth - 0.1), height - 0.15, RelationType.UNDER)
    return body.piece(class_name, top, [place, below])


def dining_table(style: Style) -> Piece:
    """Return a table for four."""
    size = (style.uniform(1.15, 1.4), style.uniform(0.75, 0.85), 0.75)
    wood = style.wood('light brown', 'brown', 'dark brown')
    return _on_legs('table', size, wood, wood, 0.06)


def coffee_table(style: Style) -> Piece:
    """Return a low table with a stone or wooden top."""
    size = (style.uniform(0.8, 1.0), style.uniform(0.5, 0.58), style.uniform(0.38, 0.44))
    top = style.stone() if style.rng.random() < 0.4 else style.wood()
    return _on_legs('coffee table', size, top, style.metal('black', 'silver', 'gold'), 0.04)


def desk(style: Style) -> Piece:
    """Return a desk."""
    size = (style.uniform(1.2, 1.45), style.uniform(0.65, 0.72), 0.74)
    legs = style.metal('black', 'white', 'silver')
    return _on_legs('desk', size, style.wood('white', 'light brown', 'dark brown'), legs, 0.045)


def console_table(style: Style) -> Piece:
    """Return a narrow table for the hallway."""
    size = (style.uniform(0.75, 0.95), 0.28, style.uniform(0.76, 0.82))
    wood = style.wood('white', 'light brown', 'dark brown', 'black')
    return _on_legs('console table', size, wood, wood, 0.04)


def nightstand(style: Style) -> Piece:
    """Return a nightstand with a drawer above an open compartment."""
    body, wood = Body(), style.wood('light brown', 'brown', 'dark brown', 'white')
    width, depth, height = style.uniform(0.42, 0.48), 0.4, style.uniform(0.5, 0.56)
    x, y, board = width / 2, depth / 2, 0.02
    for side in (-x, x - board):
        body.box((side, -y, 0.04), (side + board, y, height - board), wood)
    body.box((-x, -y, height - board), (x, y, height), wood)
    body.box((-x + board, -y, 0.04), (x - board, y - board, 0.04 + board), wood)
    body.box((-x + board, y - board, 0.04), (x - board, y, height - board), wood)
    drawer = height - 0.18
    body.box((-x + board, -y + 0.005, drawer), (x - board, y - board, height - board), wood)
    knob = style.metal('gold', 'silver', 'black')
    body.add(solids.ellipsoid((0.03, 0.03, 0.03), 8), knob, (0, -y - 0.008, drawer + 0.08))
    body.legs(width - 0.02, depth - 0.02, 0.04, 0.04, wood)
    inside = Support(
        (0, 0, 0.04 + board), (width - 0.08, depth - 0.08), drawer - 0.08, RelationType.IN
    )
    top = Support((0, 0, height), (width - 0.04, depth - 0.06), 0.6)
    return body.piece('nightstand', wood, [top, inside])


def chair(style: Style) -> Piece:
    """Return a dining chair."""
    body, wood = Body(), style.wood('light brown', 'dark brown', 'white', 'black')
    width, seat = style.uniform(0.4, 0.44), 0.45
    half = width / 2
    body.legs(width, width, seat - 0.03, 0.035, wood)
    body.box((-half, -half, seat - 0.03), (half, half, seat), wood)
    for x in (-half, half - 0.035):
        body.box((x, half - 0.035, seat), (x + 0.035, half, 0.9), wood)
    for z in (0.58, 0.7, 0.82):
        low = (-half + 0.035, half - 0.03, z)
        body.box(low, (half - 0.035, half - 0.01, z + 0.07), wood)
    seat_place = Support((0, -0.02, seat), (width - 0.08, width - 0.1), 0.4)
    return body.piece('chair', wood, [seat_place])


def stool(style: Style) -> Piece:
    """Return a round stool."""
    body, wood = Body(), style.wood('white', 'light brown', 'brown', 'black')
    for angle in np.arange(3) * 2 * np.pi / 3 + 0.4:
        foot = 0.16 * np.array([np.cos(angle), np.sin(angle), 0.0])
        body.add(solids.rod(foot, foot * 0.7 + [0, 0, 0.42], 0.016), wood)
    body.add(solids.cylinder(0.16, 0.035, segments=20), wood, (0, 0, 0.415))
    return body.piece('stool', wood, [Support((0, 0, 0.45), (0.2, 0.2))])


def office_chair(style: Style) -> Piece:
    """Return a swivel chair on castors."""
    body, cloth = Body(), style.fabric('black', 'dark gray', 'blue', 'green', 'red')
    frame = style.plastic('black', 'dark gray')
    for angle in np.arange(5) * 2 * np.pi / 5 + np.pi / 2:
        tip = np.array([0.27 * np.cos(angle), 0.27 * np.sin(angle), 0.065])
        body.add(solids.rod((0, 0, 0.09), tip, 0.018), frame)
        body.add(solids.ellipsoid((0.055, 0.055, 0.055), 8), frame, (*tip[:2], 0.0275))
    body.add(solids.cylinder(0.028, 0.34, segments=10), frame, (0, 0, 0.08))
    body.add(solids.ellipsoid((0.48, 0.46, 0.1), 16, 0.5), cloth, (0, 0, 0.46))
    body.add(solids.ellipsoid((0.44, 0.09, 0.5), 16, 0.5), cloth, (0, 0.22, 0.8))
    body.box((-0.03, 0.2, 0.42), (0.03, 0.23, 0.7), frame)
    for x in (-0.26, 0.26):
        body.box((x - 0.025, -0.1, 0.64), (x + 0.025, 0.14, 0.67), frame)
        body.box((x - 0.015, 0.0, 0.44), (x + 0.015, 0.04, 0.64), frame)
    return body.piece('office chair', cloth)


def _upholstered(class_name: str, width: float, seats: int, cloth: Finish, feet: Finish) -> Piece:
    depth, seat, arm = 0.86, 0.43, 0.18
    body, half = Body(), width / 2
    body.legs(width - 0.1, depth - 0.1, 0.08, 0.06, feet)
    body.box((-half, -depth / 2, 0.08), (half, depth / 2, 0.28), cloth)
    body.box((-half, depth / 2 - 0.2, 0.28), (half, depth / 2, 0.82), cloth)
    for x in (-half, half - arm):
        body.box((x, -depth / 2, 0.28), (x + arm, depth / 2 - 0.2, 0.6), cloth)
    inner = width - 2 * arm
    each = inner / seats
    for i in range(seats):
        x = -inner / 2 + (i + 0.5) * each
        size = (each - 0.01, depth - 0.22, seat - 0.28)
        body.add(solids.box(size), cloth, (x, -0.1, 0.28 + (seat - 0.28) / 2))
    place = Support((0, -0.12, seat), (inner - 0.06, depth - 0.34), 0.35)
    return body.piece(class_name, cloth, [place])


def sofa(style: Style) -> Piece:
    """Return a sofa of two or three seats."""
    cloth = style.fabric('gray', 'blue', 'teal', 'beige', 'green', 'red', 'navy')
    seats = int(style.rng.integers(2, 4))
    return _upholstered('sofa', 0.36 + 0.66 * seats, seats, cloth, style.wood())


def armchair(style: Style) -> Piece:
    """Return a leather or fabric armchair."""
    cover = (
        style.leather('brown', 'black', 'dark brown', 'cream')
        if style.rng.random() < 0.5
        else style.fabric('orange', 'yellow', 'olive', 'pink', 'light gray')
    )
    return _upholstered('armchair', style.uniform(0.84, 0.94), 1, cover, style.wood())


def bed(style: Style) -> Piece:
    """Return a double bed with headboard, frame, legs and mattress."""
    body, wood = Body(), style.wood('light brown', 'brown', 'dark brown', 'white')
    sheet = style.fabric('white', 'light gray', 'cream', 'light blue')
    width, length, top = style.uniform(1.5, 1.7), 2.06, 0.5
    half, back = width / 2, length / 2
    body.legs(width, length - 0.06, 0.18, 0.07, wood)
    body.box((-half, -back, 0.18), (half, back - 0.06, 0.32), wood)
    body.box((-half, back - 0.06, 0.1), (half, back, style.uniform(0.95, 1.15)), wood)
    mattress = solids.box((width - 0.06, length - 0.12, top - 0.32))
    body.add(mattress, sheet, (0, -0.03, 0.32 + (top - 0.32) / 2))
    pillows = [
        Support((side * width / 4, back - 0.36, top), (width / 2 - 0.06, 0.46), 0.4)
        for side in (-1, 1)
    ]
    foot = Support((0, -0.32, top), (width - 0.1, length - 0.92), 0.4)
    return body.piece('bed', wood, [*pillows, foot])


def pillow(style: Style) -> Piece:
    """Return a bed pillow."""
    cloth = style.fabric('white', 'light blue', 'pink', 'light gray')
    body = Body()
    body.add(solids.ellipsoid((0.62, 0.4, 0.14), 16, 0.55), cloth, (0, 0, 0.07))
    return body.piece('pillow', cloth)


def cushion(style: Style) -> Piece:
    """Return a square sofa cushion that lies flat."""
    cloth = style.fabric('red', 'yellow', 'orange', 'teal', 'purple', 'white', pattern='stripes')
    body = Body()
    body.add(solids.ellipsoid((0.4, 0.4, 0.13), 14, 0.5), cloth, (0, 0, 0.065))
    return body.piece('cushion', cloth)


def blanket(style: Style) -> Piece:
    """Return a folded blanket."""
    cloth = style.fabric('red', 'green', 'blue', 'beige', 'purple', pattern='stripes')
    body, width = Body(), style.uniform(1.0, 1.3)
    for i, inset in enumerate((0.0, 0.015, 0.03)):
        size = (width - inset, 0.6 - inset, 0.022)
        body.add(solids.box(size), cloth, (0, 0, 0.011 + 0.022 * i))
    return body.piece('blanket', cloth)
