"""The comparison of two trajectories as one page."""

from __future__ import annotations

from pathlib import Path

from osmabench_ros.base.files import write_text
from osmabench_ros.metrics.trajectory_records import ALIGNED, TrajectoryScore
from osmabench_ros.reports.cells import plain
from osmabench_ros.reports.page import page_environment, trusted
from osmabench_ros.reports.trajectory_plot import trajectory_plot

TRAJECTORY_PAGE = 'trajectory.html'


def write_trajectory_page(
    score: TrajectoryScore, estimate: str, reference: str, directory: Path
) -> Path:
    """Write trajectory.html: plot and figures; byte-identical for equal input."""
    rows: dict[str, list[str]] = {}
    for record in score.records:
        cells = rows.setdefault(record.metric, ['', '', str(record.n)])
        cells[1 if record.suite.endswith(ALIGNED) else 0] = plain(record.value)
    text = (
        page_environment()
        .get_template('trajectory.html')
        .render(
            estimate=estimate,
            reference=reference,
            alignment=score.settings.alignment.value,
            poses=len(score.reference),
            remarks=score.remarks,
            rows=rows,
            plot=trusted(trajectory_plot(score)),
        )
    )
    write_text(directory / TRAJECTORY_PAGE, text)
    return directory / TRAJECTORY_PAGE
