"""A trajectory beside the true one from above, and its error over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.reports.plots.svg import INK, MUTED, SERIES, inline_svg, new_figure, page_style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_POINTS = 4000


def trajectory_plot(score: TrajectoryScore) -> str:
    """Return both trajectories from above and the errors after alignment as SVG for a page."""
    with page_style('trajectory'):
        figure = new_figure(9.3, 4.2)
        grid = figure.add_gridspec(2, 2, width_ratios=(1.15, 1))
        _from_above(figure.add_subplot(grid[:, 0]), score)
        translation = figure.add_subplot(grid[0, 1])
        rotation = figure.add_subplot(grid[1, 1], sharex=translation)
        errors = score.errors
        for axes, values, title in (
            (translation, errors.translation_m, 'translation error, m'),
            (rotation, errors.rotation_deg, 'rotation error, deg'),
        ):
            _over_time(axes, score, values, title)
        translation.tick_params(axis='x', labelbottom=False)
        rotation.set_xlabel('seconds since the first pose')
        return inline_svg(
            figure,
            'trajectory',
            'The estimated trajectory beside the true one from above, and its errors over time',
        )


def _from_above(axes: Axes, score: TrajectoryScore) -> None:
    rows = _thinned(len(score.reference))
    for trajectory, name, color, width in (
        (score.reference, 'reference', MUTED, 2.4),
        (score.aligned, 'estimate', SERIES[0], 1.3),
    ):
        x, y = trajectory.positions[rows, 0], trajectory.positions[rows, 1]
        axes.plot(x, y, label=name, color=color, linewidth=width)
    axes.plot(*score.reference.positions[0, :2], 'o', color=INK, markersize=5, label='start')
    axes.set_aspect('equal', adjustable='datalim')
    axes.grid(True)
    kind = score.settings.alignment.value
    axes.set_title('from above' + ('' if kind == 'none' else f', aligned by {kind}'))
    axes.set_xlabel('x, m')
    axes.set_ylabel('y, m')
    axes.legend(loc='best', fontsize=8)


def _over_time(
    axes: Axes,
    score: TrajectoryScore,
    values: NDArray[np.float64],
    title: str,
) -> None:
    rows = _thinned(len(values))
    seconds = (score.aligned.stamps_ns - score.aligned.stamps_ns[0]) / 1e9
    axes.plot(seconds[rows], values[rows], color=SERIES[0], linewidth=1.2)
    rmse = float(np.sqrt(np.mean(np.square(values))))
    axes.axhline(rmse, color=SERIES[1], linewidth=1.0, linestyle='--')
    axes.annotate(
        f'rmse {rmse:.3g}',
        (1, rmse),
        xycoords=('axes fraction', 'data'),
        xytext=(0, 2),
        textcoords='offset points',
        ha='right',
        va='bottom',
        fontsize=8,
    )
    axes.set_ylim(0, 1.15 * max(float(values.max()), 1e-9))
    axes.set_title(title)
    axes.grid(axis='y')


def _thinned(count: int) -> NDArray[np.intp]:
    """Return rows to draw: all, or evenly spread ones of very many."""
    if count <= _MOST_POINTS:
        return np.arange(count)
    return np.linspace(0, count - 1, _MOST_POINTS).astype(np.intp)
