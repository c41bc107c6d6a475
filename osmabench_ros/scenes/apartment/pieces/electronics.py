"""Screens, computers and small devices."""

from __future__ import annotations

from osmabench_ros.scenes import solids
from osmabench_ros.scenes.apartment.body import Body, Piece
from osmabench_ros.scenes.apartment.finishes import Finish, Style, plain

SCREEN = Finish((1.0, 1.0, 1.0), 'blue', 'glass', 'screen')


def television(style: Style) -> Piece:
    """Return a flat screen that hangs on a wall."""
    body, shell = Body(), style.plastic('black', 'dark gray')
    width = style.uniform(1.0, 1.25)
    height = round(width * 0.57, 3)
    body.box((-width / 2, 0, 0), (width / 2, 0.04, height), shell)
    body.box((-0.2, 0.04, 0.15), (0.2, 0.07, height - 0.15), shell)
    glass = solids.box((width - 0.03, 0.004, height - 0.03))
    body.add(glass, plain('black', 'glass'), (0, -0.002, height / 2))
    return body.piece('tv', shell)


def monitor(style: Style) -> Piece:
    """Return a computer screen on a foot."""
    body, shell = Body(), style.plastic('black', 'dark gray', 'white')
    body.box((-0.12, -0.08, 0), (0.12, 0.09, 0.012), shell)
    body.box((-0.025, 0.02, 0.012), (0.025, 0.05, 0.3), shell)
    body.box((-0.29, -0.01, 0.12), (0.29, 0.02, 0.47), shell)
    body.add(solids.box((0.56, 0.004, 0.32), fitted=True), SCREEN, (0, -0.012, 0.295))
    return body.piece('monitor', shell)


def keyboard(style: Style) -> Piece:
    """Return a keyboard with rows of keys."""
    body, shell = Body(), style.plastic('black', 'white', 'gray')
    keys = style.plastic('black', 'light gray')
    body.box((-0.21, -0.07, 0), (0.21, 0.07, 0.016), shell)
    for row in range(5):
        y = -0.06 + row * 0.025
        body.box((-0.2, y, 0.016), (0.2, y + 0.019, 0.023), keys)
    return body.piece('keyboard', shell)


def mouse(style: Style) -> Piece:
    """Return a computer mouse."""
    body, shell = Body(), style.plastic('black', 'white', 'gray')
    body.add(solids.ellipsoid((0.062, 0.11, 0.04), 12, 0.8), shell, (0, 0, 0.02))
    return body.piece('mouse', shell)


def laptop(style: Style) -> Piece:
    """Return an open laptop."""
    body, shell = Body(), style.metal('silver', 'dark gray', 'black')
    body.box((-0.17, -0.12, 0), (0.17, 0.12, 0.018), shell)
    body.box((-0.15, -0.03, 0.018), (0.15, 0.1, 0.02), plain('black', 'plastic'))
    lid = (0.34, 0.012, 0.23)
    body.add(solids.box(lid), shell, (0, 0.16, 0.12), (-0.3, 0, 0))
    screen = solids.box((0.31, 0.003, 0.19), fitted=True)
    body.add(screen, SCREEN, (0, 0.152, 0.119), (-0.3, 0, 0))
    return body.piece('laptop', shell)


def printer(style: Style) -> Piece:
    """Return an inkjet printer with paper."""
    body, shell = Body(), style.plastic('white', 'black', 'gray')
    body.box((-0.22, -0.17, 0), (0.22, 0.17, 0.16), shell)
    body.box((-0.15, -0.23, 0.03), (0.15, -0.17, 0.04), shell)
    body.box((-0.11, 0.08, 0.16), (0.11, 0.1, 0.26), plain('white', 'paper'))
    body.box((0.1, -0.178, 0.09), (0.19, -0.17, 0.14), plain('dark gray', 'glass'))
    return body.piece('printer', shell)


def remote_control(style: Style) -> Piece:
    """Return a remote control that lies flat."""
    body, shell = Body(), style.plastic('black', 'dark gray', 'white')
    body.box((-0.024, -0.09, 0), (0.024, 0.09, 0.018), shell)
    for row in range(5):
        y = -0.07 + row * 0.03
        body.box((-0.016, y, 0.018), (0.016, y + 0.016, 0.021), plain('light gray', 'rubber'))
    return body.piece('remote control', shell)


def speaker(style: Style) -> Piece:
    """Return a small loudspeaker."""
    body, shell = Body(), style.wood('black', 'brown', 'white')
    body.box((-0.08, -0.09, 0), (0.08, 0.09, 0.26), shell)
    for z, radius in ((0.09, 0.055), (0.19, 0.03)):
        cone = solids.rod((0, -0.09, z), (0, -0.1, z), radius, 14)
        body.add(cone, plain('dark gray', 'rubber'))
    return body.piece('speaker', shell)


def alarm_clock(style: Style) -> Piece:
    """Return a small alarm clock with a dial."""
    body, shell = Body(), style.plastic('red', 'white', 'black', 'yellow')
    body.box((-0.05, -0.02, 0), (0.05, 0.03, 0.1), shell)
    dial = Finish((1.0, 1.0, 1.0), 'white', 'paper', 'dial')
    body.add(solids.box((0.086, 0.003, 0.086), fitted=True), dial, (0, -0.0215, 0.05))
    return body.piece('alarm clock', shell)
