"""The report of a sweep over speeds: report.json, report.csv, one page, and a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import altair as alt
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.base.files import write_json, write_text
from osmabench_ros.reports.cells import Cell, csv_text, record_cell, scaled_cell
from osmabench_ros.reports.charts.chart import Specification, specification
from osmabench_ros.reports.charts.line_chart import line_layers
from osmabench_ros.reports.headline import HEADLINES, Headline
from osmabench_ros.reports.page.page import PAGE, write_rendered
from osmabench_ros.reports.report_run import distinct
from osmabench_ros.reports.terminal import report_console
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

_PANELS_IN_A_ROW = 3


def sweep_chart(report: SweepReport, headlines: Sequence[Headline]) -> Specification | None:
    """Return loss and the headline figures by speed, one line a series; None without any run."""
    rows: list[dict[str, Any]] = [
        {'panel': panel, 'x': point.speed_factor, 'missed': not point.reached, **bounds,
         'run': series.title, 'mapper': series.mapper, 'condition': series.condition,
         'setting': series.title.removeprefix(f'{series.mapper} · ')}
        for series in report.series
        for point in series.points
        if not point.error
        for panel, bounds in _figures(point, headlines)
    ]  # fmt: skip
    if not rows:
        return None
    panels = distinct(row['panel'] for row in rows)
    speeds = sorted({row['x'] for row in rows})
    x = (
        alt.X('x:Q')
        .title('speed factor: stamp seconds per wall second')
        .scale(type='log', base=2, domain=[speeds[0] / 1.2, speeds[-1] * 1.2], nice=False)
        .axis(values=speeds, format='~g')
    )
    limit = {'panel': panels[0], 'limit': 100 * report.max_loss}
    layers = line_layers([*rows, limit], x)
    chart = layers.facet(alt.Facet('panel:N').sort(panels).title(None), columns=_PANELS_IN_A_ROW)
    return specification(chart, 'Loss of frames and map quality against speed')


def _figures(
    point: SweepPoint, headlines: Sequence[Headline]
) -> Iterator[tuple[str, dict[str, float | None]]]:
    """Yield title, value and interval of the loss and the headline figures, in percent."""
    loss = None if point.loss is None else 100 * point.loss
    yield 'Loss, %', {'value': loss, 'low': None, 'high': None}
    for headline in headlines:
        record = headline.record_in(point.metrics)
        if record is not None and record.value is not None:
            found = {'value': record.value, 'low': record.low, 'high': record.high}
            in_percent = {name: x if x is None else 100 * x for name, x in found.items()}
            yield f'{headline.title}, %', in_percent


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
        charts={'sweep': sweep_chart(report, headlines)},
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
