"""Matplotlib figures as inline SVG that takes its colours from the page."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK = '#0a0b0c'
MUTED = '#0d0e0f'
GRID = '#0f1011'
SURFACE = '#12131f'
SERIES = ('#1a2b01', '#1a2b02', '#1a2b03', '#1a2b04', '#1a2b05', '#1a2b06')
"""Stand-ins: the page replaces them by its own colours, light or dark."""

_DASHES: tuple[Any, ...] = ('-', (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))

_VARIABLES = {
    INK: 'var(--ink)',
    MUTED: 'var(--muted)',
    GRID: 'var(--line)',
    SURFACE: 'var(--surface)',
    **{color: f'var(--series-{i})' for i, color in enumerate(SERIES, start=1)},
}
_PARAMETERS: dict[Any, Any] = {
    'svg.fonttype': 'none',
    'text.parse_math': False,
    'font.family': 'DejaVu Sans',
    'font.size': 9.0,
    'text.color': INK,
    'axes.edgecolor': MUTED,
    'axes.labelcolor': INK,
    'axes.titlesize': 10.0,
    'axes.titleweight': 'bold',
    'axes.titlelocation': 'left',
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.axisbelow': True,
    'xtick.color': MUTED,
    'ytick.color': MUTED,
    'xtick.labelcolor': INK,
    'ytick.labelcolor': INK,
    'grid.color': GRID,
    'grid.linewidth': 0.8,
    'legend.frameon': False,
}


def series_style(number: int) -> dict[str, Any]:
    """Return colour and dashes of a line; the first 24 differ."""
    dashes = _DASHES[number // len(SERIES) % len(_DASHES)]
    return {'color': SERIES[number % len(SERIES)], 'linestyle': dashes}


@contextmanager
def page_style(name: str) -> Iterator[None]:
    """Set what every plot has in common, and make its ids depend on `name` alone."""
    import matplotlib as mpl

    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**_PARAMETERS, 'svg.hashsalt': name})
        yield


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, with a transparent background."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout='constrained', facecolor='none')
    FigureCanvasSVG(figure)
    return figure


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an SVG element whose ids begin with `name`, with a `description`."""
    from markupsafe import escape

    buffer = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(('Date', 'Creator', 'Format', 'Type'))
    figure.savefig(buffer, format='svg', metadata=nothing, transparent=True)
    text = buffer.getvalue()
    text = text[text.index('<svg') :]
    text = re.sub(r'<metadata>.*?</metadata>\s*', '', text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', rf'\g<1>{name}-', text)
    for color, variable in _VARIABLES.items():
        text = text.replace(color, variable)
    width, height = (f'{edge * 72:g}' for edge in figure.get_size_inches())
    head = (
        f'<svg class="plot" role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {width} {height}" style="max-width: {float(width) * 1.65:g}px" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + text[text.index('>') + 1 :].strip()
