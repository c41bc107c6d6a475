"""Kitchen units and appliances."""

from __future__ import annotations

import numpy as np

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece, Support
from osmabench_ros.scenes.apartment.finishes import Finish, Style, plain
from osmabench_ros.semantics.scene_graph import RelationType

DEPTH_M, HEIGHT_M, TOP_M = 0.6, 0.9, 0.04
BASIN = (0.46, 0.36, 0.17)


def _front(body: Body, x_low: float, x_high: float, front: Finish, knob: Finish) -> None:
    y = -DEPTH_M / 2 + 0.02
    body.box((x_low + 0.004, y, 0.1), (x_high - 0.004, y + 0.02, HEIGHT_M - TOP_M - 0.01), front)
    middle, z = (x_low + x_high) / 2, HEIGHT_M - TOP_M - 0.09
    body.add(solids.rod((middle - 0.07, y - 0.02, z), (middle + 0.07, y - 0.02, z), 0.006), knob)
    for x in (middle - 0.06, middle + 0.06):
        body.add(solids.rod((x, y, z), (x, y - 0.02, z), 0.005), knob)


def _carcass(body: Body, width: float, front: Finish) -> None:
    x, back = width / 2, DEPTH_M / 2
    body.box((-x + 0.002, -back + 0.07, 0), (x - 0.002, back, 0.1), plain('dark gray', 'wood'))
    for side in (-x, x - 0.018):
        body.box((side, -back + 0.04, 0.1), (side + 0.018, back, HEIGHT_M - TOP_M), front)
    low, high = (-x + 0.018, -back + 0.04, 0.1), (x - 0.018, back, 0.118)
    body.box(low, high, front)
    body.box((-x + 0.018, back - 0.012, 0.118), (x - 0.018, back, HEIGHT_M - TOP_M), front)


def counter(style: Style, front: Finish, top: Finish) -> Piece:
    """Return a base unit with a worktop and two doors."""
    width = style.uniform(0.7, 1.0)
    body, x, knob = Body(), width / 2, style.metal('silver', 'black')
    _carcass(body, width, front)
    _front(body, -x, 0, front, knob)
    _front(body, 0, x, front, knob)
    low = (-x, -DEPTH_M / 2, HEIGHT_M - TOP_M)
    body.box(low, (x, DEPTH_M / 2, HEIGHT_M), top)
    place = Support((0, 0.0, HEIGHT_M), (width - 0.06, DEPTH_M - 0.08), 0.45)
    return body.piece('kitchen counter', front, [place])


def sink_counter(style: Style, front: Finish, top: Finish) -> Piece:
    """Return a base unit whose worktop has a hole for a basin."""
    width = 0.8
    body, x, back = Body(), width / 2, DEPTH_M / 2
    knob = style.metal('silver', 'black')
    _carcass(body, width, front)
    _front(body, -x, 0, front, knob)
    _front(body, 0, x, front, knob)
    hole_x, low_y, high_y = BASIN[0] / 2, -BASIN[1] / 2 - 0.03, BASIN[1] / 2 - 0.03
    z = HEIGHT_M - TOP_M
    body.box((-x, -back, z), (x, low_y, HEIGHT_M), top)
    body.box((-x, high_y, z), (x, back, HEIGHT_M), top)
    for low, high in ((-x, -hole_x), (hole_x, x)):
        body.box((low, low_y, z), (high, high_y, HEIGHT_M), top)
    place = Support((0, -0.03, HEIGHT_M + 0.006 - BASIN[2]), (0.55, 0.45), 0.6, RelationType.IN)
    return body.piece('kitchen counter', front, [place])


