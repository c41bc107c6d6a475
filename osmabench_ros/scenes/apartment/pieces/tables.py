"""Tables and desks."""

from __future__ import annotations

from osmabench_ros.scenes.apartment import solids
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
