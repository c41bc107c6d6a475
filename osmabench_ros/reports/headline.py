"""The few figures that stand for a run in tables and plots."""

from __future__ import annotations

from dataclasses import dataclass

from osmabench_ros.runs.report_model import Record, RunReport

NOT_APPLICABLE = '–'  # noqa: RUF001 - the en dash is the sign for it


@dataclass(frozen=True)
class Headline:
    """A figure that tables show: the record of this suite, mode (None if it has none) and metric.

    The figure is shown times 100 if `percent`; `explanation` is one sentence for the page.
    """

    title: str
    suite: str
    mode: str | None
    metric: str
    percent: bool
    explanation: str

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
        'constant',
        'exact_questions',
        None,
        'baseline_most_frequent',
        True,
        'What the most frequent answer of each category scores without any map.',
    ),
)


def headline_value(run: RunReport, headline: Headline) -> Record | None:
    """Return the record of a headline over all classes, None if the run has none."""
    for record in run.metrics:
        if (
            record.suite == headline.suite
            and record.metric == headline.metric
            and record.mode == headline.mode
            and not record.class_name
        ):
            return record
    return None
