"""Self-contained pages of a bag, a map, a trajectory and the comparison of two results."""

from collections.abc import Sequence
from pathlib import Path

import altair as alt
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from osmabench_ros.metrics.record import COLUMNS, MetricRecord
from osmabench_ros.metrics.trajectory_records import TrajectoryScore
from osmabench_ros.reports import vega
from osmabench_ros.reports.cells import build_cell_table, build_suite_tables, read_columns
from osmabench_ros.reports.changes import ResultChanges, format_interval, join_full_name
from osmabench_ros.reports.page.page import PAGE, read_scripts, write_rendered
from osmabench_ros.runs.bag_content import TIMING_SUITE
from osmabench_ros.runs.report_model import REFERENCE_FREE, BagReport, RunReport

TRAJECTORY_PAGE = 'trajectory.html'
COMPARISON_PAGE = 'comparison.html'
_MOST_POINTS = 4000
_EDGE_PX, _ERRORS_PX = 400, 440


def write_trajectory_page(
    score: TrajectoryScore, estimate: str, reference: str, directory: Path
) -> Path:
    """Write trajectory.html: chart and metrics; byte-identical for equal input."""
    return write_rendered(
        directory / TRAJECTORY_PAGE,
        'trajectory.html',
        estimate=estimate,
        reference=reference,
        alignment=score.settings.alignment.value,
        poses=len(score.reference),
        remarks=score.remarks,
        suites=build_suite_tables(score.records),
        charts={'trajectory': draw_trajectory_chart(score)},
    )


def write_bag_page(report: BagReport, trajectory: TrajectoryScore | None, directory: Path) -> Path:
    """Write report.html of a bag; byte-identical for equal input."""
    topics = [item for item in report.metrics if item.suite == TIMING_SUITE and item.class_name]
    others = [item for item in report.metrics if item not in topics]
    return write_rendered(
        directory / PAGE,
        'bag_report.html',
        report=report,
        reference_free='' if report.reference else REFERENCE_FREE,
        remarks=[item for item in report.remarks if item != REFERENCE_FREE],
        suites=build_suite_tables([item for item in others if not item.class_name]),
        timing=_build_timing_table(topics),
        classes=build_suite_tables([item for item in others if item.class_name]),
        charts={'trajectory': draw_trajectory_chart(trajectory)} if trajectory else {},
    )


def write_map_page(report: RunReport, directory: Path) -> Path:
    """Write report.html of a map; byte-identical for equal input."""
    first = next(iter(report.metrics), None)
    return write_rendered(
        directory / PAGE,
        'map_report.html',
        report=report,
        mapper=first.mapper if first else report.run_id,
        scene=f'{first.dataset} {first.scene}' if first else '',
        condition=first.condition if first else '',
        suites=build_suite_tables([item for item in report.metrics if not item.class_name]),
        classes=build_suite_tables([item for item in report.metrics if item.class_name]),
    )


def _build_timing_table(records: Sequence[MetricRecord]) -> pd.DataFrame:
    """Return a row per topic."""
    titles = {item.field: item.title for item in read_columns('topics')}
    scores = pd.DataFrame(list(map(vars, records)), columns=list(COLUMNS))
    cells = build_cell_table(scores, ['class_name'], 'metric', order=list(titles))
    return cells.rename(columns=titles)


def write_changes_page(
    found: ResultChanges, broken: Sequence[str], results: tuple[Path, Path], directory: Path
) -> Path:
    """Write comparison.html of two results; byte-identical for equal input."""
    overall, classes = found.shown
    names = [path.absolute().name for path in results]
    if names[0] == names[1]:
        names = ['before', 'after']
    return write_rendered(
        directory / COMPARISON_PAGE,
        'changes.html',
        before=names[0],
        after=names[1],
        paths=[str(path) for path in results],
        found=found,
        broken=broken,
        overall=list(overall.itertuples()),
        classes=list(classes.itertuples()),
        full_name=join_full_name,
        interval_text=format_interval,
        scripts=[read_scripts('tables.js')],
    )


def draw_trajectory_chart(score: TrajectoryScore) -> vega.Chart:
    """Return both trajectories from above and the errors after alignment."""
    errors = alt.vconcat(
        _draw_over_time(score, score.errors.translation_m, 'translation error, m'),
        _draw_over_time(score, score.errors.rotation_deg, 'rotation error, deg'),
    )
    return vega.build_specification(
        alt.hconcat(_draw_from_above(score), errors),
        'The estimated trajectory and the true one from above, and the errors over time',
    )


def _draw_from_above(score: TrajectoryScore) -> alt.LayerChart:
    rows = _select_rows(len(score.reference))
    paths = {'reference': score.reference, 'estimate': score.aligned}
    table = pd.concat(
        pd.DataFrame(path.positions[rows, :2], columns=['x', 'y']).assign(path=name, order=rows)
        for name, path in paths.items()
    )
    # Equal scales: both axes are as long as the longer side.
    low = table[['x', 'y']].min()
    high = table[['x', 'y']].max()
    center = (high + low) / 2
    half = max(0.55 * float((high - low).max()), 1e-6)
    domain = {name: [center[name] - half, center[name] + half] for name in ('x', 'y')}
    x = alt.X('x:Q').title('x, m').scale(domain=domain['x'], nice=False)
    y = alt.Y('y:Q').title('y, m').scale(domain=domain['y'], nice=False)
    color = alt.Color('path:N').scale(domain=list(paths), range=[vega.MUTED, vega.SERIES[0]])
    lines = alt.Chart(table).mark_line(strokeWidth=1.6).encode(x, y, color, order='order:Q')
    start = alt.Chart(table.iloc[:1]).mark_point(color=vega.INK, filled=True, size=50).encode(x, y)
    kind = score.settings.alignment.value
    title = 'from above, start at the dot' + ('' if kind == 'none' else f', aligned by {kind}')
    return alt.layer(lines, start).properties(width=_EDGE_PX, height=_EDGE_PX, title=title)


def _draw_over_time(
    score: TrajectoryScore, values: NDArray[np.float64], title: str
) -> alt.LayerChart:
    rows = _select_rows(len(values))
    seconds = (score.aligned.stamps_ns - score.aligned.stamps_ns[0]) / 1e9
    rmse = float(np.sqrt(np.mean(np.square(values))))
    table = pd.DataFrame({'seconds': seconds[rows], 'error': values[rows]})
    mean = pd.DataFrame({'rmse': [rmse], 'label': [f'rmse {rmse:.3g}']})
    shown = {'seconds': '.2f', 'error': '.3~g'}
    lines = alt.Chart(table).mark_line(color=vega.SERIES[0], strokeWidth=1.2)
    lines = lines.encode(
        alt.X('seconds:Q').title('seconds since the first pose'),
        alt.Y('error:Q').title(None),
        tooltip=[alt.Tooltip(f'{x}:Q', format=f) for x, f in shown.items()],
    )
    level = alt.Chart(mean).encode(y='rmse:Q')
    return alt.layer(
        lines,
        level.mark_rule(color=vega.SERIES[1], strokeDash=[6, 3]),
        level.mark_text(align='right', dy=-6, x='width').encode(text='label:N'),
    ).properties(width=_ERRORS_PX, height=150, title=title)


def _select_rows(count: int) -> NDArray[np.intp]:
    """Return rows to draw: all, or evenly spread ones of very many."""
    return np.linspace(0, count - 1, min(count, _MOST_POINTS)).astype(np.intp)
