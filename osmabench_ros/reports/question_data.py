"""Questions, answers and verdicts as data for the page's browser of questions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.errors import IncompleteError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.reports.pictures.sample_frames import SampleFrame
from osmabench_ros.reports.pictures.topview import TopGrid
from osmabench_ros.runs.evaluate.evaluation import ANSWERS_FOLDER
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.vqa.question_files import (
    ANSWERS,
    QUESTIONS,
    VERDICTS,
    read_complete,
    read_records,
)
from osmabench_ros.vqa.questions import Answer, AnswerValue, Evidence, Question, Verdict
from osmabench_ros.vqa.scores import UNSERVED, compute_paired_change

_CAPTION_LENGTH = 80


@dataclass(frozen=True, eq=False)
class Dialogue:
    """Questions of a run with one answer and verdict each, in order."""

    questions: tuple[Question, ...] = ()
    answers: tuple[Answer, ...] = ()
    verdicts: tuple[Verdict, ...] = ()

    @property
    def correct(self) -> dict[tuple[str, str], bool]:
        """Whether each answer is right, by scene and question id, of questions that were asked."""
        return {
            (question.scene, question.id): verdict.correct
            for question, verdict in zip(self.questions, self.verdicts, strict=True)
            if verdict.reason != UNSERVED
        }

    @property
    def about(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """The objects that each question is about, by scene and question id."""
        return {(item.scene, item.id): item.evidence.nodes for item in self.questions}


def read_dialogue(directory: Path) -> Dialogue:
    """Read the questions, answers and verdicts in a run's folder, empty without answers."""
    questions: dict[str, Question] = {}
    answers: dict[str, Answer] = {}
    verdicts: dict[str, Verdict] = {}
    found = (directory / ANSWERS_FOLDER).rglob(VERDICTS)
    # The folder itself comes first: of a question that was asked twice, its answer counts.
    for file in sorted(found, key=lambda path: (len(path.parts), path)):
        new = {q.id: q for q in read_records(file.with_name(QUESTIONS), Question)}
        try:
            given = read_complete(file.with_name(ANSWERS), Answer)
            judged = read_complete(file, Verdict)
        except IncompleteError:
            continue  # a server failed: nothing is to be learnt from the rest
        for answer in given:
            answers.setdefault(answer.question_id, answer)
        for verdict in judged:
            verdicts.setdefault(verdict.question_id, verdict)
        questions = {**questions, **{k: v for k, v in new.items() if k not in questions}}
    return Dialogue(
        tuple(questions.values()),
        tuple(answers.get(item.id) or Answer(item.id, None, '') for item in questions.values()),
        tuple(verdicts.get(item.id) or _make_no_verdict(item) for item in questions.values()),
    )


def _make_no_verdict(question: Question) -> Verdict:
    return Verdict(question.id, correct=False, judge='', answered=False, reason='no verdict')


def compute_paired_interval(before: Dialogue, after: Dialogue) -> tuple[float, float] | None:
    """Return the interval of the change of accuracy, None without one."""
    change = compute_paired_change(before.correct, after.correct, before.about)
    return (change.low, change.high) if math.isfinite(change.low) else None


def build_question_rows(dialogue: Dialogue) -> list[dict[str, Any]]:
    """Return the data that all runs of a scene share: one object per question."""
    return [
        {
            'id': item.id,
            'category': item.category,
            'text': item.text,
            'answer': show_answer(item.answer, item.tolerance),
            **({'options': list(item.options)} if item.options else {}),
            **({'changed': item.context_change} if item.context_change else {}),
            'nodes': list(item.evidence.nodes),
            'kind': item.provenance.get('kind', ''),
            'visible': _format_percent(item.provenance.get('visible_share', '')),
        }
        for item in dialogue.questions
    ]


def _format_percent(share: str) -> str:
    return f'{float(share):.1%} of the surface' if share else ''


def answer_rows(dialogue: Dialogue, frames: Sequence[SampleFrame]) -> dict[str, dict[str, Any]]:
    """Return the data of one run, by question id."""
    rows = zip(dialogue.questions, dialogue.answers, dialogue.verdicts, strict=True)
    return {
        question.id: {
            'answer': show_answer(answer.value),
            'verdict': _choose_verdict_word(verdict),
            'nodes': list(answer.nodes),
            'note': answer.note,
            'reason': verdict.reason,
            **(
                {'transcript': [asdict(used) for used in answer.transcript]}
                if answer.transcript
                else {}
            ),
            'frame': _choose_best_frame(question.evidence, frames),
        }
        for question, answer, verdict in rows
    }


def show_answer(value: AnswerValue | None, tolerance: float = 0.0) -> str:
    """Return an answer as people read it, '' if there is none."""
    if value is None:
        return ''
    if isinstance(value, tuple):
        text = ', '.join(show_answer(item) for item in value)
    else:
        text = f'{value:.3g}' if isinstance(value, float) else str(value)
    return f'{text} ± {tolerance:.2g}' if tolerance else text


def _choose_verdict_word(verdict: Verdict) -> str:
    if verdict.reason == UNSERVED:
        return 'not applicable'
    if verdict.correct:
        return 'right'
    return 'wrong' if verdict.answered else 'unanswered'


def _choose_best_frame(evidence: Evidence, frames: Sequence[SampleFrame]) -> dict[str, Any] | None:
    """Return the frame of a question, or one that shows most of its nodes, and their places."""
    written = [frame for frame in frames if frame.index in evidence.frames]
    if written:
        return {'index': written[0].index, 'boxes': {}}
    if not evidence.nodes or not frames:
        return None
    wanted = frozenset(evidence.nodes)

    def worth(frame: SampleFrame) -> tuple[int, int]:
        shown = [frame.shows[node][0] for node in wanted if node in frame.shows]
        return len(shown), sum(shown)

    best = max(frames, key=worth)
    if worth(best) == (0, 0):
        return None
    boxes = {str(node): best.shows[node][1] for node in sorted(wanted) if node in best.shows}
    return {'index': best.index, 'boxes': boxes}


def build_node_rows(
    graph: SceneGraph, used: Iterable[int], grid: TopGrid | None
) -> dict[str, dict[str, Any]]:
    """Return name and box in the top view of those nodes of a graph that answers used."""
    nodes = (graph.by_id.get(node_id) for node_id in sorted(set(used)))
    return {
        str(node.id): {'name': _name(node), 'box': _compute_top_box(node.box, grid)}
        for node in nodes
        if node is not None
    }


def _name(node: SceneNode) -> str:
    if node.label:
        return node.label
    return node.captions[0][:_CAPTION_LENGTH] if node.captions else node.kind.value


def _compute_top_box(box: AxisAlignedBox | None, grid: TopGrid | None) -> list[float] | None:
    if box is None or grid is None:
        return None
    # A tall object is on the storey of its lower end.
    upper = np.array([*box.maximum[:2], box.minimum[2]])
    (left, bottom), (right, top) = grid.pixels(box.minimum), grid.pixels(upper)
    return [round(float(v), 1) for v in (left, top, right - left, bottom - top)]


def collect_used_nodes(rows: Mapping[str, Mapping[str, Any]]) -> set[int]:
    """Return the ids of all nodes that answers rest on."""
    return {node for row in rows.values() for node in row['nodes']}
