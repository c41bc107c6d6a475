"""Sanitary ware and what belongs to it."""

from __future__ import annotations

import numpy as np

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece, Support
from osmabench_ros.scenes.apartment.finishes import Style, plain
from osmabench_ros.semantics.scene_graph import RelationType


def bathtub(style: Style) -> Piece:
    """Return an empty bathtub with a tap."""
    body, enamel = Body(), style.ceramic('white', 'cream')
    width, depth, height, wall = style.uniform(1.5, 1.65), 0.72, 0.56, 0.06
    x, y = width / 2, depth / 2
    body.box((-x, -y, 0), (x, y, 0.12), enamel)
    for side in (-x, x - wall):
        body.box((side, -y, 0.12), (side + wall, y, height), enamel)
    for side in (-y, y - wall):
        body.box((-x + wall, side, 0.12), (x - wall, side + wall, height), enamel)
    steel = plain('silver', 'metal')
    tap = x - 0.03
    body.add(solids.rod((tap, 0, height), (tap, 0, height + 0.12), 0.015), steel)
    body.add(solids.rod((tap, 0, height + 0.12), (tap - 0.14, 0, height + 0.11), 0.014), steel)
    inside = Support((-0.1, 0, 0.12), (width - 0.5, 0.5), 0.6, RelationType.IN)
    return body.piece('bathtub', enamel, [inside])


def toilet(style: Style) -> Piece:
    """Return a toilet with cistern and lid."""
    body, glaze = Body(), style.ceramic('white', 'cream')
    lid = style.plastic('white', 'light gray')
    body.box((-0.11, -0.12, 0), (0.11, 0.2, 0.2), glaze)
    bowl_profile = [(0, 0.12), (0.1, 0.12), (0.18, 0.38), (0, 0.38)]
    body.add(solids.lathe(bowl_profile, 20), glaze, (0, -0.12, 0))
    body.box((-0.17, -0.02, 0.2), (0.17, 0.16, 0.38), glaze)
    body.add(solids.cylinder(0.19, 0.03, segments=20), lid, (0, -0.12, 0.38))
    body.box((-0.19, 0.14, 0.38), (0.19, 0.32, 0.78), glaze)
    body.add(solids.cylinder(0.02, 0.012, segments=10), plain('silver', 'metal'), (0, 0.22, 0.78))
    return body.piece('toilet', glaze, [Support((0, 0.23, 0.792), (0.3, 0.14), 0.3)])


def washbasin(style: Style) -> Piece:
    """Return a washbasin on a cabinet."""
    body, glaze = Body(), style.ceramic('white')
    wood = style.wood('white', 'light brown', 'dark brown', 'gray')
    width, depth, height = style.uniform(0.6, 0.75), 0.46, 0.86
    x, y, wall = width / 2, depth / 2, 0.05
    body.box((-x + 0.02, -y + 0.03, 0.0), (x - 0.02, y, 0.7), wood)
    knob = plain('silver', 'metal')
    for side in (-0.03, 0.03):
        low, high = (side, -y + 0.015, 0.4), (side, -y + 0.015, 0.52)
        body.add(solids.rod(low, high, 0.007), knob)
    body.box((-x, -y, 0.7), (x, y, 0.73), glaze)
    for side in (-x, x - wall):
        body.box((side, -y, 0.73), (side + wall, y, height), glaze)
    body.box((-x + wall, -y, 0.73), (x - wall, -y + wall, height), glaze)
    body.box((-x + wall, y - 0.13, 0.73), (x - wall, y, height), glaze)
    body.add(solids.rod((0, y - 0.06, height), (0, y - 0.06, height + 0.14), 0.012), knob)
    spout = (0, y - 0.19, height + 0.12)
    body.add(solids.rod((0, y - 0.06, height + 0.13), spout, 0.011), knob)
    ledges = [
        Support((sign * (x / 2 + 0.02), y - 0.065, height), (x - 0.08, 0.11), 0.3)
        for sign in (-1, 1)
    ]
    return body.piece('sink', glaze, ledges)


