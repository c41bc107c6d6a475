"""The report of a large matrix: a first page about the whole, and pages of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from osmabench_ros.reports.charts.matrix_charts import draw_robustness_chart
from osmabench_ros.reports.comparison import build_comparison_view
from osmabench_ros.reports.content import skip_pictures
from osmabench_ros.reports.headline import select_table_headlines
from osmabench_ros.reports.page import page
from osmabench_ros.reports.page.headline_table import build_headline_table
from osmabench_ros.reports.page.metric_tables import build_metric_table
from osmabench_ros.reports.tidy import Run
from osmabench_ros.runs.report_model import MatrixReport, Status
from osmabench_ros.runs.run_manifest import PAGES

RUNS_A_PAGE = 100
MOST_NOTICES = 20
"""Failures, unmet requirements and warnings on the first page; report.json has all."""


class PagedReport:
    """Writes the pages of runs one after another, and then the first page."""

    def __init__(self, name: str, total: int, folder: Path) -> None:
        self._name, self._total, self._folder = name, total, folder
        self._environment = page.make_page_environment()
        self._scripts = [page.read_scripts('tables.js')]
        self._pages: list[tuple[str, int, int, str, str, int]] = []
        """File, first and last run from 1, their scenes, and how many are not complete."""

    def write_runs(self, runs: Sequence[Run]) -> None:
        """Write a page of runs with all their metrics."""
        number, done = len(self._pages) + 1, self._pages[-1][2] if self._pages else 0
        first, last, file = done + 1, done + len(runs), f'{number:05d}.html'
        text = page.render(
            self._environment,
            'runs_page.html',
            scripts=self._scripts,
            name=self._name,
            number=number,
            first=first,
            last=last,
            total=self._total,
            headline=build_headline_table(runs, whole=False),
            # Pictures and answers are left to the folders of the runs.
            content=skip_pictures(runs),
            whole=False,
            metrics=build_metric_table(runs),
        )
        (self._folder / file).write_text(text, encoding='utf-8')
        scenes = runs[0].scene, runs[-1].scene
        faults = sum(run.report.status is not Status.COMPLETE for run in runs)
        self._pages.append((file, first, last, *scenes, faults))

    def write_first_page(self, report: MatrixReport, runs: Sequence[Run], root: Path) -> Path:
        """Write report.html, with means, comparisons and links, and no row per run."""
        # Resampling thousands of scenes takes seconds per metric.
        comparison = build_comparison_view(runs, skip_pictures(()), without_modes=('compat',))
        robustness = draw_robustness_chart(comparison.conditions, runs)
        failed = [
            f'{run.report.run_id} {run.report.status.value}: {run.report.error}'
            for run in runs
            if run.report.status is not Status.COMPLETE
        ]
        return page.write_rendered(
            root / page.PAGE,
            'paged_report.html',
            notices=_list_at_most([*failed, *report.failed_requirements]),
            warnings=_list_at_most(report.warnings),
            headline=(select_table_headlines(run.report.metrics for run in runs), ()),
            charts={} if robustness is None else {'robustness': robustness},
            scripts=self._scripts,
            pages=self._pages,
            folder=PAGES,
            runs_a_page=RUNS_A_PAGE,
            **page.describe_matrix(report, runs, comparison),
        )


def _list_at_most(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - MOST_NOTICES
    more = [f'{rest} more are in report.json'] if rest > 0 else []
    return [*texts[:MOST_NOTICES], *more]
