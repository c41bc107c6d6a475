"""The report as self-contained pages, without other files or network.

A large matrix has a first page about the whole, and pages of its runs.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from osmabench_ros.base.files import write_text
from osmabench_ros.mappers.mapper import home_advantage
from osmabench_ros.metrics.comparison import DIFFERENCES
from osmabench_ros.reports import comparison as comparisons
from osmabench_ros.reports import matrix_charts, tidy
from osmabench_ros.reports.cells import format_plain, make_field_cells, read_columns, scale_cell
from osmabench_ros.reports.content import gather, skip_pictures
from osmabench_ros.reports.pacing import UNKNOWN, PacingView, read_timed_runs
from osmabench_ros.reports.page import over_time, tables
from osmabench_ros.reports.palette import format_hex_color
from osmabench_ros.reports.pictures.graph_errors import OUTCOMES
from osmabench_ros.reports.pictures.view_3d import read_three_js
from osmabench_ros.reports.tidy import Run, select_table_headlines
from osmabench_ros.reports.vega import Chart, read_vega_script
from osmabench_ros.runs.evaluation import collect_judged_records
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import MatrixReport, Status, concerns, unmet
from osmabench_ros.runs.run_manifest import PAGES

PAGE = 'report.html'
TEMPLATES = Path(__file__).parent / 'templates'
_SCRIPTS = ('tables.js', 'questions.js', 'space.js', 'enlarge.js')


def write_page(report: MatrixReport, plans: Sequence[RunPlan], root: Path) -> Path:
    """Write report.html of a matrix; byte-identical for equal input; lists missing results."""
    runs = tidy.join_runs(plans, report.runs)
    content = gather(runs)
    comparison = comparisons.build_comparison_view(runs, content)
    timed = read_timed_runs(runs)
    pacing = PacingView(timed)
    maps_over_time = over_time.view_over_time(runs)
    required = plans[0].config.requirements if plans else ()
    judged = collect_judged_records(plans, report.runs, required)
    scenes = {item.run.scene: item.scene for item in content.sections if item.scene}
    label_sets = {name: scene.truth.label_set for name, scene in scenes.items()}
    three = [read_three_js()] if content.space['runs'] else []
    return write_rendered(
        root / PAGE,
        'report.html',
        content=content,
        whole=True,
        requirements=[(item, not unmet((item,), judged)) for item in required],
        judged=judged,
        headline=tables.build_headline_table(runs),
        at_home=list_home_advantages(runs),
        charts={
            **matrix_charts.draw_matrix_charts(runs, comparison.conditions, content.dialogues),
            'growth': maps_over_time['chart'],
            'latency': matrix_charts.draw_latency_chart(pacing.realtime),
        },
        scripts=(*three, read_scripts(*_SCRIPTS)),
        pacing=pacing,
        over_time=maps_over_time,
        baseline=tidy.find_baseline_condition(runs),
        classes=tables.build_class_table(runs),
        protocols=tables.build_protocol_tables(runs),
        confusions=tables.build_confusion_tables(runs, label_sets),
        metrics=tables.build_metric_table(runs),
        timed=timed,
        **describe_matrix(report, runs, comparison),
    )


def describe_matrix(
    report: MatrixReport, runs: Sequence[Run], comparison: comparisons.ComparisonView
) -> dict[str, Any]:
    """Return the values that the first pages of small and of large matrices have."""
    plans = [run.plan for run in runs[:1]]
    power = comparisons.build_power_rows(comparison)
    return {
        'report': report,
        'runs': runs,
        'sentence': tables.write_headline_sentence(runs),
        'verdict': report.verdict(plans[0].config.requirements if plans else ()),
        'machines': tables.build_machine_rows(runs),
        'summary': tables.build_summary_table(runs),
        'comparison': comparison,
        'references': tidy.find_reference_mappers(runs),
        'power': power,
        'expected_power': () if power else comparisons.describe_expected_power(runs),
        'configuration': write_configuration_text(plans),
    }


def list_home_advantages(runs: Sequence[Run]) -> dict[str, str]:
    """Return what bundled mappers have ahead of others, by the name of the mapper in the runs."""
    bundled = {run.mapper: run.plan.mapper.bundled for run in runs if run.plan.mapper.bundled}
    found = {mapper: home_advantage(name) for mapper, name in bundled.items()}
    return {mapper: text for mapper, text in found.items() if text}


def write_rendered(path: Path, template: str, **values: Any) -> Path:
    """Write a page, byte-identical for equal values; return its path."""
    write_text(path, render(make_page_environment(), template, **values))
    return path


def render(
    environment: Environment,
    template: str,
    *,
    charts: Mapping[str, Chart | None] = MappingProxyType({}),
    scripts: Sequence[str] = (),
    **values: Any,
) -> str:
    """Return a page with the charts that there are, and the only scripts that may run on it."""
    charts = {name: chart for name, chart in charts.items() if chart is not None}
    if charts:
        scripts = (read_vega_script(), *scripts, read_scripts('charts.js'))
    return environment.get_template(template).render(
        charts=charts,
        scripts=[mark_safe(text) for text in scripts],
        script_hashes=' '.join(compute_csp_hash(text) for text in scripts),
        **values,
    )


def make_page_environment() -> Environment:
    """Return the templates of pages, with autoescaping, and their common style and columns."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals |= {
        'style': mark_safe((TEMPLATES / 'page.css').read_text(encoding='utf-8')),
        'columns_of': read_columns,
        'class_metrics': tables.CLASS_METRICS,
        'power_differences': DIFFERENCES,
        'outcomes': OUTCOMES,
        'concerns': concerns,
        'plain': format_plain,
        'field_cells': make_field_cells,
        'unknown': UNKNOWN,
        'scale_cell': scale_cell,
        'hex_color': format_hex_color,
    }
    return environment