def washing_machine(style: Style) -> Piece:
    """Return a front-loading washing machine."""
    body, shell = Body(), style.metal('white', 'light gray', 'dark gray')
    body.box((-0.3, -0.26, 0.02), (0.3, 0.28, 0.85), shell)
    body.legs(0.54, 0.5, 0.02, 0.04, plain('black', 'rubber'))
    door = solids.cylinder(0.18, 0.03, 0.16, 24)
    body.add(door, plain('silver', 'metal'), (0, -0.26, 0.44), (np.pi / 2, 0, 0))
    glass = solids.ellipsoid((0.26, 0.26, 0.04), 16)
    body.add(glass, plain('black', 'glass'), (0, -0.285, 0.44), (np.pi / 2, 0, 0))
    body.box((-0.28, -0.265, 0.74), (0.28, -0.26, 0.83), plain('gray', 'plastic'))
    top = Support((0, 0.0, 0.85), (0.52, 0.46), 0.4)
    return body.piece('washing machine', shell, [top])


def mirror(style: Style) -> Piece:
    """Return a framed mirror."""
    body, frame = Body(), style.finish(('silver', 'gold', 'black', 'white'), 'metal')
    width, height = style.uniform(0.5, 0.65), style.uniform(0.65, 0.8)
    x, edge = width / 2, 0.03
    body.box((-x, 0.0, 0), (x, 0.012, height), plain('silver', 'glass'))
    for low, high in ((-x, -x + edge), (x - edge, x)):
        body.box((low, -0.014, 0), (high, 0.0, height), frame)
    for low, high in ((0, edge), (height - edge, height)):
        body.box((-x + edge, -0.014, low), (x - edge, 0.0, high), frame)
    return body.piece('mirror', frame)


def towel_rail(style: Style) -> Piece:
    """Return a rail with a towel over it, as one thing."""
    body, cloth = Body(), style.fabric('white', 'blue', 'teal', 'pink', 'orange', 'purple')
    steel, length = plain('silver', 'metal'), 0.6
    x, z = length / 2, 0.6
    body.add(solids.rod((-x, -0.07, z), (x, -0.07, z), 0.009), steel)
    for side in (-x + 0.02, x - 0.02):
        body.add(solids.rod((side, -0.07, z), (side, 0.0, z), 0.008), steel)
    width = 0.44
    for y, low in ((-0.088, 0.0), (-0.06, 0.08)):
        body.box((-width / 2, y, low), (width / 2, y + 0.008, z + 0.012), cloth)
    body.box((-width / 2, -0.08, z + 0.012), (width / 2, -0.06, z + 0.018), cloth)
    return body.piece('towel', cloth)


def soap_dispenser(style: Style) -> Piece:
    """Return a pump bottle."""
    body, shell = Body(), style.plastic('white', 'teal', 'pink', 'black')
    profile = [(0, 0), (0.032, 0), (0.032, 0.11), (0.012, 0.13), (0.012, 0.15), (0, 0.15)]
    body.add(solids.lathe(profile, 14), shell)
    steel = plain('silver', 'metal')
    body.add(solids.cylinder(0.005, 0.035, segments=8), steel, (0, 0, 0.15))
    body.add(solids.box((0.02, 0.05, 0.01)), steel, (0, -0.015, 0.188))
    return body.piece('soap dispenser', shell)


def toothbrush_cup(style: Style) -> Piece:
    """Return a tumbler with two toothbrushes, as one thing."""
    body, glaze = Body(), style.ceramic('white', 'light blue', 'gray')
    profile = [(0, 0), (0.032, 0), (0.036, 0.1), (0.032, 0.1), (0.028, 0.006), (0, 0.006)]
    body.add(solids.lathe(profile, 14), glaze)
    for color, lean in (('red', 0.02), ('blue', -0.02)):
        brush = style.plastic(color)
        body.add(solids.rod((-lean, 0, 0.01), (lean, 0.004, 0.18), 0.004, 6), brush)
    return body.piece('toothbrush holder', glaze)


def toilet_paper(style: Style) -> Piece:
    """Return a roll that stands upright."""
    body, paper = Body(), style.finish(('white',), 'paper')
    profile = [(0.02, 0), (0.055, 0), (0.055, 0.1), (0.02, 0.1), (0.02, 0.0)]
    body.add(solids.lathe(profile, 18), paper)
    return body.piece('toilet paper', paper)
