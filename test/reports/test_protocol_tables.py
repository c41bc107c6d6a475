"""Tables of other protocols' questions: what a run has stands there, what it lacks is a dash."""

import pytest
from support.world.matrix import changed_run

from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.matrix_charts import draw_question_chart, list_question_charts
from osmabench_ros.reports.page.page import make_page_environment
from osmabench_ros.reports.page.tables import build_protocol_tables
from osmabench_ros.reports.tidy import join_runs
from osmabench_ros.runs.report_model import join_run


def with_metrics(run, metrics, mode=''):
    """Return a run with more metrics: by suite and metric, the values by class."""
    records = (
        MetricRecord(suite, mode, metric, name, value, n=8)
        for (suite, metric), values in metrics.items()
        for name, value in values.items()
    )
    return changed_run(run, [*run.report.metrics, *join_run(run.plan.identity, records)])


def texts(table):
    return table.cells.map(lambda cell: cell.text).to_numpy().tolist()


@pytest.fixture
def runs(matrix):
    first, second, *others = join_runs(matrix.plans, matrix.report.runs)
    metrics = {
        ('space3d', 'accuracy'): {'': 0.75, 'navigation': 0.5},
        ('hypo3d', 'accuracy_told'): {'': 0.875, 'Scale': 1.0, 'removal': 0.25},
        ('hypo3d', 'imagination_gap'): {'': 0.125, 'removal': -0.5},
        ('hypo3d', 'staleness'): {'': 0.6},
        ('hypo3d', 'frames_until_updated'): {'': 25.0},
    }
    second = with_metrics(second, {('space3d', 'accuracy'): {'': 0.5}})
    return [with_metrics(first, metrics), second, *others]


def test_kinds_of_questions_and_types_of_changes_are_columns(runs):
    kinds, changes, maps = build_protocol_tables(runs)
    assert (kinds.suite, list(kinds.cells)) == ('space3d', ['all', 'navigation'])
    # The other map was not scored by kind.
    assert texts(kinds) == [['75.0', '50.0']]
    assert list(changes.cells) == ['all', 'Scale', 'removal']
    labels = [title.rpartition(' · ')[2] for title in changes.cells.index]
    assert dict(zip(labels, texts(changes), strict=True)) == {
        'told': ['87.5', '100.0', '25.0'], 'imagination gap': ['12.5', '–', '-50.0'],  # noqa: RUF001
    }  # fmt: skip
    assert list(maps.cells) == ['staleness', 'frames until then']
    assert texts(maps)[0] == ['60.0', '25']


def test_the_page_shows_them_and_leaves_out_the_section_without_any(runs):
    section = make_page_environment().get_template('protocols.html')
    html = section.render(protocols=build_protocol_tables(runs), charts={})
    assert html.count('<table') == 3
    assert '>-50.0<' in html.replace('<span', '<').replace('</td', '<')
    assert not section.render(protocols=build_protocol_tables(runs[2:]), charts={}).strip()


def test_each_protocol_has_the_figures_of_its_field(matrix):
    run, *_ = join_runs(matrix.plans, matrix.report.runs)
    strict = {
        ('cospace', 'accuracy'): {'': 0.5, 'DIR-Rec': 0.25},
        ('cospace', 'baseline_random'): {'': 0.25},
        ('grounding', 'acc_025'): {'': 0.5, 'unique': 0.75},
        ('grounding', 'acc_05'): {'': 0.25},
        ('promptgt', 'accuracy_faithful'): {'': 1.0, 'PromptGT-Existence': 0.5},
    }
    compat = {
        ('promptgt', 'accuracy_block'): {'Relations': 0.875},
        ('cospace', 'accuracy'): {'DIR-Rec': 1.0},
    }
    run = with_metrics(with_metrics(run, strict, 'strict'), compat, 'compat')
    kinds = {'Measurement': 0.125, 'Relations-Spatial': 0.75, 'Relations-Functional': 0.25}
    run = with_metrics(run, {('exact_questions', 'accuracy'): kinds})
    run = with_metrics(run, {('promptgt', 'fidelity'): {'': 0.5, 'count': 0.375}})
    tables = build_protocol_tables([run])
    shown = [(t.suite, tuple(t.cells), texts(t)) for t in tables]
    blocks = ('Standard VQA | Measurements', 'PromptGT | Measurements',
              'Standard VQA | Relations', 'PromptGT | Relations', 'map quality')  # fmt: skip
    dash = '\N{EN DASH}'
    assert shown == [
        ('cospace', ('all', 'DIR-Rec'), [['50.0', '25.0']]),
        ('grounding', ('all', 'unique'), [['50.0', '75.0'], ['25.0', dash]]),
        ('promptgt', blocks, [['12.5', dash, '50.0', '87.5', '100.0']]),
        ('promptgt', ('all', 'count'), [['50.0', '37.5']]),
    ]
    assert [table.charts for table in tables[:2]] == [
        ('cospace',), ('grounding_acc_025', 'grounding_acc_05'),
    ]  # fmt: skip
    cospace = draw_question_chart([run], list_question_charts()[1])
    [rows] = cospace['datasets'].values()
    assert {row['category'] for row in rows} == {'all questions', 'DIR-Rec'}
    # It has no figure of another baseline.
    assert {row['run'] for row in rows if row['mapper'] is None} == {'random'}
