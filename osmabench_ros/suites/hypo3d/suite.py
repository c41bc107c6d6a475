"""Hypo3D on scenes that change: answers of maps after a described or a mapped change."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import yaml
from pydantic import Field

from osmabench_ros.base.files import write_text
from osmabench_ros.base.strict import FilePath, validated
from osmabench_ros.metrics.record import MetricRecord, Mode
from osmabench_ros.simulation.robot_path import Motion
from osmabench_ros.suites.hypo3d.described_change import RuleOfChanges
from osmabench_ros.suites.hypo3d.generation import SUITE, Hypo3DRun, hypothetical_questions
from osmabench_ros.suites.hypo3d.published import PUBLISHED
from osmabench_ros.suites.question_suite import (
    AskedQuestions,
    QuestionModelOptions,
    QuestionSuite,
)
from osmabench_ros.suites.suite import PreparedScene, SuiteContext
from osmabench_ros.vqa.evaluation import QuestionedMap
from osmabench_ros.vqa.exact.generation import same_answer
from osmabench_ros.vqa.judging import Judge
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Answer, Question, Verdict, question_id
from osmabench_ros.vqa.scores import compute_paired_change, records

# Of a scene that was mapped after its change, over the questions with another answer since then.
AFFECTED = 'accuracy_affected'
# Condition that makes the first change halfway.
HALFWAY_FILE = 'changed_halfway.yaml'

# Changes that questions describe, for "changes" of a scene.
CHANGE_FILES = 'hypo3d_change_{}.yaml'


class Hypo3DOptions(QuestionModelOptions):
    """Options of the suite, in addition to `QuestionModelOptions`.

    Parameters
    ----------
    remap : bool
        Whether the changed scenes of a matrix are mapped again, in a folder next to its own.
    live_maps_every : int
        With more than 0, the first change is also made halfway through another run of each
        mapper, which then gives a map every so many frames; also next to the matrix.
    before : Path, optional
        In a run on a changed scene: questions.jsonl of the scene before the change. Those that
        describe this change are asked without the description.
    change : str
        With `before`, the name of the changed scene, where the run is on the scene before it.
    """

    remap: bool = False
    live_maps_every: int = Field(0, ge=0)
    before: FilePath | None = Field(None)
    change: str = ''


def hypo3d_options(suites: Iterable[Any]) -> Hypo3DOptions | None:
    """Return the options of the suite in a configuration, None without it."""
    given = [item.options for item in suites if item.name == SUITE]
    return validated(Hypo3DOptions, given[0], f'suite "{SUITE}"') if given else None


class Hypo3DSuite(QuestionSuite[Hypo3DOptions]):
    """Accuracy with a described change, with an irrelevant one, and on a scene mapped again.

    Class names are '' for all, kinds of questions (Scale, Direction, Semantic) and types of
    changes. `staleness` is the fraction of the answers that a change changes on which the old map,
    without the description, is wrong; `hallucination_rate` of the answers that an irrelevant
    change changes.
    """

    name = SUITE
    options_type = Hypo3DOptions
    main_metrics = ((Mode.NONE, f'accuracy_{Hypo3DRun.TOLD.value}'),)
    published = PUBLISHED
    make_rules = staticmethod(RuleOfChanges)

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Choose changes and ask about them; write the changes, and a condition with the first."""
        simulated, folder = prepared.simulated, prepared.directory
        if simulated is None or self._options.before is not None:
            return []
        prepared.progress('changing the scene', 0.0)
        questions, changes = hypothetical_questions(
            simulated.scene, prepared.ground_truth, scene_key=prepared.key, seed=prepared.seed
        )
        for number, change in enumerate(changes):
            made = [change.model_dump(mode='json', exclude_defaults=True)]
            write_text(folder / CHANGE_FILES.format(number), yaml.safe_dump(made))
            if str(number) == next((item.provenance['number'] for item in questions), ''):
                half_s = round(float(simulated.path.times_s(Motion())[-1]) / 2, 3)
                halfway = {'scene_change': {'span': {'seconds': [half_s, None]}, 'changes': made}}
                write_text(folder / HALFWAY_FILE, yaml.safe_dump(halfway))
        return questions

    def list_questions(self, context: SuiteContext) -> list[Question]:
        """Return the prepared questions, or the questions of `before` about this scene."""
        if self._options.before is None:
            return list(super().list_questions(context))
        changed = self._options.change or context.ground_truth.scene
        return [
            replace(
                item,
                id=question_id(self.name, context.scene_name, item.text),
                scene=context.scene_name,
                context_change='',
                provenance={**item.provenance, 'run': Hypo3DRun.REMAPPED.value},
            )
            for item in read_records(self._options.before, Question)
            if item.provenance.get('run') == Hypo3DRun.TOLD.value
            and item.provenance.get('changed_scene') == changed
        ]

    def prepare_map(self, context: SuiteContext) -> QuestionedMap:
        """Return the map; of a run on the scene before the change without any to compare with."""
        asked = super().prepare_map(context)
        return replace(asked, references={}) if self._options.change else asked

    def score(self, given: AskedQuestions) -> Iterator[MetricRecord]:
        """Yield accuracies by run, kind and change, hallucinations and staleness."""
        yield from accuracies(given.questions, given.verdicts, given.unserved)
        yield from compare_with_unchanged(given.questions, given.answers, given.asked.equality)

    def select_compared(self, questions: Sequence[Question]) -> Sequence[Question]:
        """Return the questions with a described change, else without."""
        return of_run(questions, Hypo3DRun.TOLD) or of_run(questions, Hypo3DRun.REMAPPED)

    def score_compared(self, metric: str, given: AskedQuestions) -> list[MetricRecord]:
        """Return the accuracy over all questions."""
        return [row for row in super().score_compared(metric, given) if not row.class_name]


