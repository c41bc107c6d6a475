"""How often questions mention each object, before and after balancing, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from osmabench_ros.base.files import written_file

_MOST_OBJECTS = 60
_COLORS = ('#9aa5b1', '#1f6feb')


def write_histogram(path: Path, before: Mapping[str, int], after: Mapping[str, int]) -> None:
    """Draw bars of the most frequent objects to an SVG; equal data gives equal bytes.

    Counts are of the questions that mention each object; raises RunError if it cannot be written.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    names = sorted(before, key=lambda name: (-before[name], name))[:_MOST_OBJECTS]
    places = np.arange(len(names))
    with mpl.rc_context({'svg.hashsalt': 'osmabench', 'svg.fonttype': 'none'}):
        figure = Figure(figsize=(max(4.0, 0.22 * len(names) + 1.5), 3.6), layout='constrained')
        FigureCanvasSVG(figure)
        axes = figure.add_subplot()
        axes.bar(places, [before[n] for n in names], color=_COLORS[0], label='as written')
        axes.bar(
            places, [after.get(n, 0) for n in names], width=0.5, color=_COLORS[1], label='as kept'
        )
        axes.set_xticks(places, names, rotation=90, fontsize=7)
        axes.set_ylabel('questions that mention the object')
        axes.spines[['top', 'right']].set_visible(False)
        axes.legend(frameon=False)
        with written_file(path) as draft:
            figure.savefig(draft, format='svg', metadata={'Date': None})
