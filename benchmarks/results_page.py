"""Run config/results/*.yaml and write docs/results.md from their reports: `make results`.

An interrupted matrix resumes. Only complete matrices are on the page; a part without runs here is
kept as it was. --write-only runs nothing.
"""

import argparse
import math
import signal
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from osmabench_ros.base.documents import read_json, read_yaml
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.offline_method import load_method, variables_of
from osmabench_ros.metrics.statistics import LEAST_UNITS, jackknife_interval
from osmabench_ros.reports.page.tables import build_machine_rows
from osmabench_ros.reports.tidy import (
    NOT_APPLICABLE,
    Headline,
    Run,
    compute_means,
    list_distinct,
    read_headlines,
    select_headline_scores,
)
from osmabench_ros.runs.config import MatrixConfig, load_config
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk
from osmabench_ros.runs.report_model import Status
from osmabench_ros.runs.run_manifest import MANIFEST
from osmabench_ros.runs.timings import TIMINGS, read_measurements
from osmabench_ros.vqa.question_files import QUESTIONS, read_records
from osmabench_ros.vqa.questions import Question

INTERRUPTED = 128 + signal.SIGINT
_LEFT_OUT = ('accuracy_of_common', 'accuracy_macro')
FIGURES = (
    *(
        item
        for item in read_headlines()
        if not item.is_baseline and item.metric not in _LEFT_OUT and item.mode != 'compat'
    ),
    Headline(
        'ATE after alignment (m)', 'map_trajectory', 'aligned_ape_translation_rmse_m',
        explanation='The same after the best rigid motion of the whole path.', percent=False,
    ),
    Headline(
        'F-score 5 cm after alignment', 'map_trajectory', 'aligned_f_score_0.05m',
        explanation='F-score of the map, moved by that motion.',
    ),
)  # fmt: skip

INTRODUCTION = """# Results

`make results` writes this page from the reports of the runs, and resumes where it was interrupted.
A cell is the mean over scenes, with its 95 % t interval ([statistics](statistics.md)) where there
are three or more; a mean over fewer scenes than the others has their number in parentheses.
References use ground truth and do not compete.
"""

# Begins the line that names the version of a part's questions.
NOTED = 'Questions: '

# Assumed times of a run on two cores: constant, and per frame, until one has been timed.
RUN_S, FRAME_S = 15.0, 0.15

# Between two reports; a longer one is an interruption.
LONGEST_GAP_S = 3600.0


# Parts of benchmarks/gpu.py, with a remark on their rows.
GPU_TITLES = {
    'metrics': 'the same answers as the published way on both',
    'renderer': 'Mesa on the CPU and the driver of the GPU, all four images',
    'open_vocabulary': 'networks of published sizes with random weights, a frame of 640 x 480; '
    '32 bits on the CPU, 16 on the GPU',
}


class PublishedRow(Strict):
    """A metric of a method in a paper, by condition, in percent."""

    method: str
    data: str
    figure: str
    values: tuple[float | None, ...]


class Published(Strict):
    """A table of a paper."""

    title: str
    source: str
    says: str
    conditions: tuple[str, ...]
    rows: tuple[PublishedRow, ...]


@dataclass(frozen=True)
class Matrix:
    """A configuration, its file, and the folder of its runs."""

    file: Path
    config: MatrixConfig
    out: Path

    @property
    def root(self) -> Path:
        """Folder of its runs."""
        return self.out / self.config.name

    @property
    def absent(self) -> str:
        """The first scene or method that is missing here, as a reason; '' if none is."""
        references = [Path(item.reference) for item in self.config.scenes]
        files = [path for path in references if path.suffix and not path.exists()]
        if files:
            return f'{files[0]} is not here'
        for mapper in self.config.mappers:
            if (mapper.implementation or mapper.name).startswith('offline'):
                method = load_method(mapper.options['method'])
                try:
                    variables_of(method, mapper.options.get('variables', {}))
                except ConfigError as error:
                    return str(error)
        return ''

    @property
    def planned(self) -> int:
        """How many runs it has."""
        seeds, config = self.config.seeds, self.config
        lists = config.seeded_scenes, config.conditions, config.mappers, seeds.method or (0,)
        return math.prod(len(item) for item in lists)

    @property
    def command(self) -> str:
        """The command that makes its rows."""
        return f'osmabench run {self.file.as_posix()} --out runs/results'

    def done(self) -> list[Run]:
        """Return the runs that have figures or failed."""
        if not (self.root / MANIFEST).exists():
            return []
        disk = MatrixOnDisk(self.root)
        if disk.config != self.config:
            raise ConfigError(
                f'{self.root} is of an earlier {self.file}; remove it, or name another --out'
            )
        reports = [(run, disk.report(run, ())) for run in disk.runs() if run.has_report]
        return [
            Run(disk.plan(run.run_id), report) for run, report in reports if report is not None
        ]

    @property
    def is_finished(self) -> bool:
        """Whether each run has a report or an error."""
        return len(self.done()) == self.planned

    def expected_s(self) -> float:
        """Return what the rest may take, by the median time of the runs that are done."""
        files = self.root.glob(f'*/{TIMINGS}') if self.root.exists() else ()
        ends = sorted(file.stat().st_mtime for file in files)
        gaps = [after - before for before, after in pairwise(ends)]
        gaps = [gap for gap in gaps if 0 < gap < LONGEST_GAP_S]
        each = RUN_S + FRAME_S * self.config.trajectory.max_frames
        return (self.planned - len(ends)) * (statistics.median(gaps) if gaps else each)