def of_run(questions: Sequence[Question], run: Hypo3DRun) -> list[Question]:
    """Return the questions of one of the runs; questions of other suites are left out."""
    return [item for item in questions if item.provenance.get('run') == run.value]


def accuracies(
    questions: Sequence[Question], verdicts: Sequence[Verdict], unserved: Collection[str] = ()
) -> list[MetricRecord]:
    """Return `accuracy_` of each run, over all, by kind of question and by type of change."""
    found: list[MetricRecord] = []
    rows = partial(records, SUITE, '', verdicts=verdicts, answered_too=False)
    for run in Hypo3DRun:
        part = of_run(questions, run)
        metric = f'accuracy_{run.value}'
        changed = [replace(item, category=item.provenance['change']) for item in part]
        if part:
            found += rows(metric, part, not_applicable=unserved)
            found += [row for row in rows(metric, changed) if row.class_name]
    affected = _keep_affected(of_run(questions, Hypo3DRun.REMAPPED))
    return found + (rows(AFFECTED, affected, by_category=False) if affected else [])


def _keep_affected(questions: Iterable[Question]) -> list[Question]:
    """Return the questions with an answer that a change changes."""
    return [item for item in questions if item.provenance['affected'] == 'yes']


def _place_of(question: Question) -> tuple[str, str]:
    """Return the changed scene that a question is about, and the item that it asks."""
    return question.provenance['changed_scene'], question.provenance['item']


def imagination_gap(
    questions: Sequence[Question], verdicts: Sequence[Verdict]
) -> Iterator[MetricRecord]:
    """Yield how much accuracy is lost where a change is described and not mapped.

    `accuracy_remapped` minus `accuracy_told` over the questions that both have: over all, by kind
    of question and by type of change; the interval is over the changed scenes.
    """
    right = {verdict.question_id: verdict.correct for verdict in verdicts}
    mapped = {_place_of(item): item for item in of_run(questions, Hypo3DRun.REMAPPED)}
    groups: dict[str, dict[tuple[str, str], tuple[bool, bool]]] = defaultdict(dict)
    for told in of_run(questions, Hypo3DRun.TOLD):
        if remapped := mapped.get(_place_of(told)):
            for name in ('', told.category, told.provenance['change']):
                groups[name][_place_of(told)] = right[told.id], right[remapped.id]
    for name, pairs in groups.items():
        before, after = ({key: pair[i] for key, pair in pairs.items()} for i in (0, 1))
        gap = compute_paired_change(before, after)
        yield MetricRecord(
            SUITE, '', 'imagination_gap', name, gap.value, gap.low, gap.high, len(pairs),
            higher_is_better=False,
        )  # fmt: skip


def compare_with_unchanged(
    questions: Sequence[Question], answers: Sequence[Answer], judge: Judge
) -> Iterator[MetricRecord]:
    """Yield the share of answers that an irrelevant change flips, and of stale ones.

    Both are over the questions that are answered where no change is described. An answer is stale
    that the change changes, and that is wrong on a map that knows no change.
    """
    values = {answer.question_id: answer.value for answer in answers}
    plain = {
        x.provenance['item']: values.get(x.id) for x in of_run(questions, Hypo3DRun.UNCHANGED)
    }
    affected = _keep_affected(of_run(questions, Hypo3DRun.TOLD))
    irrelevant, told = (
        [(x, was) for x in part if (was := plain.get(x.provenance['item'])) is not None]
        for part in (of_run(questions, Hypo3DRun.IRRELEVANT), affected)
    )
    flips = [not same_answer(values.get(x.id), was, x.tolerance) for x, was in irrelevant]
    verdicts = judge.judge([(x, Answer(x.id, was, '')) for x, was in told])
    wrong = [not verdict.correct for verdict in verdicts]
    for metric, outcomes in (('hallucination_rate', flips), ('staleness', wrong)):
        yield MetricRecord.of_share(SUITE, '', metric, outcomes, higher_is_better=False)