def kitchen_sink(style: Style) -> Piece:
    """Return a basin with rim and tap that hangs in the hole of a worktop."""
    body, steel = Body(), style.metal('silver', 'light gray')
    x, y, depth = BASIN[0] / 2 - 0.004, BASIN[1] / 2 - 0.004, BASIN[2]
    rim, wall = 0.02, 0.006
    top = depth - 0.006
    body.tray(x, y, top, wall, steel)
    for side in (-x - rim, x - wall):
        body.box((side, -y - rim, top), (side + rim + wall, y + rim, depth), steel)
    for side in (-y - rim, y - wall):
        low = (-x + wall, side, top)
        body.box(low, (x - wall, side + rim + wall, depth), steel)
    pipe = [(0, y + 0.01, depth), (0, y + 0.01, depth + 0.2), (0, y - 0.13, depth + 0.2)]
    body.add(solids.rod(pipe[0], pipe[1], 0.012), steel)
    body.add(solids.rod(pipe[1], pipe[2], 0.011), steel)
    body.add(solids.rod(pipe[2], (0, y - 0.13, depth + 0.16), 0.012), steel)
    inside = Support((0, -0.02, wall), (2 * x - 0.05, 2 * y - 0.08), 0.3, RelationType.IN)
    return body.piece('sink', steel, [inside])


def stove(style: Style) -> Piece:
    """Return a cooker with oven door and four plates."""
    body, steel = Body(), style.metal('silver', 'white', 'black')
    dark = plain('black', 'glass')
    y = -DEPTH_M / 2
    body.box((-0.3, y + 0.03, 0), (0.3, 0.3, HEIGHT_M - 0.012), steel)
    body.box((-0.26, y + 0.01, 0.2), (0.26, y + 0.03, 0.66), dark)
    body.add(solids.rod((-0.22, y + 0.005, 0.69), (0.22, y + 0.005, 0.69), 0.011), steel)
    body.box((-0.3, y, HEIGHT_M - 0.012), (0.3, 0.3, HEIGHT_M - 0.006), dark)
    for x in (-0.14, 0.14):
        for depth in (-0.13, 0.15):
            plate = solids.cylinder(0.09, 0.006, segments=20)
            body.add(plate, plain('dark gray', 'metal'), (x, depth, HEIGHT_M - 0.006))
    for x in (-0.21, -0.07, 0.07, 0.21):
        body.add(solids.rod((x, y + 0.03, 0.78), (x, y + 0.006, 0.78), 0.02, 10), dark)
    plates = [
        Support((x, depth, HEIGHT_M), (0.24, 0.24), 0.5)
        for x in (-0.14, 0.14)
        for depth in (-0.13, 0.15)
    ]
    return body.piece('stove', steel, plates)


def refrigerator(style: Style) -> Piece:
    """Return a fridge-freezer with two doors."""
    body, shell = Body(), style.metal('silver', 'white', 'light gray', 'red')
    height, y = style.uniform(1.7, 1.85), -0.32
    body.box((-0.3, y + 0.05, 0.03), (0.3, 0.32, height), shell)
    body.legs(0.56, 0.54, 0.03, 0.05, plain('black', 'plastic'))
    for low, high in ((0.05, 0.62), (0.64, height - 0.005)):
        body.box((-0.298, y, low), (0.298, y + 0.045, high), shell)
    knob = plain('dark gray', 'metal')
    for low, high in ((0.4, 0.6), (0.68, 1.1)):
        body.add(solids.rod((-0.24, y - 0.03, low), (-0.24, y - 0.03, high), 0.01), knob)
        for z in (low + 0.02, high - 0.02):
            body.add(solids.rod((-0.24, y, z), (-0.24, y - 0.03, z), 0.008), knob)
    top = Support((0, 0.02, height), (0.5, 0.5), 0.35)
    return body.piece('refrigerator', shell, [top])


def range_hood(style: Style) -> Piece:
    """Return an extractor hood with a chimney."""
    body, steel = Body(), style.metal('silver', 'black', 'white')
    body.box((-0.3, -0.22, 0), (0.3, 0.22, 0.06), steel)
    profile = solids.cylinder(0.3, 0.14, 0.16, segments=4)
    body.add(profile, steel, (0, 0.0, 0.06), (0, 0, np.pi / 4))
    body.box((-0.11, 0.0, 0.2), (0.11, 0.22, 0.62), steel)
    return body.piece('range hood', steel)


def microwave(style: Style) -> Piece:
    """Return a microwave oven."""
    body, shell = Body(), style.metal('silver', 'white', 'black')
    body.box((-0.24, -0.16, 0.012), (0.24, 0.18, 0.28), shell)
    body.legs(0.42, 0.28, 0.012, 0.03, plain('black', 'plastic'))
    body.box((-0.22, -0.172, 0.03), (0.11, -0.16, 0.265), plain('black', 'glass'))
    body.box((0.13, -0.168, 0.03), (0.22, -0.16, 0.265), plain('dark gray', 'plastic'))
    body.add(solids.rod((0.12, -0.185, 0.05), (0.12, -0.185, 0.245), 0.008), shell)
    return body.piece('microwave', shell, [Support((0, 0.01, 0.28), (0.4, 0.28), 0.2)])


