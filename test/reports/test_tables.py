from dataclasses import replace

import pytest
from reports.synthetic_matrix import Matrix

from osmabench_ros.reports.page.figure_tables import (
    CLASS_FIGURES,
    class_table,
    figure_table,
    requirement_rows,
)
from osmabench_ros.reports.page.headline_table import headline_table, summary_table
from osmabench_ros.reports.report_run import Run, joined
from osmabench_ros.runs.identity import SceneKey
from osmabench_ros.runs.results.report_model import RunReport


@pytest.fixture
def runs(matrix: Matrix) -> list[Run]:
    return joined(matrix.plans, matrix.report.runs)


def with_values(run: Run, **values: float | None) -> Run:
    """Return a run whose strict figures, named by metric, have other values."""
    metrics = tuple(
        record.model_copy(update={'value': values[record.metric]})
        if record.metric in values and not record.class_name and record.mode in ('strict', None)
        else record
        for record in run.report.metrics
    )
    return Run(run.plan, RunReport(**{**dict(run.report), 'metrics': metrics}))


def test_the_best_of_a_column_is_marked_and_only_there(runs: list[Run]):
    columns, rows = headline_table(
        [
            with_values(runs[0], macc=0.7, baseline_most_frequent=0.5),
            with_values(runs[1], macc=0.3),
        ]
    )
    titles = [column.title for column in columns]
    macc, constant = titles.index('mAcc'), titles.index('constant')
    assert [row.cells[macc].best for row in rows] == [True, False]
    assert [row.cells[macc].text for row in rows] == ['70.0', '30.0']
    assert not any(row.cells[constant].best for row in rows)


def test_nothing_is_best_where_all_are_equal(runs: list[Run]):
    columns, rows = headline_table([with_values(run, macc=0.5) for run in runs[:2]])
    macc = [column.title for column in columns].index('mAcc')
    assert not any(row.cells[macc].best for row in rows)


def test_not_applicable_is_a_dash_and_never_a_zero(runs: list[Run]):
    columns, (row, _) = headline_table([with_values(runs[0], macc=None), runs[1]])
    cell = row.cells[[column.title for column in columns].index('mAcc')]
    assert (cell.text, cell.sort, cell.best) == ('\N{EN DASH}', '', False)


def test_answers_no_better_than_constant_ones_are_marked(runs: list[Run]):
    high = with_values(runs[0], accuracy=0.5, baseline_most_frequent=0.4)
    low = with_values(runs[1], accuracy=0.4, baseline_most_frequent=0.4)
    columns, rows = headline_table([high, low])
    vqa = [column.title for column in columns].index('VQA')
    assert [row.cells[vqa].warning for row in rows] == ['', 'not above constant']


def test_failed_runs_have_no_cells(runs: list[Run]):
    _, rows = headline_table(runs)
    assert [bool(row.cells) for row in rows] == [True, True, False] * 2


def test_every_requirement_is_listed_with_what_was_found(matrix: Matrix):
    kept, failed = requirement_rows(matrix.report.metrics, matrix.plans[0].config.requirements)
    assert (kept.holds, kept.where, kept.bound) == (True, 'oracle', '≥ 0.5')
    assert kept.found.startswith('baseline: ')
    assert (failed.holds, failed.where, failed.found) == (False, 'every run', 'no such figure')


def test_classes_come_by_their_surface_with_both_modes(runs: list[Run]):
    table = class_table(runs)
    assert table.groups[:2] == ('oracle · baseline', 'noisy_oracle · baseline')
    assert [name for name, *_ in table.rows][-1] == 'cup'
    shares = [float(share.sort) for _, share, _ in table.rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    name, _, cells = table.rows[0]
    assert len(cells) == len(CLASS_FIGURES) * len(table.groups)
    record = runs[0].records['osma_segmentation', 'strict', 'iou', name]
    assert cells[0].text == f'{100 * record.value:.1f}'


def test_all_figures_have_a_column_a_run(runs: list[Run]):
    table = figure_table(runs)
    assert len(table.runs) == 4
    assert ('osma_segmentation', 'strict', 'macc') in [row[:3] for row in table.rows]
    assert all(len(cells) == 4 for *_, cells in table.rows)


def test_means_over_scenes_come_with_their_range(runs: list[Run]):
    assert summary_table(runs) == []
    plan = runs[0].plan
    elsewhere = replace(
        plan, identity=replace(plan.identity, scene_key=SceneKey('boxes', 'hall', 0))
    )
    other = with_values(Run(elsewhere, runs[0].report), macc=0.2)
    here = [with_values(runs[0], macc=0.6), with_values(runs[1], macc=0.3)]
    columns, _ = headline_table([*here, other])
    oracle, noisy = summary_table([*here, other])
    macc = [column.title for column in columns].index('mAcc')
    assert (oracle.mapper, oracle.runs, noisy.runs) == ('oracle', 2, 1)
    assert (oracle.cells[macc].text, oracle.cells[macc].interval) == ('40.0', '20.0 to 60.0')
    assert (oracle.cells[macc].best, noisy.cells[macc].best) == (True, False)
