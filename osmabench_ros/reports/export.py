"""Tables, charts and references of a matrix for a paper."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from osmabench_ros.base.files import MARKER, Existing, atomic_directory
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.reports import tidy
from osmabench_ros.reports.comparison import build_comparison_view
from osmabench_ros.reports.content import read_dialogue, skip_pictures
from osmabench_ros.reports.matrix import with_common_accuracies
from osmabench_ros.reports.matrix_charts import draw_matrix_charts
from osmabench_ros.reports.tidy import NOT_APPLICABLE, Run, select_table_headlines
from osmabench_ros.reports.vega import write_images
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk

BIBLIOGRAPHY = Path(__file__).parent / 'references.bib'
_USED_BY = '% used by:'
TABLE, CHARTS, REFERENCES = 'headline', 'figures', 'references.bib'


# Signs that Markdown and LaTeX would take for markup.
_MARKDOWN = str.maketrans({sign: f'\\{sign}' for sign in '\\|*_<>[]`'})
_LATEX = str.maketrans({
    **{sign: f'\\{sign}' for sign in '&%$#_{}'},
    '\\': r'\textbackslash{}', '~': r'\textasciitilde{}', '^': r'\textasciicircum{}',
    '<': r'\textless{}', '>': r'\textgreater{}', NOT_APPLICABLE: '--',
})  # fmt: skip


@dataclass(frozen=True)
class PaperTable:
    """A table of texts, and which of its cells are in bold."""

    caption: str
    cells: pd.DataFrame
    bold: pd.DataFrame

    def write_markdown(self) -> str:
        """Return the table for Markdown."""
        cells = self._escape_cells(_MARKDOWN, '**{}**')
        rule = ['---'] * cells.index.nlevels + ['---:'] * len(cells.columns)
        lines = [[*cells.index.names, *cells.columns], rule, *cells.reset_index().to_numpy()]
        table = ''.join(f'| {" | ".join(line)} |\n' for line in lines)
        return f'{table}\n{self.caption.translate(_MARKDOWN)}\n'

    def write_latex(self) -> str:
        """Return the table for LaTeX with the package booktabs."""
        cells = self._escape_cells(_LATEX, r'\textbf{{{}}}').reset_index()
        words = self.cells.index.nlevels
        styled = cells.style.hide(axis='index')
        text = styled.to_latex(
            column_format='l' * words + 'r' * (len(cells.columns) - words),
            caption=self.caption.translate(_LATEX),
            position_float='centering',
            hrules=True,
        )
        return f'% \\usepackage{{booktabs}}\n{text}'

    def _escape_cells(self, signs: dict[int, str], bold: str) -> pd.DataFrame:
        cells = self.cells.map(lambda text: text.translate(signs))
        cells = cells.where(~self.bold, cells.map(bold.format))
        cells.columns = [name.translate(signs) for name in cells.columns]
        rows = [[text.translate(signs) for text in row] for row in cells.index]
        names = [name.translate(signs) for name in cells.index.names]
        return cells.set_axis(pd.MultiIndex.from_tuples(rows, names=names))


def read_runs(matrix: MatrixOnDisk) -> list[Run]:
    """Return the runs of a folder that have a report."""
    reports = [report for run in matrix.runs() if (report := matrix.report(run)) is not None]
    common = with_common_accuracies(reports)
    found = [Run(matrix.plan(report.run_id), report) for report in common]
    return [run for run in found if not run.failed]


def export_matrix(matrix: MatrixOnDisk, out: Path, suites: Sequence[str] = ()) -> list[Path]:
    """Write tables, charts and references of the runs of a folder that have a report.

    The tables show the headline metrics and all `suites`, by default every one that was run.
    They replace files of the same names of an earlier export; others stay.
    Raises ConfigError if a suite was not run, or no run has a report yet.
    """
    runs = read_runs(matrix)
    if not runs:
        raise ConfigError(f'no run in {matrix.root} has a report yet; osmabench status says why')
    known = tidy.list_distinct(record.suite for run in runs for record in run.report.metrics)
    for name in suites:
        choose(name, known, ConfigError, f'no run in {matrix.root} has suite "{name}"')
    with atomic_directory(out, Existing.MERGE) as folder:
        tables = {TABLE: build_headline_paper_table(runs)}
        tables |= {name: build_suite_paper_table(runs, name) for name in suites or known}
        for name, table in tables.items():
            (folder / f'{name}.md').write_text(table.write_markdown(), encoding='utf-8')
            (folder / f'{name}.tex').write_text(table.write_latex(), encoding='utf-8')
        (folder / REFERENCES).write_text(collect_bibliography(runs), encoding='utf-8')
        (folder / CHARTS).mkdir()
        dialogues = {run.report.run_id: read_dialogue(run.plan.directory) for run in runs}
        comparison = build_comparison_view(runs, skip_pictures(runs, dialogues))
        write_images(draw_matrix_charts(runs, comparison.conditions, dialogues), folder / CHARTS)
        files = (item for item in folder.rglob('*') if item.is_file() and item.name != MARKER)
        written = [item.relative_to(folder) for item in files]
    return [out / item for item in sorted(written)]


def _count_scenes(runs: Sequence[Run]) -> str:
    count = len({run.plan.identity.scene_key for run in runs})
    return f'{count} scene{"" if count == 1 else "s"}'


def build_headline_paper_table(runs: Sequence[Run]) -> PaperTable:
    """Return the means over scenes, a row per condition and method; the best of each are bold.

    References are given the ground truth: they bear a mark, and are never the best.
    """
    columns = select_table_headlines(run.report.metrics for run in runs)
    by = ['headline', 'condition']
    number = {item.title: item.format_value for item in columns}
    found = tidy.compute_means(tidy.select_headline_scores(runs, columns), [*by, 'mapper'])
    found['bold'] = tidy.mark_best_values(found, by)
    found['text'] = [number[row.headline](row.value) for row in found.itertuples()]
    marks = found['reference'].map({True: ' (reference)', False: ''})
    found['method'] = found['mapper'].astype(str) + marks
    units = ', '.join(item.title for item in columns if item.percent)
    caption = f'{runs[0].plan.config.name}: means over {_count_scenes(runs)}.'
    caption += f' In percent: {units}.' if units else ''
    return _build_paper_table(caption, found, ['condition', 'method'], 'headline')


def build_suite_paper_table(runs: Sequence[Run], suite: str) -> PaperTable:
    """Return every metric over all classes of a suite, a row per metric, a column per method."""
    scores = tidy.build_score_table(runs)
    own = scores[(scores['suite'] == suite) & (scores['class_name'] == '')]
    keys = own[['metric', 'mode']].drop_duplicates()
    means = tidy.compute_means(own, ['metric', 'mode', 'condition', 'mapper'])
    found = keys.merge(means, how='left')
    found['bold'] = False
    found['text'] = found['value'].map('{:.4g}'.format, na_action='ignore')
    found['method'] = [f'{row.mapper}, {row.condition}' for row in found.itertuples()]
    caption = f'{suite}: means over {_count_scenes(runs)}.'
    return _build_paper_table(caption, found, ['metric', 'mode'], 'method')


def _build_paper_table(
    caption: str, found: pd.DataFrame, rows: list[str], columns: str
) -> PaperTable:
    cells = found.set_index([*rows, columns])[['text', 'bold']].astype(object)
    # pandas 2 mixes up values where it unstacks without sorting.
    order = cells.index.droplevel(columns).unique(), cells.index.unique(columns)
    text, bold = (
        cells[name].unstack(columns).reindex(index=order[0], columns=order[1])
        for name in ('text', 'bold')
    )
    text = text.fillna(NOT_APPLICABLE)
    bold = bold.eq(True)
    return PaperTable(caption, text.rename_axis(columns=None), bold.rename_axis(columns=None))


def collect_bibliography(runs: Sequence[Run]) -> str:
    """Return BibTeX of the suites, methods and data sets of runs, and the names without entry."""
    suites = tidy.list_distinct(item.suite for run in runs for item in run.report.metrics)
    used = [f'suite {name}' for name in suites]
    used += [f'mapper {run.plan.mapper.bundled or run.mapper}' for run in runs]
    used += [f'dataset {run.plan.identity.scene_key.dataset}' for run in runs]
    wanted = dict.fromkeys(used)
    entries = []
    for entry, names in _read_entries():
        if 'osmabench' in names or wanted.keys() & names:
            entries.append(entry)
        for name in names:
            wanted.pop(name, None)
    without = ''.join(f'% no reference is known for {name}\n' for name in wanted)
    return '\n'.join([*entries, without]) if without else '\n'.join(entries)


def _read_entries() -> Iterator[tuple[str, set[str]]]:
    """Yield the entries that come with the package, and what uses them."""
    for part in BIBLIOGRAPHY.read_text(encoding='utf-8').split(_USED_BY)[1:]:
        names, _, entry = part.partition('\n')
        yield entry.strip() + '\n', {name.strip() for name in names.split(',')}
