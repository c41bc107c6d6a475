"""The headline figures of a run in tables and plots."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from osmabench_ros.runs.results.report_model import Record

NOT_APPLICABLE = '–'  # noqa: RUF001 - the en dash is the sign for it

COMMON = 'VQA common'


@dataclass(frozen=True)
class Headline:
    """A figure that tables show, by suite, mode and metric; times 100 if `percent`."""

    title: str
    suite: str
    mode: str | None
    metric: str
    percent: bool
    explanation: str

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
        True,
        'Mean over classes of the share of visible ground-truth surface that got its class.',
    ),
    Headline(
        'f-mIoU',
        'osma_segmentation',
        'strict',
        'fmiou',
        True,
        'Intersection over union of the classes, weighted by their surface.',
    ),
    Headline(
        'mAcc compat',
        'osma_segmentation',
        'compat',
        'macc',
        True,
        'As the published code computes it: nearest point at any distance.',
    ),
    Headline(
        'f-mIoU compat',
        'osma_segmentation',
        'compat',
        'fmiou',
        True,
        'As the published code computes it: nearest point at any distance.',
    ),
    Headline(
        'VQA',
        'exact_questions',
        None,
        'accuracy',
        True,
        'Share of exact questions answered correctly from the scene graph alone.',
    ),
    Headline(
        'VQA macro',
        'exact_questions',
        None,
        'accuracy_macro',
        True,
        'Mean of the accuracies of the categories, which weighs small categories like large.',
    ),
    Headline(
        COMMON,
        'exact_questions',
        None,
        'accuracy_of_common',
        True,
        'Over the questions that every compared map of the scene can serve.',
    ),
    Headline(
        'constant',
        'exact_questions',
        None,
        'baseline_most_frequent',
        True,
        'What the most frequent answer of each category scores without any map.',
    ),
)
