"""The report of a sweep over speeds: report.json, report.csv, one page, and a table."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from osmabench_ros.base.files import write_json, write_text
from osmabench_ros.reports import cells
from osmabench_ros.reports.page.over_time import draw_sweep_chart, list_points
from osmabench_ros.reports.page.page import PAGE, write_rendered
from osmabench_ros.reports.terminal import make_console, make_table
from osmabench_ros.reports.tidy import Headline, list_distinct, select_map_headlines
from osmabench_ros.runs.sweep import SweepPoint, SweepReport, SweepSeries

_ON_TERMINAL = {
    'frames': 'Published', 'dropped': 'Dropped', 'loss, %': 'Loss, %', 'p95, ms': 'p95, ms'
}  # fmt: skip
_STYLES = {'failed': 'red', 'fastest': 'green', 'loses too many': 'red', 'not reached': 'yellow'}

# A run of a sweep, the verdict on its speed, and its cells by title of the column.
SweepRow = tuple[SweepPoint, str, dict[str, cells.Cell]]


def write_sweep_report(report: SweepReport, root: Path) -> None:
    """Write report.json, report.csv and report.html of a sweep into its folder."""
    write_json(root / 'report.json', report.model_dump(mode='json'))
    rows = []
    for series, point in list_points(report):
        own = series.model_dump(exclude={'points', 'max_loss'})
        own |= point.model_dump(exclude={'metrics'})
        rows.append(own | {'.'.join(filter(None, x.key[:3])): x.value for x in point.metrics})
    columns = list_distinct(key for row in rows for key in row)
    write_text(root / 'report.csv', cells.write_csv_text(columns, rows))
    headlines = select_shown_headlines(report)
    write_rendered(
        root / PAGE,
        'sweep.html',
        report=report,
        headlines=headlines,
        tables=[(series, build_sweep_rows(series, headlines)) for series in report.series],
        charts={'sweep': draw_sweep_chart(report, headlines)},
    )


def select_shown_headlines(report: SweepReport) -> list[Headline]:
    """Return the headline metrics of maps that at least one run has."""
    return select_map_headlines([point.metrics for _, point in list_points(report)])


def build_sweep_rows(series: SweepSeries, headlines: Sequence[Headline]) -> list[SweepRow]:
    """Return a row for every speed that was tried."""
    titles = [x.title for x in cells.read_columns('sweep')] + [x.title for x in headlines]
    rows = []
    for point in series.points:
        found = cells.make_field_cells(None if point.error else point, 'sweep')
        records = [(x.find_record(point.metrics), x.format_value) for x in headlines]
        found += [cells.make_score_cell(record, number) for record, number in records]
        verdict = _describe_verdict(series, point)
        rows.append((point, verdict, dict(zip(titles, found, strict=True))))
    return rows


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
    console = console or make_console()
    headlines = [item for item in select_shown_headlines(report) if item.mode != 'compat']
    shown = [*_ON_TERMINAL.values(), *(item.title for item in headlines)]
    for series in report.series:
        table = make_table((), ['speed', *_ON_TERMINAL], [item.title for item in headlines])
        table.add_column('', no_wrap=True)
        for point, verdict, found in build_sweep_rows(series, headlines):
            said = f'[{_STYLES[verdict]}]{verdict}[/]' if verdict in _STYLES else ''
            table.add_row(f'{point.speed_factor:g}', *(found[x].text for x in shown), said)
        console.print(f'[bold]{escape(series.title)}[/]', highlight=False)
        console.print(table)
        color = 'green' if series.fastest else 'red'
        console.print(f'[{color}]{escape(series.verdict)}[/]', highlight=False, soft_wrap=True)
        if series.remark:
            console.print(f'[yellow]{series.remark}[/]', highlight=False, soft_wrap=True)
    console.print(f'[dim]{escape(str(directory / PAGE))}[/]', highlight=False, soft_wrap=True)
