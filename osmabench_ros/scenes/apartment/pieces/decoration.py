"""Lamps, pictures, plants, rugs and curtains."""

from __future__ import annotations

import numpy as np

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece, Support
from osmabench_ros.scenes.apartment.finishes import Finish, Style, plain
from osmabench_ros.scenes.apartment.textures import PICTURE_COUNT

RUG_M = 0.012


def ceiling_lamp(style: Style) -> Piece:
    """Return a pendant lamp; its top touches the ceiling."""
    body, shade = Body(), style.glass('white', 'cream', 'light gray')
    metal = style.metal('silver', 'gold', 'black')
    body.add(solids.cylinder(0.06, 0.025, segments=16), metal, (0, 0, 0.235))
    body.add(solids.cylinder(0.007, 0.11, segments=8), metal, (0, 0, 0.125))
    profile = [(0, 0.0), (0.1, 0.01), (0.16, 0.05), (0.14, 0.1), (0.05, 0.13), (0, 0.13)]
    body.add(solids.lathe(profile, 20), shade)
    return body.piece('ceiling lamp', shade)


def _shaded_lamp(
    class_name: str, height: float, shade_radius: float, shade_m: float, style: Style
) -> Piece:
    body = Body()
    shade = style.fabric('white', 'cream', 'beige', 'light gray', 'orange')
    metal = style.metal('silver', 'gold', 'black')
    foot = 0.75 * shade_radius
    body.add(solids.cylinder(foot, 0.025, 0.9 * foot, 18), metal)
    body.add(solids.cylinder(0.012, height - 0.06, segments=8), metal, (0, 0, 0.025))
    low, upper = height - shade_m, 0.75 * shade_radius
    profile = [(shade_radius, low), (upper, height), (upper - 0.005, height)]
    profile += [(shade_radius - 0.005, low), (shade_radius, low)]
    body.add(solids.lathe(profile, 18), shade)
    for angle in (0.0, 2.1, 4.2):
        tip = ((upper - 0.005) * np.cos(angle), (upper - 0.005) * np.sin(angle), height - 0.035)
        body.add(solids.rod((0, 0, height - 0.04), tip, 0.003, 6), metal)
    return body.piece(class_name, shade)


def floor_lamp(style: Style) -> Piece:
    """Return a standing lamp with a shade that is open above and below."""
    return _shaded_lamp('floor lamp', style.uniform(1.45, 1.6), 0.2, 0.26, style)


def table_lamp(style: Style) -> Piece:
    """Return a small lamp with a shade."""
    return _shaded_lamp('table lamp', style.uniform(0.36, 0.42), 0.11, 0.15, style)


def painting(style: Style) -> Piece:
    """Return a framed painting."""
    body, frame = Body(), style.wood('black', 'brown', 'white', 'dark brown')
    width, height = style.uniform(0.5, 0.85), style.uniform(0.4, 0.6)
    x, edge = width / 2, 0.035
    for low, high in ((-x, -x + edge), (x - edge, x)):
        body.box((low, -0.012, 0), (high, 0.018, height), frame)
    for low, high in ((0, edge), (height - edge, height)):
        body.box((-x + edge, -0.012, low), (x - edge, 0.018, high), frame)
    motif = f'picture{int(style.rng.integers(PICTURE_COUNT))}'
    canvas = solids.box((width - 2 * edge, 0.012, height - 2 * edge), fitted=True)
    art = Finish((1.0, 1.0, 1.0), frame.color, 'canvas', motif)
    body.add(canvas, art, (0, 0.006, height / 2))
    return body.piece('painting', frame)


def clock(style: Style) -> Piece:
    """Return a round wall clock."""
    body, rim = Body(), style.plastic('black', 'red', 'silver', 'white')
    radius = style.uniform(0.13, 0.17)
    body.add(solids.rod((0, 0.04, radius), (0, 0.0, radius), radius, 24), rim)
    side = 1.38 * radius
    dial = Finish((1.0, 1.0, 1.0), 'white', 'paper', 'dial')
    body.add(solids.box((side, 0.004, side), fitted=True), dial, (0, -0.002, radius))
    return body.piece('clock', rim)


def plant(style: Style) -> Piece:
    """Return a large plant in a pot."""
    return _plant(style, 0.16, 0.28, style.uniform(0.75, 1.1), 14)