def toaster(style: Style) -> Piece:
    """Return a toaster with two slots."""
    body, shell = Body(), style.metal('silver', 'red', 'black', 'cream')
    body.box((-0.14, -0.08, 0.01), (0.14, 0.08, 0.18), shell)
    body.legs(0.26, 0.14, 0.01, 0.02, plain('black', 'plastic'))
    for y in (-0.03, 0.03):
        body.box((-0.1, y - 0.012, 0.18), (0.1, y + 0.012, 0.182), plain('black', 'metal'))
    body.box((0.14, -0.015, 0.11), (0.165, 0.015, 0.13), plain('black', 'plastic'))
    return body.piece('toaster', shell)


def kettle(style: Style) -> Piece:
    """Return an electric kettle."""
    body, shell = Body(), style.metal('silver', 'white', 'red', 'black', 'teal')
    profile = [(0, 0), (0.085, 0), (0.09, 0.02), (0.062, 0.2), (0.02, 0.215), (0.016, 0.235)]
    body.add(solids.lathe([*profile, (0, 0.237)], 18), shell)
    handle = plain('black', 'plastic')
    body.add(solids.rod((0.066, 0, 0.18), (0.13, 0, 0.18), 0.009), handle)
    body.add(solids.rod((0.13, 0, 0.188), (0.125, 0, 0.05), 0.011), handle)
    body.add(solids.rod((0.125, 0, 0.055), (0.08, 0, 0.055), 0.009), handle)
    body.add(solids.rod((-0.06, 0, 0.14), (-0.11, 0, 0.19), 0.014), shell)
    return body.piece('kettle', shell)


def pot(style: Style) -> Piece:
    """Return a cooking pot with a lid."""
    body, metal = Body(), style.metal('silver', 'red', 'black', 'blue')
    profile = [(0, 0), (0.1, 0), (0.105, 0.01), (0.105, 0.12), (0.11, 0.125), (0.08, 0.14)]
    body.add(solids.lathe([*profile, (0, 0.15)], 20), metal)
    handle = plain('black', 'plastic')
    body.add(solids.ellipsoid((0.04, 0.04, 0.035), 10), handle, (0, 0, 0.16))
    for sign in (-1, 1):
        body.add(solids.box((0.035, 0.06, 0.014)), handle, (sign * 0.12, 0, 0.1))
    return body.piece('pot', metal)


def pan(style: Style) -> Piece:
    """Return a frying pan."""
    body, metal = Body(), style.metal('black', 'dark gray', 'red')
    profile = [(0, 0), (0.09, 0), (0.115, 0.045), (0.11, 0.045), (0.086, 0.006), (0, 0.006)]
    body.add(solids.lathe(profile, 20), metal)
    body.add(solids.rod((0.105, 0, 0.035), (0.25, 0, 0.055), 0.01), plain('black', 'plastic'))
    return body.piece('pan', metal)


def cutting_board(style: Style) -> Piece:
    """Return a cutting board that lies flat."""
    body, wood = Body(), style.wood('light brown', 'brown', 'beige')
    body.box((-0.18, -0.12, 0), (0.18, 0.12, 0.018), wood)
    body.box((0.18, -0.025, 0.003), (0.25, 0.025, 0.015), wood)
    return body.piece('cutting board', wood)


def knife_block(style: Style) -> Piece:
    """Return a block with five knives."""
    body, wood = Body(), style.wood('light brown', 'dark brown', 'black')
    body.box((-0.05, -0.06, 0), (0.05, 0.06, 0.2), wood)
    for x, y in ((-0.03, -0.03), (0.0, -0.03), (0.03, -0.03), (-0.015, 0.02), (0.02, 0.02)):
        handle = plain('black', 'plastic')
        body.box((x - 0.008, y - 0.012, 0.2), (x + 0.008, y + 0.012, 0.29), handle)
    return body.piece('knife block', wood)