def mark_safe(text: str) -> Markup:
    """Mark a text of this package as safe."""
    return Markup(text)  # noqa: S704


def read_scripts(*names: str) -> str:
    """Return scripts that come with the package as one."""
    return '\n'.join((TEMPLATES / name).read_text(encoding='utf-8') for name in names)


def compute_csp_hash(script: str) -> str:
    """Return the CSP source expression that allows exactly this script."""
    digest = hashlib.sha256(script.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


def write_configuration_text(plans: Sequence[RunPlan]) -> str:
    """Return the configuration of runs as YAML."""
    if not plans:
        return ''
    # The scenes of a large matrix take the other dumper seconds.
    dumper = getattr(yaml, 'CSafeDumper', yaml.SafeDumper)
    return str(yaml.dump(plans[0].config.model_dump(mode='json'), Dumper=dumper, sort_keys=False))


RUNS_A_PAGE = 100
# Failures, unmet requirements and warnings on the first page; report.json has all.
MOST_NOTICES = 20


class PagedReport:
    """Writes the pages of runs one after another, and then the first page."""

    def __init__(self, name: str, total: int, folder: Path) -> None:
        self._name = name
        self._total = total
        self._folder = folder
        self._environment = make_page_environment()
        self._scripts = [read_scripts('tables.js')]
        # File, first and last run from 1, their scenes, and how many are not complete.
        self._pages: list[tuple[str, int, int, str, str, int]] = []

    def write_runs(self, runs: Sequence[Run]) -> None:
        """Write a page of runs with all their metrics."""
        number = len(self._pages) + 1
        done = self._pages[-1][2] if self._pages else 0
        first = done + 1
        last = done + len(runs)
        file = f'{number:05d}.html'
        text = render(
            self._environment,
            'runs_page.html',
            scripts=self._scripts,
            name=self._name,
            number=number,
            first=first,
            last=last,
            total=self._total,
            headline=tables.build_headline_table(runs, whole=False),
            # Pictures and answers are left to the folders of the runs.
            content=skip_pictures(runs),
            whole=False,
            metrics=tables.build_metric_table(runs),
        )
        (self._folder / file).write_text(text, encoding='utf-8')
        scenes = runs[0].scene, runs[-1].scene
        faults = sum(run.report.status is not Status.COMPLETE for run in runs)
        self._pages.append((file, first, last, *scenes, faults))

    def write_first_page(self, report: MatrixReport, runs: Sequence[Run], root: Path) -> Path:
        """Write report.html, with means, comparisons and links, and no row per run."""
        # Resampling thousands of scenes takes seconds per metric.
        nothing = skip_pictures(())
        comparison = comparisons.build_comparison_view(runs, nothing, without_modes=('compat',))
        robustness = matrix_charts.draw_robustness_chart(comparison.conditions, runs)
        ended = [run.report for run in runs if run.report.status is not Status.COMPLETE]
        failed = [f'{item.run_id} {item.status.value}: {item.error}' for item in ended]
        return write_rendered(
            root / PAGE,
            'paged_report.html',
            notices=_list_at_most([*failed, *report.failed_requirements]),
            warnings=_list_at_most(report.warnings),
            headline=(select_table_headlines(run.report.metrics for run in runs), ()),
            charts={'robustness': robustness},
            scripts=self._scripts,
            pages=self._pages,
            folder=PAGES,
            runs_a_page=RUNS_A_PAGE,
            **describe_matrix(report, runs, comparison),
        )


def _list_at_most(texts: Sequence[str]) -> list[str]:
    rest = len(texts) - MOST_NOTICES
    more = [f'{rest} more are in report.json'] if rest > 0 else []
    return [*texts[:MOST_NOTICES], *more]
