"""The report of a sweep over speeds: report.json, report.csv, one page, and a table."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from osmabench_ros.base.files import write_json, write_text
from osmabench_ros.reports.cells import ABSENT, Cell
from osmabench_ros.reports.headline import HEADLINES, Headline
from osmabench_ros.reports.page import PAGE, page_environment, trusted
from osmabench_ros.reports.sweep_plot import sweep_plot
from osmabench_ros.runs.report_model import Record
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries


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
    text = (
        page_environment()
        .get_template('sweep.html')
        .render(
            report=report,
            columns=COLUMNS,
            headlines=headlines,
            tables=[(series, sweep_rows(series, headlines)) for series in report.series],
            plot=trusted(sweep_plot(report, headlines)),
        )
    )
    write_text(root / PAGE, text)


def shown_headlines(report: SweepReport) -> list[Headline]:
    """Return the headline figures of maps that at least one run has."""
    points = [point for series in report.series for point in series.points]
    return [
        item
        for item in HEADLINES
        if not item.is_baseline and any(_record(point, item) is not None for point in points)
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
            tuple(_figure(_record(point, item), item) for item in headlines),
        )
        for point in series.points
    ]


def print_sweep(report: SweepReport, directory: Path, console: Console | None = None) -> None:
    """Print loss and quality by speed, the verdicts, and where the rest is."""
    console = console or Console(width=None if sys.stdout.isatty() else 110)
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
        _number(point.reached_speed_factor, 1.0, 2),
        _number(point.frames if not point.error else None, 1.0, 0),
        _number(point.received, 1.0, 0),
        _number(point.mapped, 1.0, 0),
        _number(point.dropped, 1.0, 0),
        _number(point.loss, 100.0, 1),
        _number(point.latency_p50_s, 1000.0, 0),
        _number(point.latency_p95_s, 1000.0, 0),
        _number(point.staleness_mean_s, 1.0, 1),
    )


def _number(value: float | None, factor: float, digits: int) -> Cell:
    return ABSENT if value is None else Cell(f'{factor * value:.{digits}f}', repr(value))


def _figure(record: Record | None, headline: Headline) -> Cell:
    if record is None or record.value is None:
        return ABSENT
    interval = ''
    if record.low is not None and record.high is not None:
        interval = f'[{headline.number(record.low)}, {headline.number(record.high)}]'
    return Cell(headline.text(record), repr(record.value), interval, note=f'{record.n} samples')


def _record(point: SweepPoint, headline: Headline) -> Record | None:
    for record in point.metrics:
        if (record.suite, record.mode, record.metric) == (
            headline.suite,
            headline.mode,
            headline.metric,
        ):
            return record
    return None


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
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, lineterminator='\n')
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
