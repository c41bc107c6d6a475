"""Matplotlib figures as inline SVG that takes its colours from the page."""

from __future__ import annotations

import io
import re
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, GRID, SURFACE = 'page ink', 'page muted', 'page line', 'page surface'
SERIES = tuple(f'page series-{number}' for number in range(1, 7))
"""Names of the colours of the page, light or dark."""

_STAND_INS = {
    name: f'#1a2b{number:02x}'
    for number, name in enumerate((INK, MUTED, GRID, SURFACE, *SERIES), start=1)
}
"""What the page replaces by its own colours."""

_DASHES: tuple[Any, ...] = ('-', (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)))

_FOLDER: ContextVar[Path | None] = ContextVar('folder', default=None)
_PARAMETERS: dict[Any, Any] = {
    'svg.fonttype': 'none',
    'pdf.fonttype': 42,
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


_START = 18337
"""Of the checksum of a name; from it each method of this package has a colour of its own, and
those of the demonstration have colours that are far apart."""


def method_colors(names: Iterable[str]) -> dict[str, str]:
    """Return the colours of the methods of a report, those that they have in every report.

    Of two names with the same colour the later in the alphabet gets the next one that is free.
    """
    colors: dict[str, str] = {}
    for name in sorted(set(names)):
        first = zlib.crc32(name.encode(), _START) % len(SERIES)
        own = SERIES[first:] + SERIES[:first]
        colors[name] = next((item for item in own if item not in colors.values()), own[0])
    return colors


def series_style(number: int) -> dict[str, Any]:
    """Return colour and dashes of a line; the first 24 differ."""
    dashes = _DASHES[number // len(SERIES) % len(_DASHES)]
    return {'color': SERIES[number % len(SERIES)], 'linestyle': dashes}


def method_handles(names: Sequence[str], references: Collection[str]) -> list[Any]:
    """Return the entries of a legend, a line for a reference and an area for another method."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    colors = method_colors(names)
    return [
        Line2D([], [], color=colors[name], linewidth=1.8, label=f'{name} (reference)')
        if name in references
        else Patch(color=colors[name], label=name)
        for name in names
    ]


@contextmanager
def page_style(name: str) -> Iterator[None]:
    """Set what every plot has in common, and make its ids depend on `name` alone."""
    import matplotlib as mpl
    from matplotlib.colors import get_named_colors_mapping

    colors = _STAND_INS if _FOLDER.get() is None else _light_colors()
    for color, value in colors.items():
        get_named_colors_mapping()[color] = value  # `update` would leave its cache as it was
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update({**_PARAMETERS, 'svg.hashsalt': name})
        yield


@contextmanager
def figures_in(folder: Path) -> Iterator[None]:
    """Let plots write themselves as SVG and PDF, in the light colours of the page."""
    token = _FOLDER.set(folder)
    try:
        yield
    finally:
        _FOLDER.reset(token)


@cache
def _light_colors() -> Mapping[str, str]:
    style = (Path(__file__).parents[1] / 'page' / 'templates' / 'page.css').read_text('utf-8')
    found: dict[str, str] = {}
    for name, color in re.findall(r'--([\w-]+): (#[0-9a-f]{3,6})', style):
        found.setdefault(f'page {name}', color)
    return {name: found[name] for name in _STAND_INS}


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure, in inches, with a transparent background."""
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout='constrained', facecolor='none')
    FigureCanvasSVG(figure)
    return figure


def name_rows(axes: Axes, titles: Sequence[str], *, above: float = 0.5) -> None:
    """Name the rows of a plot, from y = 0 down, with `above` free over the first."""
    axes.set_yticks(range(len(titles)), titles)
    axes.set_ylim(len(titles) - 0.5, -above)
    axes.tick_params(axis='y', length=0)
    axes.grid(axis='x')


def inline_svg(figure: Figure, name: str, description: str) -> str:
    """Return a figure as an SVG element whose ids begin with `name`, with a `description`.

    Within `figures_in` it is written there instead, and its name is returned.
    """
    from markupsafe import escape

    nothing: dict[str, Any] = dict.fromkeys(('Date', 'Creator', 'Format', 'Type'))
    if (folder := _FOLDER.get()) is not None:
        figure.savefig(folder / f'{name}.svg', metadata=nothing, transparent=True)
        dates = {'CreationDate': None, 'Creator': None, 'Producer': None}
        figure.savefig(folder / f'{name}.pdf', metadata=dates, transparent=True)
        return name
    buffer = io.StringIO()
    figure.savefig(buffer, format='svg', metadata=nothing, transparent=True)
    text = buffer.getvalue()
    text = text[text.index('<svg') :]
    text = re.sub(r'<metadata>.*?</metadata>\s*', '', text, flags=re.DOTALL)
    text = re.sub(r'\b(id="|xlink:href="#|href="#|url\(#)', rf'\g<1>{name}-', text)
    for color, stand_in in _STAND_INS.items():
        text = text.replace(stand_in, f'var(--{color.removeprefix("page ")})')
    width, height = (f'{edge * 72:g}' for edge in figure.get_size_inches())
    head = (
        f'<svg class="plot" role="img" aria-label="{escape(description)}" '
        f'viewBox="0 0 {width} {height}" style="max-width: {float(width) * 1.65:g}px" '
        'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink">'
    )
    return head + text[text.index('>') + 1 :].strip()