def cells_of(runs: Sequence[Run], figure: Headline, scenes: int) -> dict[tuple[str, str], str]:
    """Return means over scenes by method and condition, with 95 % intervals from three on.

    A mean over another number of scenes than `scenes` has that number.
    """
    found = compute_means(select_headline_scores(runs, [figure]), ['mapper', 'condition'])
    cells = {}
    for row in found.itertuples():
        text, units = figure.format_value(row.value), len(row.units)
        if units >= LEAST_UNITS:
            # The accuracy above the floor is below 0 for answers that are worse.
            share = figure.percent and min(row.units) >= 0
            over = jackknife_interval(row.units, share=share)
            text += f' [{figure.format_value(over.low)}, {figure.format_value(over.high)}]'
        cells[row.mapper, row.condition] = text if units == scenes else f'{text} ({units})'
    return cells


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Yield the lines of a table in Markdown."""
    yield from (f'| {" | ".join(head)} |', f'|{"---|" * len(head)}')
    yield from (f'| {" | ".join(row)} |' for row in rows)
    yield ''


def figures_of(runs: Sequence[Run], conditions: Sequence[str], scenes: int) -> Iterator[str]:
    """Yield a table for each figure that some run has: methods by conditions."""
    mappers = list_distinct(run.mapper for run in runs)
    truth = {run.mapper for run in runs if run.is_reference}
    for figure in FIGURES:
        found = cells_of(runs, figure, scenes)
        rows = {
            mapper: [found.get((mapper, condition), NOT_APPLICABLE) for condition in conditions]
            for mapper in mappers
        }
        filled = {name: cells for name, cells in rows.items() if set(cells) != {NOT_APPLICABLE}}
        if not filled:
            continue
        unit = ', %' if figure.percent else ''
        yield from (f'**{figure.title}{unit}**', '')
        yield from table(
            ['method', *conditions],
            ([f'{name} (reference)' if name in truth else name, *cells]
             for name, cells in filled.items()),
        )  # fmt: skip


def explain_metrics(parts: str) -> Iterator[str]:
    """Yield the meaning of each metric that has a table in the parts of the page."""
    titles = {line.strip('*').removesuffix(', %') for line in parts.splitlines()}
    shown = [(item.title, item.explanation) for item in FIGURES if item.title in titles]
    yield from table(['metric', 'meaning'], shown)
    yield ''


def cost_of(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what mapping took, by method: medians of rate and last map, and the largest memory."""
    rows = []
    for mapper in list_distinct(run.mapper for run in runs):
        own = [run.plan.directory / TIMINGS for run in runs if run.mapper == mapper]
        timed = [item for file in own if (item := read_measurements(file)) is not None]
        rates = [
            item.mapping.mapped / item.mapping_s
            for item in timed
            if item.mapping.mapped and item.mapping_s
        ]
        last = [item.final_map_s for item in timed if item.final_map_s is not None]
        memory = [item.peak_memory_bytes.get(item.mapper, 0) for item in timed]
        if rates:
            peak = f'{max(memory) / 2**20:.0f}'
            final = f'{statistics.median(last):.1f}' if last else NOT_APPLICABLE
            rate = f'{statistics.median(rates):.2f}'
            rows.append([mapper, str(len(rates)), rate, final, peak])
    yield from (
        '**Cost of mapping**, medians over runs and the largest memory; offline programs map '
        'after the last frame.',
        '',
    )
    yield from table(
        [
            'method',
            'runs',
            'frames per second',
            'from the last frame to the map, s',
            'peak memory of the mapper, MiB',
        ],
        rows,
    )


