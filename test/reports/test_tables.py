import os
import re
from dataclasses import replace

import pytest
from support.world.matrix import changed_run

from osmabench_ros.base.files import write_json
from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.reports.page import tables
from osmabench_ros.reports.tidy import Run, read_headlines, select_table_headlines
from osmabench_ros.runs.identity import SceneKey


def with_values(run, **values):
    """Return a run whose strict figures, named by metric, have other values."""
    metrics = (
        replace(record, value=values[record.metric])
        if record.metric in values and not record.class_name and record.mode in ('strict', '')
        else record
        for record in run.report.metrics
    )
    return changed_run(run, metrics)


def as_method(run, scene='room', condition='baseline'):
    """Return a run of a mapper without ground truth, in a scene under a condition."""
    key = SceneKey('boxes', scene, 0)
    return changed_run(run, method=True, scene_key=key, condition=condition)


def test_not_applicable_is_a_dash_and_never_a_zero(runs):
    columns, ((_, cells), _) = tables.build_headline_table(
        [with_values(runs[0], macc=None), runs[1]]
    )
    cell = cells[[column.title for column in columns].index('mAcc')]
    assert (cell.text, cell.sort, cell.best) == ('\N{EN DASH}', '', False)


def test_answers_no_better_than_constant_ones_are_marked(runs):
    floors = {'baseline_most_frequent': 0.4, 'accuracy_above_floor': 0.1}
    high = with_values(runs[0], accuracy=0.5, **floors)
    low = with_values(runs[1], accuracy=0.4, **floors)
    blind = with_values(runs[0], accuracy=0.5, **{**floors, 'accuracy_above_floor': 0.0})
    columns, rows = tables.build_headline_table([high, low])
    vqa = [column.title for column in columns].index('VQA')
    assert [cells[vqa].warning for _, cells in rows] == ['', 'not above constant']
    _, [(_, cells)] = tables.build_headline_table([blind])
    assert cells[vqa].warning == 'not above floor'
    assert columns[vqa + 1].title == 'VQA above floor'
    assert cells[vqa + 1].text == '0.0'


@pytest.mark.parametrize(
    ('metric', 'price'),
    [
        ('mAcc', 'mIoU'),
        ('f-mIoU', 'f-mIoU objects'),
        ('F-score 5 cm', 'F-score 2 cm'),
        ('VQA', 'VQA above floor'),
        ('ATE (m)', 'Frames with a pose'),
        ('Acc@0.25', 'Acc@0.5'),
    ],
)
def test_no_headline_comes_without_its_price(metric, price):
    by_title = {item.title: item for item in read_headlines()}
    first, second = by_title[metric], by_title[price]
    assert (first.suite, first.mode) == (second.suite, second.mode)
    records = [
        MetricRecord(item.suite, item.mode, item.metric, value=0.5) for item in (first, second)
    ]
    assert {metric, price} <= {item.title for item in select_table_headlines([records])}


def test_failed_runs_have_no_cells(runs):
    _, rows = tables.build_headline_table(runs)
    assert [bool(cells) for _, cells in rows] == [True, True, False] * 2


def test_every_requirement_is_listed_with_what_was_found(html):
    section = html[html.index('<details class="requirements"') :].split('</details>')[0]
    rows = [
        re.sub(r'<[^>]+>', '|', row).replace('||', '|').split('|')
        for row in re.findall(r'<tr><td>.*?</tr>', section)
    ]
    kept, failed = ([text for text in row if text] for row in rows)
    assert kept[:4] == ['holds', 'osma_segmentation strict macc', 'oracle', '≥ 0.5']
    assert kept[4].startswith('baseline: ')
    assert [failed[0], failed[2], failed[4]] == ['fails', 'every run', 'no such metric']


def test_classes_come_by_their_surface_with_both_modes(runs):
    groups, rows = tables.build_class_table(runs)
    assert tuple(groups[:2]) == ('oracle · baseline', 'noisy_oracle · baseline')
    assert [name for name, *_ in rows][-1] == 'cup'
    shares = [float(share.sort) for _, share, _ in rows]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    name, _, cells = rows[0]
    assert len(cells) == len(tables.CLASS_METRICS) * len(groups)
    record = runs[0].records['osma_segmentation', 'strict', 'iou', name]
    assert cells[0].text == f'{100 * record.value:.1f}'


def test_all_figures_have_a_column_a_run(runs):
    table = tables.build_metric_table(runs)
    assert len(table.columns) == 4
    assert ('osma_segmentation', 'strict', 'macc') in table.index
    assert table.loc[('osma_segmentation', 'strict', 'macc')].iloc[0].text.startswith('1')


def test_means_over_scenes_come_with_their_range(runs):
    assert tables.build_summary_table(runs) == []
    elsewhere = changed_run(runs[0], scene_key=SceneKey('boxes', 'hall', 0))
    other = with_values(elsewhere, macc=0.2)
    here = [with_values(runs[0], macc=0.6), with_values(runs[1], macc=0.3)]
    columns, _ = tables.build_headline_table([*here, other])
    oracle, noisy = tables.build_summary_table([*here, other])
    macc = [column.title for column in columns].index('mAcc')
    assert (oracle[1:3], noisy[2]) == (('oracle', 2), 1)
    # Two scenes are too few for a range.
    assert (oracle[3][macc].text, oracle[3][macc].interval) == ('40.0', '')
    # Both use ground truth, and are not ranked.
    assert (oracle[3][macc].best, noisy[3][macc].best) == (False, False)
    ranked = [
        as_method(with_values(runs[number], macc=value), scene)
        for number, scene, value in (
            (0, 'a', 0.2), (0, 'b', 0.6), (0, 'c', 0.4), (1, 'a', 0.1), (1, 'b', 0.3)
        )
    ]  # fmt: skip
    oracle, noisy = tables.build_summary_table(ranked)
    assert (oracle[3][macc].text, oracle[3][macc].interval) == ('40.0', '20.0 to 60.0')
    assert (oracle[3][macc].best, noisy[3][macc].best) == (True, False)


