import importlib
import itertools
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from importlib.metadata import entry_points

import pytest
from matplotlib.figure import Figure
from support.world.matrix import HOSTILE, Matrix

from osmabench_ros.reports.headline import HEADLINES
from osmabench_ros.reports.plots import condition_plots
from osmabench_ros.reports.plots.change_plot import change_plot, changes
from osmabench_ros.reports.plots.class_plot import class_plot
from osmabench_ros.reports.plots.condition_plots import condition_plot
from osmabench_ros.reports.plots.question_plot import question_plot
from osmabench_ros.reports.plots.svg import method_colors
from osmabench_ros.reports.report_run import Run, joined

VQA = next(item for item in HEADLINES if item.title == 'VQA')


def no_interval(before: Run, after: Run) -> None:
    return None


def all_plots(runs: list[Run]) -> list[str]:
    return [
        condition_plot(runs),
        change_plot(runs, no_interval),
        class_plot(runs),
        question_plot(runs),
    ]


@pytest.fixture(scope='module')
def runs(matrix: Matrix) -> list[Run]:
    return [run for run in joined(matrix.plans, matrix.report.runs) if not run.failed]


@pytest.fixture(scope='module')
def plots(runs: list[Run]) -> list[str]:
    return all_plots(runs)


def test_plots_are_well_formed_and_described(plots: list[str]):
    for plot in plots:
        root = ElementTree.fromstring(plot)
        assert root.get('role') == 'img'
        assert root.get('aria-label')


def test_ids_are_unique_across_the_plots_of_a_page(plots: list[str]):
    ids = re.findall(r'\bid="([^"]+)"', ''.join(plots))
    assert len(ids) == len(set(ids))
    used = set(re.findall(r'(?:url\(#|href="#)([^")]+)', ''.join(plots)))
    assert used <= set(ids)


def test_colours_come_from_the_page(plots: list[str]):
    for plot in plots:
        assert 'var(--ink)' in plot
        assert re.search(r'var\(--series-[1-6]\)', plot)
        assert not re.findall(r'#[01][0-9a-f]{5}\b(?!")', plot)


def test_names_are_text_even_if_they_look_like_markup_or_formulas(runs: list[Run]):
    identity = replace(runs[0].plan.identity, mapper=f'{HOSTILE} $x_{{1$')
    run = Run(replace(runs[0].plan, identity=identity), runs[0].report)
    for plot in (condition_plot([run]), class_plot([run]), question_plot([run])):
        ElementTree.fromstring(plot)
        assert '<img' not in plot
        assert '$x_{1$' in plot


def test_nothing_gives_nothing():
    assert all_plots([]) == ['', '', '', '']


def test_there_is_no_change_without_a_second_condition(runs: list[Run]):
    assert change_plot(runs[:2], no_interval) == ''


def test_a_change_is_the_difference_to_the_baseline_of_the_same_mapper(runs: list[Run]):
    before, after = runs[1], runs[3]
    found = changes(runs, 'noisy_oracle', 'camera', VQA, lambda a, b: (-5.0, 5.0))
    expected = 100 * (after.headline(VQA).value - before.headline(VQA).value)
    assert found.value == pytest.approx(expected)
    assert (found.low, found.high, found.scenes) == (-5.0, 5.0, 1)
    assert changes(runs, 'oracle', 'velocity', VQA, no_interval) is None


def figures_drawn(runs: list[Run], monkeypatch) -> Figure:
    drawn = []
    monkeypatch.setattr(
        condition_plots, 'inline_svg', lambda figure, *_: drawn.append(figure) or 'svg'
    )
    assert condition_plot(runs) == 'svg'
    drawn[0].draw_without_rendering()
    return drawn[0]


def test_references_are_lines_beside_a_method(runs: list[Run]):
    command = runs[1].plan.mapper.model_copy(update={'command': ('mine',)})
    method = Run(replace(runs[1].plan, mapper=command), runs[1].report)
    assert 'oracle (reference)' in condition_plot([runs[0], method])
    assert '(reference)' not in condition_plot(runs[:2])


def test_references_are_lines_in_every_plot(runs: list[Run], monkeypatch):
    command = runs[1].plan.mapper.model_copy(update={'command': ('mine',)})
    method = [Run(replace(run.plan, mapper=command), run.report) for run in runs[1::2]]
    mixed = [run for pair in zip(runs[::2], method, strict=True) for run in pair]
    assert {run.mapper for run in mixed if run.is_reference} == {'oracle'}
    color = method_colors(['oracle', 'noisy_oracle'])['oracle']
    plots = {'class_plot': class_plot, 'question_plot': question_plot}
    for name, plot in {**plots, 'change_plot': lambda r: change_plot(r, no_interval)}.items():
        for given, drawn in ((mixed, {'lines'}), (runs, {'lines', 'points'})):
            figures = []
            module = importlib.import_module(f'osmabench_ros.reports.plots.{name}')
            monkeypatch.setattr(
                module, 'inline_svg', lambda figure, *_, f=figures: f.append(figure)
            )
            plot(given)
            marks = [
                line
                for axes in figures[0].axes
                for line in axes.lines
                if line.get_color() == color and line.get_marker() not in ('', 'None')
            ]
            assert bool(marks) == ('points' in drawn), name


def test_a_method_keeps_its_colour_in_every_report():
    bundled = [item.name for item in entry_points(group='osmabench.mappers')]
    alone = {name: method_colors([name])[name] for name in bundled}
    others = ['mine', 'ours', 'theirs']
    assert alone == {name: method_colors([name])[name] for name in reversed(bundled)}
    mapping = [name for name in bundled if not name.startswith('offline')]
    assert len({alone[name] for name in mapping}) == len(mapping) == 6
    assert {name: method_colors(mapping)[name] for name in mapping} == {
        name: alone[name] for name in mapping
    }
    for names in itertools.permutations(others):
        assert method_colors(names) == method_colors(others)
        assert len(set(method_colors(names).values())) == 3
    assert set(method_colors([*others, *bundled])) == {*others, *bundled}


@pytest.mark.parametrize('count', [3, 5, 10])
def test_names_of_conditions_and_numbers_do_not_collide(runs: list[Run], count, monkeypatch):
    many = [
        Run(
            replace(run.plan, identity=replace(run.plan.identity, condition=f'condition {i}')),
            run.report,
        )
        for run in runs[:2]
        for i in range(count)
    ]
    for axes in figures_drawn(many, monkeypatch).axes:
        names = axes.get_xticklabels()
        level = [name for name in names if not name.get_rotation()]
        assert len(level) in (0, len(names))
        # Turned names are as far from each other as a line is high.
        places = [name.get_window_extent() for name in level]
        assert all(a.x1 <= b.x0 for a, b in itertools.pairwise(places))
        numbers = sorted((t.get_window_extent() for t in axes.texts), key=lambda box: box.x0)
        assert all(a.x1 <= b.x0 + 1 for a, b in itertools.pairwise(numbers))