def remarks_of(runs: Sequence[Run]) -> Iterator[str]:
    """Yield what reports remark, such as lost track, and why runs failed."""
    lines = [
        f'- `{run.report.run_id}`: {text}'
        for run in runs
        for text in (*run.report.remarks, *run.report.error.splitlines()[:1])
    ]
    if lines:
        yield from ('Remarks of the runs:', '', *lines, '')


def earlier_section(page: str, title: str) -> str:
    """Return what an earlier page has under a title, '' if nothing had been run."""
    body = page.partition(f'\n{title}\n')[2].partition('\n## ')[0].strip('\n')
    return '' if body.startswith('Not run') else body


def question_sets(runs: Sequence[Run]) -> list[str]:
    """Return by which generators the exact questions of runs were made."""
    found = set()
    for run in runs:
        file = run.plan.directory / 'vqa' / QUESTIONS
        for question in read_records(file, Question) if file.exists() else ():
            if (made := question.provenance.get('generator', '')).startswith('exact/'):
                found.add(made)
                break
    return sorted(found)


def section(matrix: Matrix, earlier: str = '') -> Iterator[str]:
    """Yield what is known of one matrix; what an earlier page says, if its runs are not here."""
    runs = matrix.done() if matrix.is_finished else []
    title = f'## {matrix.config.name.removeprefix("results_").replace("_", " ").capitalize()}'
    yield from (title, '')
    if not runs:
        why = matrix.absent or 'its runs are not done'
        kept = earlier_section(earlier, title)
        yield from (kept or f'Not run: {why}. `{matrix.command}`', '')
        return
    scored = [run for run in runs if run.report.status is Status.COMPLETE]
    camera, path = matrix.config.camera, matrix.config.trajectory
    scenes = len({run.scene for run in runs})
    yield from (
        f'{len(scored)} of {matrix.planned} runs are complete, {len(runs) - len(scored)} failed, '
        f'in {scenes} scene{"s" * (scenes > 1)}. '
        f'Images of {camera.width}x{camera.height}, {path.frame_rate_hz:g} frames per second of '
        f'stamp time, at most {path.max_frames} frames. To make every row:',
        '',
        f'    {matrix.command}',
        '',
    )
    if sets := question_sets(scored):
        yield from (f'{NOTED}{" and ".join(f"`{item}`" for item in sets)}.', '')
    yield from figures_of(scored, list_distinct(run.condition for run in scored), scenes)
    yield from cost_of(scored)
    yield from remarks_of(runs)
    disk = MatrixOnDisk(matrix.root)
    versions = {name: ' or '.join(sorted(found)) for name, found in disk.versions.items()}
    named = [name for name in ('osmabench_ros', 'numpy', 'torch') if name in versions]
    known = [f'{name} {versions[name]}' for name in named]
    machine = [f'{name}: {text}' for name, text in build_machine_rows(scored)]
    at_once = {
        item.runs_at_once
        for run in scored
        if (item := read_measurements(run.plan.directory / TIMINGS)) is not None
    }
    shared = f'{max(at_once, default=1)} run{"s" * (max(at_once, default=1) > 1)} at once'
    yield from ('; '.join([*machine, shared, ', '.join(known)]), '')


def gpu_section(file: Path) -> Iterator[str]:
    """Yield what a GPU gives, as benchmarks/gpu.py measured it; nothing without its file."""
    if not file.exists():
        return
    measured = read_json(file, ConfigError)
    host, results = measured['host'], measured['results']
    yield from ('## GPU and CPU', '', 'Both are measured in one run of each part:', '')
    yield from ('    python benchmarks/gpu.py', '')
    for part, remark in GPU_TITLES.items():
        rows = [item for item in results if item['part'] == part and item['gpu_s']]
        yield from (f'**{part}**, seconds: {remark}.', '')
        yield from table(
            ['work', 'CPU', 'GPU', 'ratio', 'results'],
            (
                [item['work'], f'{item["cpu_s"]:.3g}', f'{item["gpu_s"]:.3g}',
                 f'{item["ratio"]:.1f}', item['alike'] or NOT_APPLICABLE]
                for item in rows
            ),
        )  # fmt: skip
    yield (
        f'CPU: {host["cpu"]}, {host["cores"]} cores; GPU: {", ".join(host["gpus"])}; '
        f'{host["os"]}; torch {host["torch"]}'
    )
    yield ''


