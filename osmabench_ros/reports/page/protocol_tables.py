"""Tables of other published protocols: the metrics that their fields report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import yaml

from osmabench_ros.reports.cells import ABSENT, build_cell_table, format_percent, format_plain
from osmabench_ros.reports.charts.matrix_charts import list_question_charts
from osmabench_ros.reports.comparison import QUESTIONS
from osmabench_ros.reports.tidy import PLACE, Run, build_score_table
from osmabench_ros.suites.promptgt import MEASUREMENTS, PROMPT, RELATIONS, STANDARD
from osmabench_ros.vqa.exact.prompt_ground_truth import SUITE as PROMPTGT

_KNOWN = Path(__file__).with_name('protocol_tables.yaml')
_STANDARD = {
    MEASUREMENTS: ('Measurement',),
    RELATIONS: ('Relations-Spatial', 'Relations-Functional'),
}
"""Categories of the exact questions in each block that OSMa-Bench++ compares."""


@dataclass(frozen=True)
class ProtocolTable:
    """A table of one suite, a row per run or per metric of a run; `charts` are shown below it."""

    suite: str
    caption: str
    cells: pd.DataFrame
    charts: tuple[str, ...] = ()


def build_protocol_tables(runs: Sequence[Run]) -> list[ProtocolTable]:
    """Return what each protocol reports of the runs that it scored."""
    scores = build_score_table(runs)
    known = yaml.safe_load(_KNOWN.read_text(encoding='utf-8'))
    tables = [_build_table(scores, **row) for row in known]
    found = (*_build_by_kind(scores), *tables, *_build_prompt_tables(scores))
    return [table for table in found if not table.cells.empty]


def _build_by_kind(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    asked = scores[
        (scores['metric'] == 'accuracy') & (scores['class_name'] != '')
        & (scores['mode'] != 'compat') & ~scores['suite'].isin([QUESTIONS, PROMPTGT])
    ]  # fmt: skip
    caption = 'Fraction of questions that the map answers rightly, by kind, in percent'
    for suite, mode in asked[['suite', 'mode']].drop_duplicates().itertuples(index=False):
        yield _build_table(scores, suite, caption, {'accuracy': ''}, mode, classes_of='accuracy')


def _build_table(
    scores: pd.DataFrame,
    suite: str,
    caption: str,
    metrics: Mapping[str, str],
    mode: str = '',
    classes_of: str = '',
) -> ProtocolTable:
    """Return the table of some metrics of a suite, as `protocol_tables.yaml` has it."""
    own = scores[(scores['suite'] == suite) & (scores['mode'] == mode)]
    asked = own[(own['metric'] == classes_of) & (own['class_name'] != '')]
    chosen = own['run_id'].isin(asked['run_id']) if classes_of else own['class_name'] == ''
    own = own[chosen & own['metric'].isin(metrics)].copy()
    own['label'] = pd.Categorical(own['metric'].map(metrics), list(metrics.values()))
    own['title'] = pd.Categorical(own['title'], own['title'].unique())
    own = own.sort_values(['title', 'label'], kind='stable').astype({'label': str, 'title': str})
    if not classes_of:
        frames = own['metric'].str.startswith('frames')
        parts = [
            build_cell_table(part, ['title'], 'label', number)
            for part, number in ((own[~frames], format_percent), (own[frames], format_plain))
        ]
        return ProtocolTable(suite, caption, pd.concat(parts, axis=1).fillna(ABSENT))
    pairs = zip(own['title'], own['label'], strict=True)
    own['row'] = [' · '.join(filter(None, pair)) for pair in pairs]
    order = ['', *asked['class_name'].unique()]
    cells = build_cell_table(own, ['row'], 'class_name', format_percent, order)
    charts = tuple(item.name for item in list_question_charts() if item.suite == suite)
    return ProtocolTable(suite, caption, cells.rename(columns={'': 'all'}), charts)


def _build_prompt_tables(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    own = scores[scores['suite'] == PROMPTGT]
    quality = own[(own['metric'] == 'accuracy_faithful') & (own['mode'] == 'strict')]
    asked = scores[scores['run_id'].isin(quality['run_id'])]
    blocks = pd.concat([*_read_blocks(asked), quality.assign(label='map quality')])
    order = [f'{source} | {block}' for block in _STANDARD for source in (STANDARD, PROMPT)]
    yield ProtocolTable(
        PROMPTGT,
        'Right answers in percent, in the blocks that OSMa-Bench++ compares: exact questions '
        'about the scene, and questions whose answers the prompt gives; then those of them alone '
        'that the scene answers as its prompt does: the quality of the map',
        build_cell_table(blocks, ['title'], 'label', format_percent, [*order, 'map quality']),
    )
    fidelity = asked[(asked['suite'] == PROMPTGT) & (asked['metric'] == 'fidelity')]
    fidelity = fidelity.drop_duplicates([*PLACE[:2], 'class_name'])
    yield ProtocolTable(
        PROMPTGT,
        'Prompt fidelity: share of what the prompt asks for that the scene holds, in percent, '
        'whatever is mapped',
        build_cell_table(fidelity, ['where'], 'class_name', format_percent).rename(
            columns={'': 'all'}
        ),
    )


def _read_blocks(asked: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the accuracy in each block, of exact questions and of questions from prompts."""
    exact = asked[(asked['suite'] == QUESTIONS) & (asked['metric'] == 'accuracy')]
    given = asked[(asked['suite'] == PROMPTGT) & (asked['metric'] == 'accuracy_block')]
    for block, categories in _STANDARD.items():
        own = exact[exact['class_name'].isin(categories)].dropna(subset=['value'])
        own = own.assign(value=own['value'] * own['n'])
        sums = own.groupby('title', sort=False, as_index=False)[['value', 'n']].sum()
        yield sums.assign(value=sums['value'] / sums['n'], label=f'{STANDARD} | {block}')
        yield given[given['class_name'] == block].assign(label=f'{PROMPT} | {block}')