def small_plant(style: Style) -> Piece:
    """Return a small plant in a pot."""
    return _plant(style, 0.06, 0.1, style.uniform(0.2, 0.28), 9)


def _plant(style: Style, radius: float, pot_m: float, height: float, leaves: int) -> Piece:
    body, pot = Body(), style.ceramic('white', 'brown', 'gray', 'orange', 'black')
    leaf = style.finish(('green', 'olive', 'green'), 'plant')
    profile = [(0, 0), (0.7 * radius, 0), (radius, pot_m), (0.9 * radius, pot_m)]
    body.add(solids.lathe([*profile, (0.86 * radius, 0.9 * pot_m), (0, 0.9 * pot_m)], 16), pot)
    soil = solids.cylinder(0.85 * radius, 0.01, segments=14)
    body.add(soil, plain('dark brown', 'soil'), (0, 0, 0.9 * pot_m))
    reach = 0.38 * (height - pot_m)
    for i in range(leaves):
        turn = i * 2.4
        rise = 0.25 + 0.75 * (i + 0.5) / leaves
        out = reach * (1.15 - 0.75 * rise)
        tip = (out * np.cos(turn), out * np.sin(turn), pot_m + rise * (height - pot_m) * 0.9)
        body.add(solids.rod((0, 0, 0.9 * pot_m), tip, 0.012 * height, 6), leaf)
        size = np.array([0.34, 0.16, 0.04]) * (height - pot_m)
        body.add(solids.ellipsoid(size, 8), leaf, tip, (0.0, -0.5 + rise * 0.3, turn))
    return body.piece('plant', pot)


def rug(style: Style, width: float, depth: float) -> Piece:
    """Return a rug with a pattern over its whole length."""
    body, motif = Body(), f'rug{int(style.rng.integers(4))}'
    colors = ('red', 'blue', 'beige', 'gray', 'teal', 'purple', 'olive')
    cloth = style.fabric(*colors, pattern=motif, tile_m=1.0)
    solid = solids.box((width, depth, RUG_M), fitted=True)
    body.add(solid, cloth, (0, 0, RUG_M / 2))
    half = (width - 0.02, depth - 0.02)
    return body.piece('rug', cloth, [Support((0, 0, RUG_M), half, 2.0)])


def curtain(width: float, height: float, cloth: Finish) -> Piece:
    """Return one panel of a curtain with its piece of rod."""
    body = Body()
    x = np.linspace(-width / 2, width / 2, 33)
    wave = np.column_stack([x, 0.022 * np.sin(2 * np.pi * x / width * 4)])
    body.add(solids.ribbon(wave, height - 0.02, 0.006), cloth)
    metal = plain('silver', 'metal')
    z = height - 0.01
    body.add(solids.rod((-width / 2 - 0.02, 0, z), (width / 2 + 0.02, 0, z), 0.01), metal)
    body.add(solids.rod((0, 0, z), (0, 0.045, z), 0.008), metal)
    return body.piece('curtain', cloth)


def coat_rack(style: Style) -> Piece:
    """Return a board with hooks and two coats, as one thing."""
    body, wood = Body(), style.wood('light brown', 'dark brown', 'white')
    body.box((-0.4, 0, 0.72), (0.4, 0.02, 0.82), wood)
    hook = plain('black', 'metal')
    for x in (-0.3, -0.1, 0.1, 0.3):
        body.add(solids.rod((x, 0, 0.77), (x, -0.05, 0.79), 0.008), hook)
    coats = (style.fabric('navy', 'red', 'olive'), style.fabric('black', 'beige', 'green'))
    for x, cloth, length in ((-0.28, coats[0], 0.78), (0.12, coats[1], 0.66)):
        size = (0.26, 0.12, length)
        body.add(solids.ellipsoid(size, 14, 0.6), cloth, (x, -0.062, 0.78 - length / 2))
    return body.piece('coat rack', wood)


def globe(style: Style) -> Piece:
    """Return a terrestrial globe."""
    body, wood = Body(), style.wood('brown', 'dark brown')
    body.add(solids.cylinder(0.08, 0.02, 0.07, 18), wood)
    body.add(solids.rod((0, 0, 0.02), (0, 0, 0.08), 0.01), wood)
    ball = style.finish(('blue', 'light blue'), 'plastic', 'marble', 0.4)
    body.add(solids.ellipsoid((0.2, 0.2, 0.2), 20), ball, (0, 0, 0.17))
    return body.piece('globe', ball)
