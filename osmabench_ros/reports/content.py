"""Content of the page for every run: pictures, questions and answers."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from osmabench_ros.errors import IncompleteError, OsmabenchError
from osmabench_ros.reports.pictures import illustrations
from osmabench_ros.reports.pictures.illustrations import RunPictures, ScenePictures
from osmabench_ros.reports.pictures.sample_frames import SampleFrame
from osmabench_ros.reports.pictures.topview import TopGrid
from osmabench_ros.reports.pictures.view_3d import LARGEST_CLOUD, MOST_POINTS
from osmabench_ros.reports.tidy import Run
from osmabench_ros.runs.evaluation import ANSWERS_FOLDER
from osmabench_ros.semantics.scene_graph import SceneGraph, SceneNode
from osmabench_ros.vqa import question_files
from osmabench_ros.vqa.questions import Answer, AnswerValue, Evidence, Question, Verdict
from osmabench_ros.vqa.scores import UNSERVED, compute_paired_change

_CAPTION_LENGTH = 80

Row = dict[str, Any]


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
    found = (directory / ANSWERS_FOLDER).rglob(question_files.VERDICTS)
    # The folder itself comes first: of a question that was asked twice, its answer counts.
    for file in sorted(found, key=lambda path: (len(path.parts), path)):
        asked = question_files.read_records(file.with_name(question_files.QUESTIONS), Question)
        given = file.with_name(question_files.ANSWERS)
        try:
            new_answers = question_files.read_complete(given, Answer)
            new_verdicts = question_files.read_complete(file, Verdict)
        except IncompleteError:
            continue  # a server failed: nothing is to be learnt from the rest
        questions |= {item.id: item for item in asked if item.id not in questions}
        answers = {item.question_id: item for item in new_answers} | answers
        verdicts = {item.question_id: item for item in new_verdicts} | verdicts
    return Dialogue(
        tuple(questions.values()),
        tuple(answers.get(name) or Answer(name, None, '') for name in questions),
        tuple(verdicts.get(name) or replace(_NO_VERDICT, question_id=name) for name in questions),
    )


_NO_VERDICT = Verdict('', correct=False, judge='', answered=False, reason='no verdict')


def compute_paired_interval(before: Dialogue, after: Dialogue) -> tuple[float, float]:
    """Return the interval of the change of accuracy, NaN without one."""
    change = compute_paired_change(before.correct, after.correct, before.about)
    return change.low, change.high


def build_question_rows(dialogue: Dialogue) -> list[Row]:
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
            'visible': f'{float(share):.1%} of the surface' if share else '',
        }
        for item in dialogue.questions
        for share in [item.provenance.get('visible_share', '')]
    ]


def build_answer_rows(dialogue: Dialogue, frames: Sequence[SampleFrame]) -> dict[str, Row]:
    """Return the data of one run, by question id."""
    rows = zip(dialogue.questions, dialogue.answers, dialogue.verdicts, strict=True)
    return {
        question.id: {
            'answer': show_answer(answer.value),
            'verdict': _choose_verdict_word(verdict),
            'nodes': list(answer.nodes),
            'note': answer.note,
            'reason': verdict.reason,
            **({'transcript': list(map(asdict, answer.transcript))} if answer.transcript else {}),
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


def _choose_best_frame(evidence: Evidence, frames: Sequence[SampleFrame]) -> Row | None:
    """Return the frame of a question, or one that shows most of its nodes, and their places."""
    wanted = sorted(set(evidence.nodes))
    best: tuple[tuple[int, int], Row | None] = (0, 0), None
    for frame in frames:
        if frame.index in evidence.frames:
            return {'index': frame.index, 'boxes': {}}
        shown = {node: frame.shows[node] for node in wanted if node in frame.shows}
        worth = len(shown), sum(count for count, _ in shown.values())
        if worth > best[0]:
            boxes = {str(node): place for node, (_, place) in shown.items()}
            best = worth, {'index': frame.index, 'boxes': boxes}
    return best[1]


def build_node_rows(
    graph: SceneGraph, rows: Iterable[Mapping[str, Any]], grid: TopGrid | None
) -> dict[str, Row]:
    """Return name and box in the top view of those nodes of a graph that rows name."""
    used = sorted({node_id for row in rows for node_id in row['nodes']} & graph.by_id.keys())
    return {
        str(node.id): {
            'name': node.label or ''.join(node.captions[:1])[:_CAPTION_LENGTH] or node.kind.value,
            'box': _compute_top_box(node, grid),
        }
        for node in (graph.by_id[node_id] for node_id in used)
    }


def _compute_top_box(node: SceneNode, grid: TopGrid | None) -> list[float] | None:
    if grid is None or node.box is None:
        return None
    # A tall object is on the storey of its lower end.
    upper = np.array([*node.box.maximum[:2], node.box.minimum[2]])
    (left, bottom), (right, top) = grid.find_pixels(node.box.minimum), grid.find_pixels(upper)
    return [round(float(v), 1) for v in (left, top, right - left, bottom - top)]


Drawn = TypeVar('Drawn')

# Runs with pictures; more would make the page too heavy to open.
MOST_ILLUSTRATED = 16


@dataclass(frozen=True, eq=False)
class RunSection:
    """One run on the page; pictures that cannot be drawn are None, and `remark` says why."""

    run: Run
    anchor: str = ''
    scene: ScenePictures | None = None
    pictures: RunPictures | None = None
    remark: str = ''

    @property
    def shown(self) -> bool:
        """Whether the section has any content."""
        return self.run.failed or self.pictures is not None or bool(self.remark)

    @property
    def names(self) -> dict[str, str]:
        """Anchor, title and scene, for the scripts of the page."""
        return {'anchor': self.anchor, 'title': self.run.title, 'scene': self.run.scene}


@dataclass(frozen=True, eq=False)
class PageContent:
    """Content of the page, from the folders of the runs; `dialogues` are by run id."""

    scenes: tuple[ScenePictures, ...]
    sections: tuple[RunSection, ...]
    dialogues: Mapping[str, Dialogue]

    @cached_property
    def space(self) -> dict[str, Any]:
        """The data of the 3D view: scenes with their truth, runs with their maps."""
        shown = [(x, x.pictures, x.scene) for x in self.sections if x.pictures and x.scene]
        methods = (i for i, (section, *_) in enumerate(shown) if not section.run.is_reference)
        return {
            'scenes': {section.run.scene: scene.space.json for section, _, scene in shown},
            'runs': [{**section.names, **pictures.space} for section, pictures, _ in shown],
            'first': next(methods, 0),
        }

    @cached_property
    def questions(self) -> dict[str, Any]:
        """The data of the question browser: scenes with questions, runs with answers."""
        scenes: dict[str, Any] = {}
        runs: list[dict[str, Any]] = []
        for section in self.sections:
            asked, scene = self.dialogues[section.run.report.run_id], section.scene
            if not asked.questions:
                continue
            pictures, grid = section.pictures, scene.grid if scene else None
            size = [grid.width, grid.height] if grid else []
            if section.run.scene not in scenes:
                rows = build_question_rows(asked)
                graph = scene.truth.graph if scene else SceneGraph()
                scenes[section.run.scene] = {
                    'questions': rows,
                    'nodes': build_node_rows(graph, rows, grid),
                    'view': scene and {'id': scene.key, 'size': size},
                }
            answers = build_answer_rows(asked, pictures.frames if pictures else ())
            graph = pictures.graph if pictures else SceneGraph()
            names = {'condition': section.run.condition, 'mapper': section.run.mapper}
            nodes = build_node_rows(graph, answers.values(), grid)
            runs.append({**section.names, **names, 'answers': answers, 'nodes': nodes})
        return {'scenes': scenes, 'runs': runs}


def gather(runs: Sequence[Run]) -> PageContent:
    """Read the folders of the runs; missing files become remarks."""
    scenes = {run.scene: run.plan for run in reversed(runs)}
    illustrated = min(len(runs), MOST_ILLUSTRATED)
    most_points = min(LARGEST_CLOUD, MOST_POINTS // max(illustrated, 1))
    draw_scene, draw_run = illustrations.draw_scene_pictures, illustrations.draw_run_pictures
    drawn = {
        name: _draw_or_explain(draw_scene, scenes[name], f'scene-{i}', most_points)
        for i, name in enumerate(sorted(scenes))
    }
    sections = []
    for i, run in enumerate(runs):
        scene, remark = drawn[run.scene]
        pictures = None
        if scene is not None and not run.failed and i < MOST_ILLUSTRATED:
            pictures, remark = _draw_or_explain(draw_run, run.plan, scene)
        sections.append(RunSection(run, f'run-{i}', scene, pictures, remark))
    return PageContent(
        tuple(pictures for pictures, _ in drawn.values() if pictures is not None),
        tuple(sections),
        {run.report.run_id: read_dialogue(run.plan.directory) for run in runs},
    )


def skip_pictures(
    runs: Sequence[Run], dialogues: Mapping[str, Dialogue] | None = None
) -> PageContent:
    """Return the content of runs without reading their folders."""
    return PageContent((), tuple(RunSection(run) for run in runs), dialogues or {})


def _draw_or_explain(draw: Callable[..., Drawn], *sources: object) -> tuple[Drawn | None, str]:
    """Return pictures, or None and why they cannot be drawn."""
    try:
        return draw(*sources), ''
    except OsmabenchError as error:
        return None, str(error)