def test_the_columns_are_those_of_suites_that_gave_a_figure(runs):
    first = runs[0].report.metrics[0]

    def figure(suite, metric, value, mode=''):
        fields = {'suite': suite, 'metric': metric, 'mode': mode, 'value': value}
        return replace(first, **fields, class_name='')

    unlabelled = figure('osma_segmentation', 'macc', None, 'strict')
    geometry = figure('map_geometry', 'f_score_0.05m', 0.9)
    other = [figure('map_height', 'error_m', 0.2), figure('map_height', 'bias_m', 0.1)]
    titles = [item.title for item in select_table_headlines([[unlabelled, geometry, *other]])]
    assert titles == ['F-score 5 cm', 'map_height error_m']
    assert [item.title for item in select_table_headlines([[unlabelled]])] == ['mAcc']
    assert select_table_headlines([[]]) == []


def matrix_of(runs, scenes):
    """Return two methods in scenes under two conditions, one always 10 points ahead."""
    return [
        as_method(with_values(runs[number], macc=value + scene / 100), f's{scene}', condition)
        for scene in range(scenes)
        for number, condition, value in (
            (0, 'baseline', 0.6), (1, 'baseline', 0.5), (0, 'dark', 0.3), (1, 'dark', 0.2)
        )
    ]  # fmt: skip


def test_the_sentence_names_the_best_its_loss_and_the_test(runs):
    # Eight differences of one sign have the p of 2 / 2**8 in a sign-flip test.
    assert tables.write_headline_sentence(matrix_of(runs, 8)) == (
        'oracle is best under “baseline”, with mAcc 63.5 %; 10.0 points ahead of noisy_oracle '
        '(significant: sign-flip test over 8 scenes, adjusted by Holm, p = 0.0078); it loses most '
        'under “dark”, 30.0 points (significant: sign-flip test over 8 scenes, adjusted by Holm, '
        'p = 0.0078).'
    )
    few = tables.write_headline_sentence(matrix_of(runs, 4))
    assert few.count('no test can tell: the 95 % t interval over 4 scenes excludes 0') == 2
    assert tables.write_headline_sentence(matrix_of(runs, 1)).count('1 scene cannot tell') == 2
    assert tables.write_headline_sentence([run for run in runs if run.failed]) == ''


def test_references_and_methods_without_the_figure_take_no_part_in_the_sentence(runs):
    told = [with_values(runs[0], macc=0.9), with_values(runs[1], macc=0.4)]
    method = as_method(told[1])
    assert all(run.is_reference for run in told)
    assert tables.write_headline_sentence(told) == (
        'No method ran, only references that use ground truth: under “baseline”, mAcc is '
        '90.0 % for oracle, 40.0 % for noisy_oracle.'
    )
    assert tables.write_headline_sentence([told[0], method]) == (
        'noisy_oracle is the only method that does not use ground truth under “baseline”, with '
        'mAcc 40.0 %.'
    )
    assert (
        tables.write_headline_sentence(
            [as_method(with_values(runs[0], macc=None, fmiou=None)), method]
        )
        == 'noisy_oracle is the only method with labels under “baseline”, with mAcc 40.0 %.'
    )


def test_there_is_nothing_to_pass_without_requirements(matrix):
    report = matrix.report.model_copy(update={'passed': True})
    required = matrix.plans[0].config.requirements
    assert (report.verdict(required), report.verdict(())) == ('passed', 'complete')
    assert matrix.report.verdict(()) == 'failed'


def test_date_and_machine_come_from_the_folders_of_the_runs(runs, tmp_path):
    plan = replace(runs[0].plan, root=tmp_path)
    assert tables.build_machine_rows([Run(plan, runs[0].report)]) == []
    plan.directory.mkdir()
    (plan.directory / 'report.json').touch()
    os.utime(plan.directory / 'report.json', (86_400.0 * 365, 86_400.0 * 365))
    host = {'cpu': 'Z80', 'gpus': [], 'os': 'CP/M'}
    write_json(plan.directory / 'manifest.json', {'host': host, 'versions': {'python': '3.10'}})
    assert tables.build_machine_rows([Run(plan, runs[0].report)]) == [
        ('Date', '1971-01-01'), ('CPU', 'Z80'), ('GPU', 'none'), ('Operating system', 'CP/M'),
        ('Python', '3.10'),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ('values', 'methods', 'best'),
    [
        ((0.7, 0.3), (True, True), [True, False]),
        ((0.5, 0.5), (True, True), [False, False]),
        ((0.9, 0.3), (False, True), [False, False]),
    ],
)
def test_the_best_method_of_a_column_is_marked_and_only_there(runs, values, methods, best):
    given = [
        with_values(run, macc=value, baseline_most_frequent=0.5)
        for run, value in zip(runs, values, strict=False)
    ]
    given = [as_method(run) if method else run for run, method in zip(given, methods, strict=True)]
    columns, rows = tables.build_headline_table(given)
    titles = [column.title for column in columns]
    macc, constant = titles.index('mAcc'), titles.index('constant')
    assert [run.is_reference for run, _ in rows] == [not method for method in methods]
    assert [cells[macc].best for _, cells in rows] == best
    assert [cells[macc].text for _, cells in rows] == [f'{100 * value:.1f}' for value in values]
    assert not any(cells[constant].best for _, cells in rows)
