"""Stairs with a half landing, and railings."""

from __future__ import annotations

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece
from osmabench_ros.scenes.apartment.finishes import Finish

RISERS = 16
"""Of both flights together, the last of which leads onto the upper floor."""

FLIGHT = RISERS // 2 - 1
"""Treads of one flight."""

TREAD_M, LANDING_M = 0.27, 1.0
DEPTH_M = FLIGHT * TREAD_M + LANDING_M
RAIL_M, RAIL_HEIGHT_M = 0.05, 0.95
_POST_EVERY_M = 0.13


def stairs(width_m: float, height_m: float, right: bool, finish: Finish) -> Piece:
    """Return two flights side by side that meet at a half landing at +y; solid down to z = 0.

    The first flight begins at -y, at +x if `right`, the second ends there at `height_m`.
    """
    body, half, rise = Body(), width_m / 2, height_m / RISERS
    first, second = ((0, half), (-half, 0)) if right else ((-half, 0), (0, half))
    for number in range(FLIGHT):
        y = number * TREAD_M
        up, down = (number + 1) * rise, (RISERS - 1 - number) * rise
        for (low, high), top in ((first, up), (second, down)):
            body.box((low, y, 0), (high, y + TREAD_M, top), finish)
    y = FLIGHT * TREAD_M
    body.box((-half, y, 0), (half, y + LANDING_M, height_m / 2), finish)
    return body.piece('stairs', finish)


def landing_railing(length_m: float, finish: Finish) -> Piece:
    """Return a level railing along x."""
    body, half = Body(), length_m / 2
    count = max(1, round(length_m / _POST_EVERY_M))
    for number in range(count):
        x = -half + (number + 0.5) * length_m / count
        body.add(solids.cylinder(0.01, RAIL_HEIGHT_M - RAIL_M, segments=8), finish, (x, 0, 0))
    body.box(
        (-half, -RAIL_M / 2, RAIL_HEIGHT_M - RAIL_M), (half, RAIL_M / 2, RAIL_HEIGHT_M), finish
    )
    return body.piece('railing', finish)


def flight_railing(height_m: float, finish: Finish) -> Piece:
    """Return the railing of the upper flight of `stairs`, which rises towards -y."""
    body, rise, length = Body(), height_m / RISERS, FLIGHT * TREAD_M
    reach = RAIL_HEIGHT_M - RAIL_M
    for number in range(FLIGHT):
        y, z = (number + 0.5) * TREAD_M, (FLIGHT - 1 - number) * rise
        body.add(solids.cylinder(0.01, reach + rise / 2, segments=8), finish, (0, y, z))
    slope = (0, 0, FLIGHT * rise + reach), (0, length, reach)
    body.add(solids.rod(*slope, RAIL_M / 2), finish)
    return body.piece('railing', finish)
