import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from importlib.metadata import entry_points

import pytest
import vl_convert
from support.world.matrix import HOSTILE, changed_run

from osmabench_ros.reports import matrix_charts, vega
from osmabench_ros.reports.content import Dialogue
from osmabench_ros.reports.tidy import join_runs

VQA = ('exact_questions', '', 'accuracy', '')


NO_ANSWERS = defaultdict(Dialogue)


def all_charts(runs):
    return [
        matrix_charts.draw_condition_chart(runs),
        matrix_charts.draw_change_chart(runs, NO_ANSWERS),
        matrix_charts.draw_class_chart(runs),
        matrix_charts.draw_question_chart(runs, matrix_charts.list_question_charts()[0]),
    ]


def rows_of(chart):
    return [row for rows in chart['datasets'].values() for row in rows]


def drawn(chart):
    assert chart is not None
    return vl_convert.vegalite_to_svg(vega.use_light_colors(chart))


@pytest.fixture(scope='module')
def runs(matrix):
    return [run for run in join_runs(matrix.plans, matrix.report.runs) if not run.failed]


@pytest.fixture(scope='module')
def charts(runs):
    return all_charts(runs)


def test_colours_come_from_the_page(charts):
    for chart in charts:
        assert chart['description']
        text = json.dumps(chart, allow_nan=False)
        assert 'var(--ink)' in text
        assert re.search(r'var\(--series-[1-6]\)', text)
        assert not re.search(r'#[0-9a-f]{6}', text)
        assert 'var(' not in json.dumps(vega.use_light_colors(chart or {}))


def test_names_are_text_even_if_they_look_like_markup_or_expressions(runs):
    name = f'{HOSTILE} ${{1+1}} datum.value'
    svg = drawn(matrix_charts.draw_condition_chart([changed_run(runs[0], mapper=name)]))
    ElementTree.fromstring(svg)
    assert '<img' not in svg
    assert '${1+1} datum.value' in svg


def test_nothing_gives_nothing():
    assert all_charts([]) == [None, None, None, None]


def test_there_is_no_change_without_a_second_condition(runs):
    assert matrix_charts.draw_change_chart(runs[:2], NO_ANSWERS) is None


def test_a_bar_holds_run_value_and_interval(runs):
    for run in runs:
        record = run.records[VQA]
        [bar] = [
            row
            for row in rows_of(matrix_charts.draw_condition_chart(runs))
            if row.get('run') == f'{run.mapper} · {run.condition}' and row['headline'] == 'VQA'
        ]
        shown = [bar['value'], bar['low'], bar['high']]
        expected = [100 * record.value, 100 * record.low, 100 * record.high]
        assert shown == pytest.approx(expected, abs=1e-3)


def test_a_change_is_the_difference_to_the_baseline_of_the_same_mapper(runs, monkeypatch):
    before, after = runs[1], runs[3]
    monkeypatch.setattr(matrix_charts, 'compute_paired_interval', lambda *_: (-0.05, 0.05))
    found = matrix_charts.compute_changes(runs, NO_ANSWERS).set_index(['headline', 'mapper'])
    assert set(found['condition']) == {'camera'}
    change = found.loc['VQA', 'noisy_oracle']
    assert change['value'] == pytest.approx(after.records[VQA].value - before.records[VQA].value)
    assert (change['low'], change['high'], change['scenes']) == (-0.05, 0.05, 1)


def test_references_are_named_and_have_no_bars(runs):
    method = [changed_run(run, method=True) for run in runs[1::2]]
    mixed = [run for pair in zip(runs[::2], method, strict=True) for run in pair]
    assert {run.mapper for run in mixed if run.is_reference} == {'oracle'}
    for chart in all_charts(mixed):
        names = {row.get('method') for row in rows_of(chart)} - {None, ''}
        assert names == {'oracle (reference)', 'noisy_oracle'}
    for chart in all_charts(runs):
        # Where every method is a reference, none is left to compare them with.
        names = {row.get('method') for row in rows_of(chart)} - {None, ''}
        assert names == {'oracle', 'noisy_oracle'}


def test_a_method_keeps_its_colour_in_every_report():
    bundled = [item.name for item in entry_points(group='osmabench.mappers')]
    alone = {name: vega.assign_method_colors([name])[name] for name in bundled}
    others = ['mine', 'ours', 'theirs']
    assert alone == {name: vega.assign_method_colors([name])[name] for name in reversed(bundled)}
    mapping = [name for name in bundled if not name.startswith('offline')]
    assert len({alone[name] for name in mapping}) == len(mapping) == 6
    assert {name: vega.assign_method_colors(mapping)[name] for name in mapping} == {
        name: alone[name] for name in mapping
    }
    for names in itertools.permutations(others):
        assert vega.assign_method_colors(names) == vega.assign_method_colors(others)
        assert len(set(vega.assign_method_colors(names).values())) == 3
    assert set(vega.assign_method_colors([*others, *bundled])) == {*others, *bundled}


def test_a_chart_is_as_high_as_its_runs_need(runs):
    heights = []
    for count in (3, 10):
        many = [
            changed_run(run, condition=f'condition {i}') for run in runs[:2] for i in range(count)
        ]
        svg = ElementTree.fromstring(drawn(matrix_charts.draw_condition_chart(many)))
        heights.append(float(svg.get('height')))
    assert heights[1] - heights[0] == pytest.approx(14 * 19, abs=2)


def test_images_are_written_in_every_format(charts, tmp_path):
    vega.write_images({'conditions': charts[0]}, tmp_path)
    starts = {file.suffix: file.read_bytes()[:5] for file in tmp_path.iterdir()}
    assert starts == {'.svg': b'<svg ', '.pdf': b'%PDF-', '.png': b'\x89PNG\r'}
