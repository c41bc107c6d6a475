"""The report as one self-contained page, without other files or network."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from osmabench_ros.base.files import write_text
from osmabench_ros.mappers.mapper import home_advantage
from osmabench_ros.reports.charts.chart import Specification, read_vega_script
from osmabench_ros.reports.charts.class_chart import draw_class_chart
from osmabench_ros.reports.charts.headline_charts import (
    draw_change_chart,
    draw_condition_chart,
    draw_robustness_chart,
)
from osmabench_ros.reports.charts.latency_chart import draw_latency_chart
from osmabench_ros.reports.charts.question_chart import draw_question_chart, list_question_figures
from osmabench_ros.reports.comparison import (
    ComparisonView,
    build_comparison_view,
    build_power_view,
)
from osmabench_ros.reports.content import gather
from osmabench_ros.reports.outcomes import OUTCOMES
from osmabench_ros.reports.pacing import (
    NODE_COLUMNS,
    STALENESS_COLUMNS,
    build_pacing_view,
    read_timed_runs,
)
from osmabench_ros.reports.page.figure_tables import (
    CLASS_FIGURES,
    RequirementRow,
    build_class_table,
    build_confusion_tables,
    build_figure_table,
    build_requirement_rows,
)
from osmabench_ros.reports.page.headline_table import (
    COST_COLUMNS,
    build_cost_rows,
    build_headline_table,
    build_machine_rows,
    build_summary_table,
    write_headline_sentence,
)
from osmabench_ros.reports.page.over_time import (
    SUMMARIES,
    view_over_time,
)
from osmabench_ros.reports.page.protocol_tables import build_protocol_tables
from osmabench_ros.reports.palette import format_hex_color
from osmabench_ros.reports.pictures.view_3d import read_three_js
from osmabench_ros.reports.question_data import Dialogue, compute_paired_interval
from osmabench_ros.reports.report_run import (
    Run,
    find_baseline_condition,
    find_reference_mappers,
    join_runs,
)
from osmabench_ros.runs.evaluate.over_time import collect_judged_records
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.report_model import MatrixReport

Charts = Mapping[str, 'Specification | None']

PAGE = 'report.html'
TEMPLATES = Path(__file__).parent / 'templates'
_SCRIPTS = ('tables.js', 'questions.js', 'space.js', 'enlarge.js')


def write_page(report: MatrixReport, plans: Sequence[RunPlan], root: Path) -> Path:
    """Write report.html of a matrix; byte-identical for equal input; lists missing results."""
    runs = join_runs(plans, report.runs)
    content = gather(runs)
    pacing, comparison = (
        build_pacing_view(read_timed_runs(runs)),
        build_comparison_view(runs, content),
    )
    growth = view_over_time(runs)
    label_sets = {
        item.run.scene: item.scene.truth.label_set for item in content.sections if item.scene
    }
    three = read_three_js() if content.space['runs'] else ''
    script = read_scripts(*_SCRIPTS)
    return write_rendered(
        root / PAGE,
        'report.html',
        report=report,
        runs=runs,
        content=content,
        whole=True,
        sentence=write_headline_sentence(runs),
        verdict=report.verdict(plans[0].config.requirements if plans else ()),
        machines=build_machine_rows(runs),
        requirements=_judge_requirements(report, plans),
        headline=build_headline_table(runs),
        summary=build_summary_table(runs),
        at_home=list_home_advantages(runs),
        charts={
            **draw_matrix_charts(runs, content.dialogues, comparison),
            'growth': growth.chart,
            'latency': draw_latency_chart(pacing.realtime),
        },
        scripts=(three, script) if three else (script,),
        pacing=pacing,
        node_columns=NODE_COLUMNS,
        staleness_columns=STALENESS_COLUMNS,
        growth=growth,
        growth_summaries=SUMMARIES,
        comparison=comparison,
        references=find_reference_mappers(runs),
        power=build_power_view(runs, comparison),
        baseline=find_baseline_condition(runs),
        classes=build_class_table(runs),
        protocols=build_protocol_tables(runs),
        class_figures=CLASS_FIGURES,
        confusions=build_confusion_tables(runs, label_sets),
        figures=build_figure_table(runs),
        costs=build_cost_rows(runs),
        cost_columns=COST_COLUMNS,
        configuration=write_configuration_text(plans),
        outcomes=OUTCOMES,
        hex_color=format_hex_color,
    )


def _judge_requirements(report: MatrixReport, plans: Sequence[RunPlan]) -> list[RequirementRow]:
    required = plans[0].config.requirements if plans else ()
    return build_requirement_rows(collect_judged_records(plans, report.runs, required), required)


def list_home_advantages(runs: Sequence[Run]) -> dict[str, str]:
    """Return what bundled mappers have ahead of others, by the name of the mapper in the runs."""
    bundled = {run.mapper: run.plan.mapper.bundled for run in runs if run.plan.mapper.bundled}
    found = {mapper: home_advantage(name) for mapper, name in bundled.items()}
    return {mapper: text for mapper, text in found.items() if text}


def write_rendered(
    path: Path,
    template: str,
    *,
    charts: Charts | None = None,
    scripts: Sequence[str] = (),
    **values: Any,
) -> Path:
    """Write a page, byte-identical for equal values; return its path."""
    write_text(path, render(make_page_environment(), template, charts or {}, scripts, **values))
    return path


def render(
    environment: Environment,
    template: str,
    charts: Charts,
    scripts: Sequence[str] = (),
    **values: Any,
) -> str:
    """Return a page with the charts that there are, and the only scripts that may run on it."""
    drawn = {name: chart for name, chart in charts.items() if chart is not None}
    if drawn:
        scripts = (read_vega_script(), *scripts, read_scripts('charts.js'))
    return environment.get_template(template).render(
        charts=drawn,
        scripts=[mark_safe(text) for text in scripts],
        script_hashes=' '.join(compute_csp_hash(text) for text in scripts),
        **values,
    )


def make_page_environment() -> Environment:
    """Return the templates of pages, with autoescaping, and their common style."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals['style'] = mark_safe((TEMPLATES / 'page.css').read_text(encoding='utf-8'))
    return environment


def draw_matrix_charts(
    runs: Sequence[Run], dialogues: Mapping[str, Dialogue], comparison: ComparisonView
) -> Charts:
    """Return the charts of a matrix by name; None without data."""

    def interval(before: str, after: str) -> tuple[float, float] | None:
        return compute_paired_interval(dialogues[before], dialogues[after])

    scored = [run for run in runs if not run.failed]
    return {
        'conditions': draw_condition_chart(scored),
        'changes': draw_change_chart(scored, interval),
        'classes': draw_class_chart(scored),
        **{figure.name: draw_question_chart(scored, figure) for figure in list_question_figures()},
        'robustness': draw_robustness_chart(comparison.conditions, runs),
    }


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
