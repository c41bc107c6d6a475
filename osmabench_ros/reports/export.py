"""Tables, figures and references of a matrix for a paper."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.files import MARKER, Existing, atomic_directory
from osmabench_ros.errors import ConfigError, choose
from osmabench_ros.reports.charts.chart import Specification, write_images
from osmabench_ros.reports.comparison import comparison_view
from osmabench_ros.reports.content import without_pictures
from osmabench_ros.reports.headline import NOT_APPLICABLE, Headline, table_headlines
from osmabench_ros.reports.matrix import with_common_accuracies
from osmabench_ros.reports.page.headline_table import higher_is_better
from osmabench_ros.reports.page.page import matrix_charts
from osmabench_ros.reports.question_data import read_dialogue
from osmabench_ros.reports.report_run import Run, distinct, estimate
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk

BIBLIOGRAPHY = Path(__file__).parent / 'references.bib'
_USED_BY = '% used by:'
TABLE, FIGURES, REFERENCES = 'headline', 'figures', 'references.bib'


@dataclass(frozen=True)
class PaperTable:
    """A table as text; `best` are row and column of the cells in bold."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    words: int
    """Columns from the left that hold words; the others hold numbers."""
    best: frozenset[tuple[int, int]] = frozenset()

    def markdown(self) -> str:
        """Return the table for Markdown."""
        rule = ['---'] * self.words + ['---:'] * (len(self.columns) - self.words)
        rows = self._marked(_in_markdown, '**{}**')
        lines = [list(map(_in_markdown, self.columns)), rule, *rows]
        table = ''.join(f'| {" | ".join(line)} |\n' for line in lines)
        return f'{table}\n{_in_markdown(self.caption)}\n'

    def latex(self) -> str:
        """Return the table for LaTeX with the package booktabs."""
        kinds = 'l' * self.words + 'r' * (len(self.columns) - self.words)
        rows = self._marked(_in_latex, r'\textbf{{{}}}')
        head, *body = (
            f'{" & ".join(line)} \\\\' for line in [map(_in_latex, self.columns), *rows]
        )
        return '\n'.join(
            [
                r'% \usepackage{booktabs}',
                r'\begin{table}',
                r'\centering',
                rf'\caption{{{_in_latex(self.caption)}}}',
                rf'\begin{{tabular}}{{{kinds}}}',
                r'\toprule',
                head,
                r'\midrule',
                *body,
                r'\bottomrule',
                r'\end{tabular}',
                r'\end{table}',
                '',
            ]
        )

    def _marked(self, escaped: Callable[[str], str], bold: str) -> list[list[str]]:
        return [
            [
                bold.format(escaped(text)) if (y, x) in self.best else escaped(text)
                for x, text in enumerate(row)
            ]
            for y, row in enumerate(self.rows)
        ]


_OF_LATEX = {
    **{sign: f'\\{sign}' for sign in '&%$#_{}'},
    '\\': r'\textbackslash{}',
    '~': r'\textasciitilde{}',
    '^': r'\textasciicircum{}',
    NOT_APPLICABLE: '--',
    '<': r'\textless{}',
    '>': r'\textgreater{}',
}


def _in_latex(text: str) -> str:
    return ''.join(_OF_LATEX.get(sign, sign) for sign in text)


def _in_markdown(text: str) -> str:
    return ''.join(f'\\{sign}' if sign in '\\|*_<>[]`' else sign for sign in text)


def read_runs(matrix: MatrixOnDisk) -> list[Run]:
    """Return the runs of a folder that have figures."""
    there = [run for run in matrix.runs() if matrix.has_report(run)]
    reports = [report for run in there if (report := matrix.report(run)) is not None]
    reports = list(with_common_accuracies(reports))
    found = [Run(matrix.plan(report.run_id), report) for report in reports]
    return [run for run in found if not run.failed]


def export_matrix(matrix: MatrixOnDisk, out: Path, suites: Sequence[str] = ()) -> list[Path]:
    """Write tables, figures and references of the runs of a folder that have figures.

    Tables are of the headline figures and of all `suites`, by default of every one that was run.
    They replace files of the same names of an earlier export; others stay.
    Raises ConfigError if a suite was not run, or no run has figures yet.
    """
    runs = read_runs(matrix)
    if not runs:
        raise ConfigError(f'no run in {matrix.root} has figures yet; osmabench status says why')
    known = distinct(record.suite for run in runs for record in run.report.metrics)
    for name in suites:
        choose(name, known, ConfigError, f'no run in {matrix.root} has suite "{name}"')
    with atomic_directory(out, Existing.MERGE) as folder:
        tables = {TABLE: headline_paper_table(runs)}
        tables |= {name: suite_paper_table(runs, name) for name in suites or known}
        for name, table in tables.items():
            (folder / f'{name}.md').write_text(table.markdown(), encoding='utf-8')
            (folder / f'{name}.tex').write_text(table.latex(), encoding='utf-8')
        (folder / REFERENCES).write_text(bibliography(runs), encoding='utf-8')
        (folder / FIGURES).mkdir()
        write_images(_charts(runs), folder / FIGURES)
        files = (item for item in folder.rglob('*') if item.is_file() and item.name != MARKER)
        written = [item.relative_to(folder) for item in files]
    return [out / item for item in sorted(written)]


