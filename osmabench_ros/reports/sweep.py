"""The report of a sweep over speeds: report.json, report.csv, one page, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import altair as alt
import pandas as pd
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.base.files import write_json, write_text
from osmabench_ros.reports.cells import Cell, Column, make_field_cells, score_cell, write_csv_text
from osmabench_ros.reports.charts.chart import Specification, build_specification
from osmabench_ros.reports.charts.line_chart import draw_line_layers
from osmabench_ros.reports.headline import Headline, map_headlines
from osmabench_ros.reports.page.page import PAGE, write_rendered
from osmabench_ros.reports.report_run import distinct
from osmabench_ros.reports.terminal import report_console
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

_PANELS_IN_A_ROW = 3


def draw_sweep_chart(report: SweepReport, headlines: Sequence[Headline]) -> Specification | None:
    """Return loss and the headline metrics by speed, one line a series; None without any run."""
    rows = [
        (panel, point.speed_factor, series.title, series.mapper, series.condition,
         not point.reached, *bounds)
        for series in report.series
        for point in series.points
        if not point.error
        for panel, bounds in _list_metrics(point, headlines)
    ]  # fmt: skip
    columns = ['panel', 'x', 'run', 'mapper', 'condition', 'missed', 'value', 'low', 'high']
    table = pd.DataFrame(rows, columns=columns)
    if table.empty:
        return None
    speeds = sorted(set(table['x']))
    x = (
        alt.X('x:Q')
        .title('speed factor: stamp seconds per wall second')
        .scale(type='log', base=2, domain=[speeds[0] / 1.2, speeds[-1] * 1.2], nice=False)
        .axis(values=speeds, format='~g')
    )
    panel = alt.Facet('panel:N').sort(distinct(table['panel'])).title(None)
    chart = draw_line_layers(table, x, report.max_loss).facet(panel, columns=_PANELS_IN_A_ROW)
    return build_specification(chart, 'Loss of frames and map quality against speed')


def _list_metrics(
    point: SweepPoint, headlines: Sequence[Headline]
) -> Iterator[tuple[str, tuple[float | None, ...]]]:
    """Yield title, value and interval of the loss and the headline metrics."""
    yield 'Loss, %', (point.loss, None, None)
    for headline in headlines:
        record = headline.record_in(point.metrics)
        if record is not None:
            yield f'{headline.title}, %', (record.value, record.low, record.high)


COLUMNS = (
    Column('Speed reached', 'reached_speed_factor', 1, 2,
           'Stamp seconds per wall second as they really were.'),
    Column('Published', 'frames', explanation='Frames the simulator published.'),
    Column('Received', 'received',
           explanation='Frames the mapper acknowledged, or says its map was made of.'),
    Column('Mapped', 'mapped', explanation='Frames that went into the map.'),
    Column('Dropped', 'dropped', explanation='Published frames the mapper never got.'),
    Column('Loss, %', 'loss', 100, 1, 'Dropped over published.'),
    Column('p50, ms', 'latency_p50_s', 1000, 0,
           'Median time from the publication of a frame to its acknowledgement.'),
    Column('p95, ms', 'latency_p95_s', 1000, 0, '95th percentile of that time.'),
    Column('Staleness, s', 'staleness_mean_s', 1, 1,
           'Mean age of the newest frame in the newest map, in stamp time.'),
)  # fmt: skip
_ON_TERMINAL = ('Published', 'Dropped', 'Loss, %', 'p95, ms')
_STYLES = {'failed': 'red', 'fastest': 'green', 'loses too many': 'red', 'not reached': 'yellow'}

SweepRow = tuple[SweepPoint, str, dict[str, Cell]]
"""A run of a sweep, the verdict on its speed, and its cells by title of the column."""


def write_sweep_report(report: SweepReport, root: Path) -> None:
    """Write report.json, report.csv and report.html of a sweep into its folder."""
    write_json(root / 'report.json', report.model_dump(mode='json'))
    write_text(root / 'report.csv', _write_csv(report))
    headlines = select_shown_headlines(report)
    write_rendered(
        root / PAGE,
        'sweep.html',
        report=report,
        columns=COLUMNS,
        headlines=headlines,
        tables=[(series, build_sweep_rows(series, headlines)) for series in report.series],
        charts={'sweep': draw_sweep_chart(report, headlines)},
    )


def select_shown_headlines(report: SweepReport) -> list[Headline]:
    """Return the headline metrics of maps that at least one run has."""
    return map_headlines([point.metrics for series in report.series for point in series.points])


def build_sweep_rows(series: SweepSeries, headlines: Sequence[Headline]) -> list[SweepRow]:
    """Return a row for every speed that was tried."""
    return [
        (
            point,
            _describe_verdict(series, point),
            dict(
                zip(
                    (x.title for x in COLUMNS),
                    make_field_cells(None if point.error else point, COLUMNS),
                    strict=True,
                )
            )
            | {
                item.title: score_cell(item.record_in(point.metrics), item.number)
                for item in headlines
            },
        )
        for point in series.points
    ]


def _describe_verdict(series: SweepSeries, point: SweepPoint) -> str:
    if point.error:
        return 'failed'
    if point is series.fastest:
        return 'fastest'
    if point.follows(series.max_loss):
        return 'follows'
    if point.loses(series.max_loss):
        return 'loses too many'
    return 'unknown' if point.reached else 'not reached'


def print_sweep(report: SweepReport, directory: Path, console: Console | None = None) -> None:
    """Print loss and quality by speed, the verdicts, and the path of the report."""
    console = console or report_console()
    headlines = [item for item in select_shown_headlines(report) if item.mode != 'compat']
    for series in report.series:
        console.print(f'[bold]{escape(series.title)}[/]', highlight=False)
        console.print(_build_table(series, headlines))
        color = 'green' if series.fastest else 'red'
        console.print(f'[{color}]{escape(series.verdict)}[/]', highlight=False, soft_wrap=True)
        if series.remark:
            console.print(f'[yellow]{series.remark}[/]', highlight=False, soft_wrap=True)
    console.print(f'[dim]{escape(str(directory / PAGE))}[/]', highlight=False, soft_wrap=True)


def _build_table(series: SweepSeries, headlines: Sequence[Headline]) -> Table:
    table = Table(box=None, pad_edge=False, header_style='bold')
    for name in ('speed', 'frames', 'dropped', 'loss, %', 'p95, ms'):
        table.add_column(name, justify='right', no_wrap=True)
    for headline in headlines:
        table.add_column(headline.title, justify='right')
    table.add_column('', no_wrap=True)
    titles = (*_ON_TERMINAL, *(item.title for item in headlines))
    for point, verdict, cells in build_sweep_rows(series, headlines):
        shown = f'[{_STYLES[verdict]}]{verdict}[/]' if verdict in _STYLES else ''
        texts = (cells[title].text for title in titles)
        table.add_row(f'{point.speed_factor:g}', *texts, shown)
    return table


def _write_csv(report: SweepReport) -> str:
    """Return one line per run: its speed, loss and latency, then every overall metric."""
    rows = [
        {
            **series.model_dump(exclude={'points', 'max_loss'}),
            **point.model_dump(exclude={'metrics'}),
            **{'.'.join(filter(None, (item.suite, item.mode, item.metric))): item.value
               for item in point.metrics},
        }
        for series in report.series
        for point in series.points
    ]  # fmt: skip
    return write_csv_text(list(dict.fromkeys(key for row in rows for key in row)), rows)
