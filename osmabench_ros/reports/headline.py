"""The headline figures of a run in tables and plots."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from osmabench_ros.runs.report_model import Record

NOT_APPLICABLE = '–'  # noqa: RUF001 - the en dash is the sign for it


@dataclass(frozen=True)
class Headline:
    """A figure that tables show, by suite, mode and metric; times 100 if `percent`."""

    title: str
    suite: str
    mode: str | None
    metric: str
    explanation: str
    percent: bool = True

    def record_in(self, records: Iterable[Record], suffix: str = '') -> Record | None:
        """Return the record over all classes, None if there is none; `suffix` is of the metric."""
        wanted = (self.suite, self.mode, f'{self.metric}{suffix}', '')
        for record in records:
            if (record.suite, record.mode, record.metric, record.class_name) == wanted:
                return record
        return None

    def text(self, record: Record | None) -> str:
        """Return the cell of a table; an en dash if the figure is not applicable."""
        if record is None or record.value is None:
            return NOT_APPLICABLE
        return self.number(record.value)

    def number(self, value: float) -> str:
        """Return a value as tables write it."""
        return f'{100 * value:.1f}' if self.percent else f'{value:.3f}'

    @property
    def is_baseline(self) -> bool:
        """Whether it is a property of the questions, not of a map."""
        return self.metric.startswith('baseline_')


HEADLINES = (
    Headline(
        'mAcc',
        'osma_segmentation',
        'strict',
        'macc',
        'Mean over classes of the share of visible ground-truth surface that got its class.',
    ),
    Headline(
        'f-mIoU',
        'osma_segmentation',
        'strict',
        'fmiou',
        'Intersection over union of the classes, weighted by their surface.',
    ),
    Headline(
        'mAcc compat',
        'osma_segmentation',
        'compat',
        'macc',
        'As the published code computes it: nearest point at any distance.',
    ),
    Headline(
        'f-mIoU compat',
        'osma_segmentation',
        'compat',
        'fmiou',
        'As the published code computes it: nearest point at any distance.',
    ),
    Headline(
        'VQA',
        'exact_questions',
        None,
        'accuracy',
        'Share of exact questions answered correctly from the scene graph alone.',
    ),
    Headline(
        'VQA macro',
        'exact_questions',
        None,
        'accuracy_macro',
        'Mean of the accuracies of the categories, which weighs small categories like large.',
    ),
    Headline(
        'VQA common',
        'exact_questions',
        None,
        'accuracy_of_common',
        'Over the questions that every compared map of the scene can serve.',
    ),
    Headline(
        'constant',
        'exact_questions',
        None,
        'baseline_most_frequent',
        'What the most frequent answer of each category scores without any map.',
    ),
)

OTHER_SUITES = (
    Headline(
        'F-score 5 cm',
        'map_geometry',
        None,
        'f_score_0.05m',
        'Harmonic mean of the shares of map and visible surface within 5 cm of the other.',
    ),
    Headline(
        'PQ',
        'instances',
        'strict',
        'pq',
        'Panoptic quality: how well objects are found, times how well they are outlined.',
    ),
    Headline(
        'Node F1',
        'scene_graph',
        'strict',
        'node_f1',
        'Harmonic mean of precision and recall of the objects of the scene graph.',
    ),
    Headline(
        'ATE (m)',
        'map_trajectory',
        None,
        'ape_translation_rmse_m',
        'Root mean square distance of the poses that the method found from the true ones.',
        percent=False,
    ),
    Headline(
        'Frames with a pose',
        'map_trajectory',
        None,
        'frames_with_pose',
        'Share of the frames of the path, dropped ones too; errors are over these alone.',
    ),
    Headline(
        'CoSpace',
        'cospace',
        'strict',
        'accuracy',
        'Share of right answers about the views around places of the path.',
    ),
    Headline(
        'Acc@0.25',
        'grounding',
        'strict',
        'acc_025',
        'Share of referring expressions answered with a box whose IoU with the target is 0.25.',
    ),
    Headline(
        'Acc@0.5',
        'grounding',
        'strict',
        'acc_05',
        'The same from an IoU of 0.5 on.',
    ),
    Headline(
        'PromptGT',
        'promptgt',
        None,
        'accuracy',
        'Share of right answers to questions whose answers the prompt of the scene gives.',
    ),
)
"""Figures of tables alone, where their suites were run."""


def map_headlines(reports: Sequence[Collection[Record]]) -> list[Headline]:
    """Return the headline figures of maps that some of the reports have a record of."""
    return [
        item
        for item in HEADLINES
        if not item.is_baseline and any(item.record_in(records) for records in reports)
    ]


def headline_titles() -> dict[tuple[str, str, str], str]:
    """Return the titles of the headline figures of maps by suite, mode and metric."""
    return {
        (item.suite, item.mode or '', item.metric): item.title
        for item in (*HEADLINES, *OTHER_SUITES)
        if not item.is_baseline
    }


def table_headlines(reports: Iterable[Collection[Record]]) -> list[Headline]:
    """Return the figures that a table of runs shows: those that have a value in some run.

    A suite that none of them is of, such as one of another package, gives its first figure. Where
    nothing has a value, the figures that were computed stay, so that the table says so.
    """
    computed: dict[tuple[str, str | None, str], bool] = {}
    for records in reports:
        for item in records:
            if not item.class_name:
                key = item.suite, item.mode, item.metric
                computed[key] = computed.get(key, False) or item.value is not None
    known = [*HEADLINES, *OTHER_SUITES]
    columns = [*known, *_first_of_others(computed, {item.suite for item in known})]
    columns = [item for item in columns if (item.suite, item.mode, item.metric) in computed]
    filled = [item for item in columns if computed[item.suite, item.mode, item.metric]]
    return filled or columns


def _first_of_others(
    computed: Iterable[tuple[str, str | None, str]], known: Collection[str]
) -> Iterator[Headline]:
    seen = set(known)
    for suite, mode, metric in computed:
        if suite not in seen:
            seen.add(suite)
            explanation = f'{metric} of the suite {suite}, in its own unit.'
            yield Headline(f'{suite} {metric}', suite, mode, metric, explanation, percent=False)