def _groups(runs: Sequence[Run]) -> list[tuple[str, str]]:
    return list(dict.fromkeys((run.condition, run.mapper) for run in runs))


def _scenes(runs: Sequence[Run]) -> str:
    count = len({run.plan.identity.scene_key for run in runs})
    return f'{count} scene{"" if count == 1 else "s"}'


def headline_paper_table(runs: Sequence[Run]) -> PaperTable:
    """Return the means over scenes, a row a condition and method; the best of each condition bold.

    References are given the truth: they bear a mark, and are never the best.
    """
    headlines = table_headlines(run.report.metrics for run in runs)
    references, groups = {run.mapper for run in runs if run.is_reference}, _groups(runs)
    values = {
        (y, x): found.value
        for y, (condition, mapper) in enumerate(groups)
        for x, headline in enumerate(headlines)
        if (found := estimate(runs, mapper, condition, headline)) is not None
    }
    rows = tuple(
        (
            condition,
            f'{mapper} (reference)' if mapper in references else mapper,
            *(_number(headline, values.get((y, x))) for x, headline in enumerate(headlines)),
        )
        for y, (condition, mapper) in enumerate(groups)
    )
    best = set()
    for x, headline in enumerate(headlines):
        sign = 1 if higher_is_better(runs, headline) else -1
        for condition in distinct(name for name, _ in groups):
            own = {
                y: sign * values[y, x]
                for y, group in enumerate(groups)
                if group[0] == condition and group[1] not in references and (y, x) in values
            }
            if len(own) > 1 and not headline.is_baseline:
                best |= {(y, x + 2) for y, value in own.items() if value == max(own.values())}
    units = ', '.join(item.title for item in headlines if item.percent)
    caption = f'{runs[0].plan.config.name}: means over {_scenes(runs)}.'
    caption += f' In percent: {units}.' if units else ''
    columns = ('condition', 'method', *(item.title for item in headlines))
    return PaperTable(caption, columns, rows, 2, frozenset(best))


def _number(headline: Headline, value: float | None) -> str:
    return NOT_APPLICABLE if value is None else headline.number(value)


def suite_paper_table(runs: Sequence[Run], suite: str) -> PaperTable:
    """Return every figure over all classes of a suite, a row a figure, a column a method."""
    keys = dict.fromkeys(
        (record.mode, record.metric)
        for run in runs
        for record in run.report.metrics
        if record.suite == suite and not record.class_name
    )
    groups = _groups(runs)
    rows = []
    for mode, metric in keys:
        headline = Headline(metric, suite, metric, mode, percent=False)
        found = [estimate(runs, mapper, condition, headline) for condition, mapper in groups]
        cells = (NOT_APPLICABLE if item is None else f'{item.value:.4g}' for item in found)
        rows.append((metric, mode or '', *cells))
    titles = (f'{mapper}, {condition}' for condition, mapper in groups)
    caption = f'{suite}: means over {_scenes(runs)}.'
    return PaperTable(caption, ('figure', 'mode', *titles), tuple(rows), 2)


def _charts(runs: Sequence[Run]) -> dict[str, Specification]:
    dialogues = {run.report.run_id: read_dialogue(run.plan.directory) for run in runs}
    comparison = comparison_view(runs, without_pictures(runs, dialogues))
    found = matrix_charts(runs, dialogues, comparison)
    return {name: chart for name, chart in found.items() if chart is not None}


def bibliography(runs: Sequence[Run]) -> str:
    """Return BibTeX of the suites, methods and data sets of runs, and what has no entry."""
    used = [
        *(f'suite {name}' for name in distinct(x.suite for r in runs for x in r.report.metrics)),
        *(f'mapper {run.plan.mapper.bundled or run.mapper}' for run in runs),
        *(f'dataset {run.plan.identity.scene_key.dataset}' for run in runs),
    ]
    wanted = dict.fromkeys(used)
    entries = []
    for entry, names in _entries():
        if 'osmabench' in names or wanted.keys() & names:
            entries.append(entry)
        for name in names:
            wanted.pop(name, None)
    without = ''.join(f'% no reference is known for {name}\n' for name in wanted)
    return '\n'.join([*entries, without]) if without else '\n'.join(entries)


def _entries() -> Iterator[tuple[str, set[str]]]:
    """Yield the entries that come with the package, and what uses them."""
    for part in BIBLIOGRAPHY.read_text(encoding='utf-8').split(_USED_BY)[1:]:
        names, _, entry = part.partition('\n')
        yield entry.strip() + '\n', {name.strip() for name in names.split(',')}
