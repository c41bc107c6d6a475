"""Tables of other published protocols: the metrics that their fields report."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from osmabench_ros.reports.cells import ABSENT, cell_table, percent, plain
from osmabench_ros.reports.charts.question_chart import QUESTIONS, question_figures
from osmabench_ros.reports.report_run import PLACE, Run, score_table
from osmabench_ros.suites.grounding.generation import SUITE as GROUNDING
from osmabench_ros.suites.hypo3d.generation import SUITE as HYPO3D
from osmabench_ros.suites.promptgt import MEASUREMENTS, PROMPT, RELATIONS, STANDARD
from osmabench_ros.vqa.exact.prompt_ground_truth import SUITE as PROMPTGT

_AFTER_CHANGES = {
    'accuracy_unchanged': 'unchanged',
    'accuracy_told': 'told',
    'accuracy_remapped': 'mapped again',
    'imagination_gap': 'imagination gap',
    'accuracy_irrelevant': 'irrelevant told',
}
_OF_MAPS = {
    'hallucination_rate': 'hallucination rate',
    'staleness': 'staleness',
    'accuracy_live': 'right after a change on the way',
}
_UPDATED = {'frames_until_updated': 'frames until then'}
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


def protocol_tables(runs: Sequence[Run]) -> list[ProtocolTable]:
    """Return what each protocol reports of the runs that it scored."""
    scores = score_table(runs)
    found = [*_by_kind(scores), *_of_changes(scores), *_grounding(scores), *_prompts(scores)]
    return [table for table in found if not table.cells.empty]


def _by_kind(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    asked = scores[
        (scores['metric'] == 'accuracy') & (scores['class_name'] != '')
        & (scores['mode'] != 'compat') & ~scores['suite'].isin([QUESTIONS, PROMPTGT])
    ]  # fmt: skip
    caption = 'Share of questions that the map answers rightly, by kind, in percent'
    for suite, mode in asked[['suite', 'mode']].drop_duplicates().itertuples(index=False):
        own = scores[(scores['suite'] == suite) & (scores['mode'] == mode)]
        yield _by_class(own, suite, caption, {'accuracy': ''})


def _of_changes(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    own = scores[(scores['suite'] == HYPO3D) & (scores['mode'] == '')]
    yield _by_class(
        own,
        HYPO3D,
        'Right answers around a change, in percent: nothing told, about the scene before it; the '
        'change told; the changed scene mapped again; that minus told; another change told',
        _AFTER_CHANGES,
        of='accuracy_told',
    )
    of_all = own[own['class_name'] == '']
    cells = [
        cell_table(_labelled(of_all, labels), ['title'], 'label', number)
        for labels, number in ((_OF_MAPS, percent), (_UPDATED, plain))
    ]
    yield ProtocolTable(
        HYPO3D,
        'Answers that an irrelevant change flips; answers of the old map that a change makes '
        'wrong; answers that are right once the scene changed halfway a run, in percent; and how '
        'many frames after the change more than half of them are',
        pd.concat(cells, axis=1).fillna(ABSENT),
    )


def _grounding(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    yield _by_class(
        scores[(scores['suite'] == GROUNDING) & (scores['mode'] == 'strict')],
        GROUNDING,
        'Expressions answered with a box of that IoU at least, in percent, by difficulty (unique '
        'and multiple as ScanRefer, easy and hard as ReferIt3D), length, and kind of clue',
        {'acc_025': 'Acc@0.25', 'acc_05': 'Acc@0.5'},
    )


def _prompts(scores: pd.DataFrame) -> Iterator[ProtocolTable]:
    own = scores[scores['suite'] == PROMPTGT]
    quality = own[(own['metric'] == 'accuracy_faithful') & (own['mode'] == 'strict')]
    asked = scores[scores['run_id'].isin(quality['run_id'])]
    blocks = pd.concat([*_blocks(asked), quality.assign(label='map quality')])
    order = [f'{source} | {block}' for block in _STANDARD for source in (STANDARD, PROMPT)]
    yield ProtocolTable(
        PROMPTGT,
        'Right answers in percent, in the blocks that OSMa-Bench++ compares: exact questions '
        'about the scene, and questions whose answers the prompt gives; then those of them alone '
        'that the scene answers as its prompt does: the quality of the map',
        cell_table(blocks, ['title'], 'label', percent, [*order, 'map quality']),
    )
    fidelity = asked[(asked['suite'] == PROMPTGT) & (asked['metric'] == 'fidelity')]
    fidelity = fidelity.drop_duplicates([*PLACE[:2], 'class_name'])
    yield ProtocolTable(
        PROMPTGT,
        'Prompt fidelity: share of what the prompt asks for that the scene holds, in percent, '
        'whatever is mapped',
        cell_table(fidelity, ['where'], 'class_name', percent).rename(columns={'': 'all'}),
    )


def _blocks(asked: pd.DataFrame) -> Iterator[pd.DataFrame]:
    """Yield the accuracy in each block, of the exact questions and of those of prompts."""
    exact = asked[(asked['suite'] == QUESTIONS) & (asked['metric'] == 'accuracy')]
    given = asked[(asked['suite'] == PROMPTGT) & (asked['metric'] == 'accuracy_block')]
    for block, categories in _STANDARD.items():
        own = exact[exact['class_name'].isin(categories)].dropna(subset=['value'])
        own = own.assign(value=own['value'] * own['n'])
        sums = own.groupby('title', sort=False, as_index=False)[['value', 'n']].sum()
        yield sums.assign(value=sums['value'] / sums['n'], label=f'{STANDARD} | {block}')
        yield given[given['class_name'] == block].assign(label=f'{PROMPT} | {block}')


def _by_class(
    scores: pd.DataFrame, suite: str, caption: str, labels: Mapping[str, str], of: str = ''
) -> ProtocolTable:
    """Return a table with a column per class of the metric `of`, by default the first one."""
    asked = scores[(scores['metric'] == (of or next(iter(labels)))) & (scores['class_name'] != '')]
    own = _labelled(scores[scores['run_id'].isin(asked['run_id'])], labels)
    pairs = zip(own['title'], own['label'], strict=True)
    own['row'] = [' · '.join(filter(None, pair)) for pair in pairs]
    order = ['', *asked['class_name'].unique()]
    cells = cell_table(own, ['row'], 'class_name', percent, order).rename(columns={'': 'all'})
    charts = tuple(item.name for item in question_figures() if item.suite == suite)
    return ProtocolTable(suite, caption, cells, charts)


def _labelled(scores: pd.DataFrame, labels: Mapping[str, str]) -> pd.DataFrame:
    """Return the scores of some metrics with their labels, a run after the other."""
    own = scores[scores['metric'].isin(labels)].copy()
    own['label'] = pd.Categorical(own['metric'].map(labels), list(labels.values()))
    own['title'] = pd.Categorical(own['title'], own['title'].unique())
    return own.sort_values(['title', 'label'], kind='stable').astype({'label': str, 'title': str})