def published(tables: Iterable[Published]) -> Iterator[str]:
    """Yield the tables of papers."""
    yield from ('## Published', '', 'Not run here.', '')
    for item in tables:
        yield from (f'**[{item.title}]({item.source}).** {item.says.strip()}', '')
        yield from table(
            ['method', 'data', 'metric, %', *item.conditions],
            ([row.method, row.data, row.figure,
              *(NOT_APPLICABLE if value is None else f'{value:.2f}' for value in row.values)]
             for row in item.rows),
        )  # fmt: skip


def page(
    matrices: Sequence[Matrix], papers: Sequence[Published], note: str, earlier: str = ''
) -> str:
    """Return the whole page; `earlier` is the one that it takes the place of."""
    parts = [line for matrix in matrices for line in section(matrix, earlier)]
    lines = [
        INTRODUCTION,
        *((note, '') if note else ()),
        *explain_metrics('\n'.join(parts)),
        *parts,
    ]
    lines += gpu_section(Path(__file__).with_name('gpu.json'))
    return '\n'.join([*lines, *published(papers)]).rstrip() + '\n'


def write_page(file: Path, text: str) -> None:
    """Write the page over an earlier one; raises ConfigError if the file is anything else."""
    beginning = INTRODUCTION.partition(' out of')[0]
    if file.exists() and not file.read_text(encoding='utf-8').startswith(beginning):
        raise ConfigError(f'{file} is not a page of results; name another --page')
    # The page is tracked by git: no list of what is ours belongs next to it.
    file.write_text(text, encoding='utf-8')


def read_published(file: Path) -> list[Published]:
    """Read tables of papers; raises ConfigError if a row has not a value for each condition."""
    found = [
        validated(Published, item, f'{file}, table {place}')
        for place, item in enumerate(read_yaml(file, ConfigError))
    ]
    for item in found:
        for row in item.rows:
            if len(row.values) != len(item.conditions):
                raise ConfigError(
                    f'{file}: {row.method}, {row.data}, {row.figure} has {len(row.values)} values '
                    f'for {len(item.conditions)} conditions'
                )
    return found


def run_all(matrices: Sequence[Matrix]) -> int:
    """Run what is left of all matrices; return how many commands failed.

    Ctrl-C reaches the command that runs, which ends in order; the others are left out.
    """
    failed = 0
    for matrix in matrices:
        if matrix.absent:
            continue
        command = ['run', str(matrix.file), '--out', str(matrix.out)]
        before = signal.signal(signal.SIGINT, lambda *_: None)
        done = subprocess.run([sys.executable, '-m', 'osmabench_ros.cli', *command], check=False)
        signal.signal(signal.SIGINT, before)
        if done.returncode == INTERRUPTED:
            sys.exit(INTERRUPTED)
        failed += done.returncode != 0
    return failed


def main() -> int:
    """Run, write the page, and return 1 if a run failed."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('configs', nargs='+', type=Path)
    parser.add_argument('--out', type=Path, default=Path('runs/results'))
    parser.add_argument('--page', type=Path, default=Path('docs/results.md'))
    parser.add_argument('--note', default='', help='A sentence on the machine, for the page.')
    parser.add_argument('--write-only', action='store_true', help='Run nothing.')
    options = parser.parse_args()
    papers = read_published(Path(__file__).with_name('published_results.yaml'))
    matrices = [Matrix(file, load_config(str(file)), options.out) for file in options.configs]
    failed = 0
    if not options.write_only:
        for matrix in matrices:
            expected = f'about {matrix.expected_s() / 60:.0f} min for {matrix.planned} runs'
            left_out = f'left out: {matrix.absent}'
            print(f'{matrix.config.name}: {left_out if matrix.absent else expected}', flush=True)
        failed = run_all(matrices)
    earlier = options.page.read_text(encoding='utf-8') if options.page.exists() else ''
    write_page(options.page, page(matrices, papers, options.note, earlier))
    print(options.page)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
