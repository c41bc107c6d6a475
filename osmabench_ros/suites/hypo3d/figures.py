"""Figures of Hypo3D from questions, answers and verdicts."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from osmabench_ros.metrics.record import MetricRecord
from osmabench_ros.suites.hypo3d.generation import SUITE, Hypo3DRun, same_answer
from osmabench_ros.vqa.judging.deterministic import Judge
from osmabench_ros.vqa.questions import Answer, Question, Verdict
from osmabench_ros.vqa.scores import paired_change, records

AFFECTED = 'accuracy_affected'
"""Of a scene that was mapped after its change, over the questions whose answer that changed."""


def accuracies(
    questions: Sequence[Question], verdicts: Sequence[Verdict], unserved: Collection[str] = ()
) -> list[MetricRecord]:
    """Return `accuracy_` of each run, over all, by kind of question and by type of change."""
    found: list[MetricRecord] = []
    for run in Hypo3DRun:
        part, metric = of_run(questions, run), f'accuracy_{run.value}'
        changed = [replace(item, category=item.provenance['change']) for item in part]
        mixed = {item.provenance['change'] for item in part if item.category in unserved}
        left_out = [*unserved, *mixed]
        for group, overall in ((part, True), (changed, False)):
            found += [
                record
                for record in records(
                    SUITE, '', metric, group, verdicts, not_applicable=left_out, answered_too=False
                )
                if part and (overall or record.class_name)
            ]
    affected = [
        q for q in of_run(questions, Hypo3DRun.REMAPPED) if q.provenance['affected'] == 'yes'
    ]
    if affected:
        found += records(
            SUITE, '', AFFECTED, affected, verdicts,
            not_applicable=unserved, by_category=False, answered_too=False,
        )  # fmt: skip
    return found


Judged = Mapping[tuple[str, str], tuple[Question, bool]]
"""Questions and whether their answers are right, by changed scene and item."""


def judged(questions: Sequence[Question], verdicts: Sequence[Verdict], run: Hypo3DRun) -> Judged:
    """Return the verdicts on one of the runs, so that those of another can be paired with them."""
    by_id = {verdict.question_id: verdict.correct for verdict in verdicts}
    return {
        (item.provenance['changed_scene'], item.provenance['item']): (item, by_id[item.id])
        for item in of_run(questions, run)
    }


def imagination_gap(described: Judged, remapped: Judged) -> Iterator[MetricRecord]:
    """Yield how much accuracy is lost where a change is described and not mapped.

    `accuracy_remapped` minus `accuracy_told` over the questions that both have: over all, by kind
    of question and by type of change; the interval is over the changed scenes.
    """
    common = sorted(described.keys() & remapped.keys())
    groups = {'': common}
    for key in common:
        question, _ = described[key]
        for name in (question.category, question.provenance['change']):
            groups.setdefault(name, []).append(key)
    for name, keys in groups.items():
        if keys:
            before, after = ({key: of[key][1] for key in keys} for of in (described, remapped))
            gap = paired_change(before, after)
            yield MetricRecord(
                SUITE, '', 'imagination_gap', name, gap.value, gap.low, gap.high, len(keys),
                higher_is_better=False,
            )  # fmt: skip


def of_run(questions: Sequence[Question], run: Hypo3DRun) -> list[Question]:
    """Return the questions of one of the runs; those of other suites are left out."""
    return [item for item in questions if item.provenance.get('run') == run.value]


def hallucinations(
    questions: Sequence[Question], answers: Sequence[Answer]
) -> Iterator[MetricRecord]:
    """Yield the share of answers that an irrelevant change flips."""
    given = {answer.question_id: answer.value for answer in answers}
    plain = {item.provenance['item']: item for item in of_run(questions, Hypo3DRun.UNCHANGED)}
    flips = []
    for item in of_run(questions, Hypo3DRun.IRRELEVANT):
        before = plain.get(item.provenance['item'])
        was = None if before is None else given.get(before.id)
        if was is not None:
            now = given.get(item.id)
            flips.append(now is None or not same_answer(was, now, item.tolerance))
    yield _share_of_wrong('hallucination_rate', flips)


def staleness(
    questions: Sequence[Question], answers: Sequence[Answer], judge: Judge
) -> Iterator[MetricRecord]:
    """Yield the share of changed answers on which a map that knows no change is wrong."""
    given = {answer.question_id: answer for answer in answers}
    plain = {item.provenance['item']: item for item in of_run(questions, Hypo3DRun.UNCHANGED)}
    pairs: list[tuple[Question, Answer | None]] = [
        (item, replace(given[before.id], question_id=item.id))
        for item in of_run(questions, Hypo3DRun.TOLD)
        if item.provenance['affected'] == 'yes'
        and (before := plain.get(item.provenance['item'])) is not None
        and given[before.id].value is not None
    ]
    yield _share_of_wrong('staleness', [not verdict.correct for verdict in judge.judge(pairs)])


def _share_of_wrong(metric: str, wrong: Sequence[bool]) -> MetricRecord:
    return MetricRecord.of_share(SUITE, '', metric, sum(wrong), len(wrong), higher_is_better=False)
