"""The report of a large matrix: a first page about the whole, and pages of its runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.reports.charts.headline_charts import draw_robustness_chart
from osmabench_ros.reports.comparison import build_comparison_view, build_power_view
from osmabench_ros.reports.content import skip_pictures
from osmabench_ros.reports.headline import select_table_headlines
from osmabench_ros.reports.page.figure_tables import build_figure_table
from osmabench_ros.reports.page.headline_table import (
    build_headline_table,
    build_machine_rows,
    build_summary_table,
    write_headline_sentence,
)
from osmabench_ros.reports.page.page import (
    PAGE,
    make_page_environment,
    read_scripts,
    render,
    write_configuration_text,
    write_rendered,
)
from osmabench_ros.reports.report_run import Run, find_reference_mappers
from osmabench_ros.runs.report_model import MatrixReport, Status
from osmabench_ros.runs.run_manifest import PAGES

RUNS_A_PAGE = 100
MOST_NOTICES = 20
"""Failures, unmet requirements and warnings on the first page; report.json has all."""


@dataclass(frozen=True)
class PageOfRuns:
    """A page of runs as the first page lists it; runs are counted from 1."""

    file: str
    first: int
    last: int
    first_scene: str
    last_scene: str
    not_complete: int
    before: str = ''
    after: str = ''


class PagedReport:
    """Writes the pages of runs one after another, and then the first page."""

    def __init__(self, name: str, total: int, folder: Path) -> None:
        self._name, self._total, self._folder = name, total, folder
        self._environment = make_page_environment()
        self._pages: list[PageOfRuns] = []
        self._scripts = [read_scripts('tables.js')]

    def write_runs(self, runs: Sequence[Run]) -> None:
        """Write a page of runs with all their metrics."""
        number, first = len(self._pages), self._pages[-1].last + 1 if self._pages else 1
        last = first + len(runs) - 1
        page = PageOfRuns(
            _name_file(number),
            first,
            last,
            runs[0].scene,
            runs[-1].scene,
            sum(run.report.status is not Status.COMPLETE for run in runs),
            _name_file(number - 1) if number else '',
            _name_file(number + 1) if last < self._total else '',
        )
        text = render(
            self._environment,
            'runs_page.html',
            {},
            self._scripts,
            name=self._name,
            page=page,
            headline=build_headline_table(runs, whole=False),
            # Pictures and answers are left to the folders of the runs.
            content=skip_pictures(runs, {}),
            whole=False,
            figures=build_figure_table(runs),
        )
        (self._folder / page.file).write_text(text, encoding='utf-8')
        self._pages.append(page)

    def write_first_page(self, report: MatrixReport, runs: Sequence[Run], root: Path) -> Path:
        """Write report.html, with means, comparisons and links, and no row per run."""
        # Resampling thousands of scenes takes seconds per metric.
        comparison = build_comparison_view(runs, skip_pictures((), {}), without_modes=('compat',))
        failed = [run for run in runs if run.report.status is not Status.COMPLETE]
        notices = (
            *(
                f'{run.report.run_id} {run.report.status.value}: {run.report.error}'
                for run in failed
            ),
            *report.failed_requirements,
        )
        return write_rendered(
            root / PAGE,
            'paged_report.html',
            report=report,
            runs=runs,
            notices=_list_at_most(notices),
            warnings=_list_at_most(report.warnings),
            headline=(select_table_headlines(run.report.metrics for run in runs), ()),
            sentence=write_headline_sentence(runs),
            verdict=report.verdict(runs[0].plan.config.requirements if runs else ()),
            summary=build_summary_table(runs),
            comparison=comparison,
            references=find_reference_mappers(runs),
            power=build_power_view(runs, comparison),
            charts={'robustness': draw_robustness_chart(comparison.conditions, runs)},
            scripts=self._scripts,
            machines=build_machine_rows(runs),
            pages=self._pages,
            folder=PAGES,
            runs_a_page=RUNS_A_PAGE,
            configuration=write_configuration_text([run.plan for run in runs[:1]]),
        )


def _name_file(number: int) -> str:
    return f'{number + 1:05d}.html'


def _list_at_most(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - MOST_NOTICES
    more = [f'{rest} more are in report.json'] if rest > 0 else []
    return [*texts[:MOST_NOTICES], *more]
