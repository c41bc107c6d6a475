"""The report of a sweep over speeds: report.json, report.csv, one page, and a table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.base.files import write_json, write_text
from osmabench_ros.reports.cells import Cell, csv_text, record_cell, scaled_cell
from osmabench_ros.reports.headline import HEADLINES, Headline
from osmabench_ros.reports.page.page import PAGE, trusted, write_rendered
from osmabench_ros.reports.plots.svg import MUTED, inline_svg, new_figure, page_style, series_style
from osmabench_ros.reports.terminal import report_console
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_COLUMNS = 3
Bounded = tuple[float, 'float | None', 'float | None']
Value = Callable[[SweepPoint], 'Bounded | None']
"""A figure of a run with the bounds of its interval; None without one."""


def sweep_plot(report: SweepReport, headlines: Sequence[Headline]) -> str:
    """Return loss and the headline figures by speed, one line a series; '' without any run."""
    if not any(not point.error for series in report.series for point in series.points):
        return ''
    panels: list[tuple[str, Value]] = [('Loss', _loss)]
    panels += [(item.title, partial(_quality, item)) for item in headlines]
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    with page_style('sweep'):
        figure = new_figure(9.3, 2.5 * rows + 0.45)
        grid = figure.subplots(rows, columns, squeeze=False)
        for axes, (title, value) in zip(grid.flat, panels, strict=False):
            _lines(axes, report, value)
            axes.set_title(f'{title}, %')
        for unused in list(grid.flat)[len(panels) :]:
            unused.remove()
        grid.flat[0].axhline(
            100 * report.max_loss, color=MUTED, linewidth=1.4, linestyle=(0, (3, 2))
        )
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside upper left', ncols=min(len(labels), 3))
        figure.supxlabel('speed factor: stamp seconds per wall second', fontsize=9)
        return inline_svg(figure, 'sweep', 'Loss of frames and map quality against speed')


def _lines(axes: Axes, report: SweepReport, value: Value) -> None:
    speeds = sorted({point.speed_factor for series in report.series for point in series.points})
    for number, series in enumerate(report.series):
        style = series_style(number)
        color = style['color']
        found = [
            (point, shown)
            for point in series.points
            if not point.error and (shown := value(point)) is not None
        ]
        xs = [point.speed_factor for point, _ in found]
        axes.plot(
            xs,
            [shown[0] for _, shown in found],
            marker='o',
            **style,
            markersize=4,
            linewidth=1.6,
            label=series.title,
        )
        for x, (_, (_, low, high)) in zip(xs, found, strict=True):
            if low is not None and high is not None:
                axes.vlines(x, low, high, color=color, linewidth=1.1)
        # A speed that was not reached stands hollow.
        slow = [(p.speed_factor, shown[0]) for p, shown in found if not p.reached]
        axes.plot(
            [x for x, _ in slow],
            [y for _, y in slow],
            'o',
            color=color,
            markersize=7,
            markerfacecolor='none',
        )
    axes.set_xscale('log', base=2)
    axes.set_xticks(speeds, [f'{speed:g}' for speed in speeds], rotation=45 * (len(speeds) > 6))
    axes.minorticks_off()
    axes.set_ylim(-4, 104)
    axes.grid(axis='y')


def _loss(point: SweepPoint) -> Bounded | None:
    return None if point.loss is None else (100 * point.loss, None, None)


def _quality(headline: Headline, point: SweepPoint) -> Bounded | None:
    record = headline.record_in(point.metrics)
    if record is None or record.value is None:
        return None
    low, high = (None if bound is None else 100 * bound for bound in (record.low, record.high))
    return 100 * record.value, low, high


@dataclass(frozen=True)
class SweepRow:
    """A run of a sweep; texts and figures of the table."""

    point: SweepPoint
    follows: bool
    fastest: bool
    cells: tuple[Cell, ...]
    figures: tuple[Cell, ...]


COLUMNS = (
    ('Speed reached', 'Stamp seconds per wall second as they really were.'),
    ('Published', 'Frames the simulator published.'),
    ('Received', 'Frames the mapper acknowledged, or says its map was made of.'),
    ('Mapped', 'Frames that went into the map.'),
    ('Dropped', 'Published frames the mapper never got.'),
    ('Loss, %', 'Dropped over published.'),
    ('p50, ms', 'Median time from the publication of a frame to its acknowledgement.'),
    ('p95, ms', '95th percentile of that time.'),
    ('Staleness, s', 'Mean age of the newest frame in the newest map, in stamp time.'),
)


def write_sweep_report(report: SweepReport, root: Path) -> None:
    """Write report.json, report.csv and report.html of a sweep into its folder."""
    write_json(root / 'report.json', report.model_dump(mode='json'))
    write_text(root / 'report.csv', _csv(report))
    headlines = shown_headlines(report)
    write_rendered(
        root / PAGE,
        'sweep.html',
        report=report,
        columns=COLUMNS,
        headlines=headlines,
        tables=[(series, sweep_rows(series, headlines)) for series in report.series],
        plot=trusted(sweep_plot(report, headlines)),
    )


def shown_headlines(report: SweepReport) -> list[Headline]:
    """Return the headline figures of maps that at least one run has."""
    points = [point for series in report.series for point in series.points]
    return [
        item
        for item in HEADLINES
        if not item.is_baseline and any(item.record_in(point.metrics) for point in points)
    ]


def sweep_rows(series: SweepSeries, headlines: Sequence[Headline]) -> list[SweepRow]:
    """Return a row for every speed that was tried."""
    fastest = series.fastest
    return [
        SweepRow(
            point,
            point.follows(series.max_loss),
            point is fastest,
            _cells(point),
            tuple(record_cell(item.record_in(point.metrics), item.number) for item in headlines),
        )
        for point in series.points
    ]


def print_sweep(report: SweepReport, directory: Path, console: Console | None = None) -> None:
    """Print loss and quality by speed, the verdicts, and the path of the report."""
    console = console or report_console()
    headlines = [item for item in shown_headlines(report) if item.mode != 'compat']
    for series in report.series:
        console.print(f'[bold]{escape(series.title)}[/]', highlight=False)
        console.print(_table(series, headlines))
        color = 'green' if series.fastest else 'red'
        console.print(f'[{color}]{escape(series.verdict)}[/]', highlight=False, soft_wrap=True)
        if series.remark:
            console.print(f'[yellow]{series.remark}[/]', highlight=False, soft_wrap=True)
    console.print(f'[dim]{escape(str(directory / PAGE))}[/]', highlight=False, soft_wrap=True)


def _table(series: SweepSeries, headlines: Sequence[Headline]) -> Table:
    table = Table(box=None, pad_edge=False, header_style='bold')
    for name in ('speed', 'frames', 'dropped', 'loss, %', 'p95, ms'):
        table.add_column(name, justify='right', no_wrap=True)
    for headline in headlines:
        table.add_column(headline.title, justify='right')
    table.add_column('', no_wrap=True)
    for row in sweep_rows(series, headlines):
        _, frames, _, _, dropped, loss, _, p95, _ = (cell.text for cell in row.cells)
        verdict = '[red]failed[/]' if row.point.error else ''
        verdict = verdict or ('[green]fastest[/]' if row.fastest else '')
        verdict = verdict or ('[red]loses too many[/]' if row.point.loses(series.max_loss) else '')
        verdict = verdict or ('' if row.point.reached else '[yellow]not reached[/]')
        figures = [cell.text for cell in row.figures]
        table.add_row(f'{row.point.speed_factor:g}', frames, dropped, loss, p95, *figures, verdict)
    return table


def _cells(point: SweepPoint) -> tuple[Cell, ...]:
    return (
        scaled_cell(point.reached_speed_factor, 1.0, 2),
        scaled_cell(point.frames if not point.error else None, 1.0, 0),
        scaled_cell(point.received, 1.0, 0),
        scaled_cell(point.mapped, 1.0, 0),
        scaled_cell(point.dropped, 1.0, 0),
        scaled_cell(point.loss, 100.0, 1),
        scaled_cell(point.latency_p50_s, 1000.0, 0),
        scaled_cell(point.latency_p95_s, 1000.0, 0),
        scaled_cell(point.staleness_mean_s, 1.0, 1),
    )


def _csv(report: SweepReport) -> str:
    """Return one line a run: its speed, loss and latency, then every overall figure."""
    rows = []
    for series in report.series:
        for point in series.points:
            row = series.model_dump(exclude={'points', 'max_loss'})
            row |= point.model_dump(exclude={'metrics'})
            for record in point.metrics:
                row['.'.join(filter(None, (record.suite, record.mode, record.metric)))] = (
                    record.value
                )
            rows.append(row)
    return csv_text(list(dict.fromkeys(key for row in rows for key in row)), rows)
