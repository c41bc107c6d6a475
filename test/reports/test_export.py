"""`osmabench export`: what a paper takes of a matrix."""

import re
import xml.etree.ElementTree as ElementTree

import pandas as pd
import pytest
from support.commands import osmabench
from support.world.matrix import changed_run

from osmabench_ros.errors import ConfigError
from osmabench_ros.reports import export


@pytest.fixture(scope='module')
def out(left, tmp_path_factory):
    folder = tmp_path_factory.mktemp('paper') / 'files'
    printed = osmabench('export', left.root, '--to', folder).output
    files = sorted(item for item in folder.rglob('*') if item.is_file())
    assert printed.split() == [str(file) for file in files if file.name[0] != '.']
    return folder


def test_the_tables_hold_the_figures_of_the_runs(out, left):
    [_, _, *rows] = [
        [cell.strip() for cell in line.split('|')[1:-1]]
        for line in (out / 'headline.md').read_text().splitlines()
        if line.startswith('|')
    ]
    runs = export.read_runs(left)
    assert [row[:2] for row in rows] == [
        [run.condition, f'{run.mapper} (reference)'.replace('_', r'\_')] for run in runs
    ]
    macc = [run.records['osma_segmentation', 'strict', 'macc', ''].value for run in runs]
    assert [row[2] for row in rows] == [f'{100 * value:.1f}' for value in macc]
    suite = (out / 'osma_segmentation.md').read_text()
    assert f'| macc | strict | {" | ".join(f"{value:.4g}" for value in macc)} |' in suite


def test_the_best_method_of_a_condition_is_bold_and_no_reference_is(left):
    runs = export.read_runs(left)
    assert not export.build_headline_paper_table(runs).bold.to_numpy().any()
    table = export.build_headline_paper_table([changed_run(run, method=True) for run in runs])
    assert table.bold['mAcc'].tolist() == [True, False, True, False]
    assert '**' in table.write_markdown()
    assert r'\textbf{' in table.write_latex()


def test_what_is_special_to_latex_and_markdown_is_escaped():
    index = pd.MultiIndex.from_tuples([(r'a\b{c}',)], names=['x & y'])
    cells = pd.DataFrame({'50 %': ['1 | 2']}, index)
    table = export.PaperTable('a_b', cells, cells == '')
    assert r'x \& y & 50 \% \\' in table.write_latex()
    assert r'a\textbackslash{}b\{c\} & 1 | 2 \\' in table.write_latex()
    assert r'| a\\b{c} | 1 \| 2 |' in table.write_markdown()


def test_figures_have_the_light_colours_of_the_page(out):
    names = {file.stem for file in (out / 'figures').iterdir()}
    assert names == {'conditions', 'changes', 'classes', 'questions', 'robustness'}
    for name in names:
        text = (out / 'figures' / f'{name}.svg').read_text()
        ElementTree.fromstring(text)
        assert 'var(--' not in text
        assert '#161b26' in text  # --ink
        assert (out / 'figures' / f'{name}.pdf').read_bytes().startswith(b'%PDF-')
        assert (out / 'figures' / f'{name}.png').read_bytes().startswith(b'\x89PNG')


def test_the_references_are_those_of_what_was_used(out):
    text = (out / 'references.bib').read_text()
    assert re.findall(r'^@\w+\{(\w+),', text, re.MULTILINE) == ['popov2025osmabench']
    assert text.count('{') == text.count('}')
    assert '% no reference is known for dataset boxes\n' in text


@pytest.mark.full
def test_a_suite_that_was_not_run_is_refused(left, tmp_path):
    with pytest.raises(ConfigError, match='has suite "osma".*osma_segmentation'):
        export.export_matrix(left, tmp_path / 'out', ['osma'])
    assert not (tmp_path / 'out').exists()
    files = export.export_matrix(left, tmp_path / 'out', ['exact_questions'])
    assert {file.stem for file in files if file.suffix == '.tex'} == {
        'headline',
        'exact_questions',
    }
    (tmp_path / 'out' / 'mine.txt').write_text('mine')
    export.export_matrix(left, tmp_path / 'out', ['osma_segmentation'])
    assert (tmp_path / 'out' / 'osma_segmentation.tex').exists()
    assert (tmp_path / 'out' / 'mine.txt').read_text() == 'mine'
