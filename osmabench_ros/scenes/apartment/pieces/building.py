"""What the building consists of: walls with openings, floors, ceilings, doors, windows."""

from __future__ import annotations

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece
from osmabench_ros.scenes.apartment.finishes import Finish, Style, plain
from osmabench_ros.scenes.apartment.layout import FRAME_M, WALL_M, Opening

SLAB_M = 0.1
CASING_M, CASING_WIDTH_M = 0.012, 0.035
"""Thickness of the boards around a doorway, which lie on the wall, and their width there."""

LEAF_M = 0.04


def wall(
    length_m: float, overhang_m: float, height_m: float, openings: list[Opening], finish: Finish
) -> Piece:
    """Return half a wall, seen from its room; `overhang_m` fills the corners at either end."""
    half, thickness = length_m / 2, WALL_M / 2
    body = Body()

    def block(u_low: float, u_high: float, z_low: float, z_high: float) -> None:
        if u_high - u_low > 1e-6 and z_high - z_low > 1e-6:
            body.box((half - u_high, 0, z_low), (half - u_low, thickness, z_high), finish)

    start = -overhang_m
    for opening in sorted(openings, key=lambda item: item.low_m):
        block(start, opening.low_m, 0.0, height_m)
        block(opening.low_m, opening.high_m, 0.0, opening.sill_m)
        block(opening.low_m, opening.high_m, opening.head_m, height_m)
        start = opening.high_m
    block(start, length_m + overhang_m, 0.0, height_m)
    return body.piece('wall', finish)


def slab(class_name: str, width_m: float, depth_m: float, finish: Finish) -> Piece:
    """Return a floor or ceiling."""
    body = Body()
    body.box((0, 0, 0), (width_m, depth_m, SLAB_M), finish)
    return body.piece(class_name, finish)


def door_frame(width_m: float, height_m: float, finish: Finish) -> Piece:
    """Return the lining of a doorway with boards on both faces of the wall."""
    body = Body()
    _border(body, width_m, height_m, 0.0, (-WALL_M / 2, WALL_M / 2), finish)
    for y in ((-WALL_M / 2 - CASING_M, -WALL_M / 2), (WALL_M / 2, WALL_M / 2 + CASING_M)):
        _border(body, width_m, height_m, CASING_WIDTH_M, y, finish)
    return body.piece('door frame', finish)


def entrance_frame(width_m: float, height_m: float, finish: Finish) -> Piece:
    """Return the lining of a doorway in an outer wall with boards on the inner face."""
    body = Body()
    _border(body, width_m, height_m, 0.0, (0.0, WALL_M / 2), finish)
    _border(body, width_m, height_m, CASING_WIDTH_M, (-CASING_M, 0.0), finish)
    return body.piece('door frame', finish)


def _border(
    body: Body,
    width_m: float,
    height_m: float,
    beyond_m: float,
    y: tuple[float, float],
    finish: Finish,
) -> None:
    """Add boards on three sides of a doorway, from its passage to a distance beyond it."""
    inner, outer, top = width_m / 2 - FRAME_M, width_m / 2 + beyond_m, height_m + beyond_m
    for low, high in ((-outer, -inner), (inner, outer)):
        body.box((low, y[0], 0), (high, y[1], top), finish)
    body.box((-inner, y[0], height_m - FRAME_M), (inner, y[1], top), finish)


def door_leaf(width_m: float, height_m: float, finish: Finish) -> Piece:
    """Return a door leaf with panels and a handle; its hinges are at -x."""
    body, half = Body(), width_m / 2
    body.box((-half, -LEAF_M / 2, 0.01), (half, LEAF_M / 2, height_m), finish)
    inset = 0.14
    for low, high in ((0.2, 0.42 * height_m), (0.5 * height_m, height_m - 0.18)):
        y = -LEAF_M / 2
        body.box((-half + inset, y - 0.008, low), (half - inset, y, high), finish)
    handle, x = plain('silver', 'metal'), half - 0.07
    body.add(solids.rod((x, -LEAF_M / 2, 1.0), (x, -LEAF_M / 2 - 0.05, 1.0), 0.01), handle)
    tip = (x - 0.12, -LEAF_M / 2 - 0.05, 1.0)
    body.add(solids.rod((x + 0.01, -LEAF_M / 2 - 0.05, 1.0), tip, 0.01), handle)
    return body.piece('door', finish)


def window(width_m: float, height_m: float, style: Style) -> Piece:
    """Return a window with two sashes and a pane; the pane is opaque sky."""
    body, half, bar = Body(), width_m / 2, 0.05
    frame = style.finish(('white', 'white', 'dark gray', 'brown'), 'wood', 'wood', 0.9)
    pane = plain('light blue', 'glass')
    body.box((-half, -0.03, 0), (half, 0.03, bar), frame)
    body.box((-half, -0.03, height_m - bar), (half, 0.03, height_m), frame)
    for x in (-half, -bar / 2, half - bar):
        body.box((x, -0.03, bar), (x + bar, 0.03, height_m - bar), frame)
    for low, high in ((-half + bar, -bar / 2), (bar / 2, half - bar)):
        body.box((low, -0.005, bar), (high, 0.005, height_m - bar), pane)
    body.add(solids.rod((0.0, -0.03, height_m / 2), (0.0, -0.07, height_m / 2), 0.012), frame)
    return body.piece('window', frame)
