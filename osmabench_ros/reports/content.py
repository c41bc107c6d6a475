"""Content of the page for every run: pictures, questions and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.reports.pictures.illustrations import (
    RunPictures,
    ScenePictures,
    draw_scene_pictures,
    run_pictures,
)
from osmabench_ros.reports.pictures.view_3d import LARGEST_CLOUD, MOST_POINTS
from osmabench_ros.reports.question_data import (
    Dialogue,
    answer_rows,
    build_node_rows,
    build_question_rows,
    collect_used_nodes,
    read_dialogue,
)
from osmabench_ros.reports.report_run import Run
from osmabench_ros.semantics.scene_graph import SceneGraph

Drawn = TypeVar('Drawn')

MOST_ILLUSTRATED = 16
"""Runs with pictures; more would make the page too heavy to open."""


@dataclass(frozen=True, eq=False)
class RunSection:
    """One run on the page; pictures that cannot be drawn are None, and `remark` says why."""

    run: Run
    anchor: str
    scene: ScenePictures | None
    pictures: RunPictures | None
    remark: str

    @property
    def shown(self) -> bool:
        """Whether the section has any content."""
        return self.run.failed or self.pictures is not None or bool(self.remark)


@dataclass(frozen=True, eq=False)
class PageContent:
    """Content of the page, from the folders of the runs; `dialogues` are by run id.

    `questions` and `space` are the data of the browser of questions and of the 3D view.
    """

    scenes: tuple[ScenePictures, ...]
    sections: tuple[RunSection, ...]
    dialogues: Mapping[str, Dialogue]
    questions: Mapping[str, Any]
    space: Mapping[str, Any]


def gather(runs: Sequence[Run]) -> PageContent:
    """Read the folders of the runs; missing files become remarks."""
    scenes = {run.scene: run for run in reversed(runs)}
    illustrated = min(len(runs), MOST_ILLUSTRATED)
    most_points = min(LARGEST_CLOUD, MOST_POINTS // max(illustrated, 1))
    drawn = {
        name: _draw_or_explain(
            partial(draw_scene_pictures, scenes[name].plan, f'scene-{i}', most_points)
        )
        for i, name in enumerate(sorted(scenes))
    }
    sections = tuple(
        _draw_section(run, f'run-{i}', *drawn[run.scene], illustrated=i < MOST_ILLUSTRATED)
        for i, run in enumerate(runs)
    )
    dialogues = {run.report.run_id: read_dialogue(run.plan.directory) for run in runs}
    return PageContent(
        tuple(pictures for pictures, _ in drawn.values() if pictures is not None),
        sections,
        dialogues,
        _collect_questions(sections, dialogues),
        _collect_space(sections),
    )


def skip_pictures(runs: Sequence[Run], dialogues: Mapping[str, Dialogue]) -> PageContent:
    """Return the content of runs without reading their folders."""
    sections = tuple(RunSection(run, '', None, None, '') for run in runs)
    return PageContent((), sections, dialogues, {}, {})


def _draw_or_explain(draw: Callable[[], Drawn]) -> tuple[Drawn | None, str]:
    """Return pictures, or None and why they cannot be drawn."""
    try:
        return draw(), ''
    except OsmabenchError as error:
        return None, str(error)


def _draw_section(
    run: Run, anchor: str, scene: ScenePictures | None, remark: str, *, illustrated: bool
) -> RunSection:
    if run.failed or scene is None:
        return RunSection(run, anchor, scene, None, remark)
    pictures, remark = (
        _draw_or_explain(lambda: run_pictures(run.plan, scene)) if illustrated else (None, '')
    )
    return RunSection(run, anchor, scene, pictures, remark)


def _collect_space(sections: Sequence[RunSection]) -> dict[str, Any]:
    """Return the data of the 3D view: scenes with their truth, runs with their maps."""
    shown = [
        (item, item.pictures, item.scene) for item in sections if item.pictures and item.scene
    ]
    runs = [
        {
            'anchor': section.anchor,
            'title': section.run.title,
            'scene': section.run.scene,
            **pictures.space,
        }
        for section, pictures, _ in shown
    ]
    methods = (i for i, (section, _, _) in enumerate(shown) if not section.run.is_reference)
    return {
        'scenes': {section.run.scene: scene.space.json for section, _, scene in shown},
        'runs': runs,
        'first': next(methods, 0),
    }


def _collect_questions(
    sections: Sequence[RunSection], dialogues: Mapping[str, Dialogue]
) -> dict[str, Any]:
    """Return the data of the question browser: scenes with questions, runs with answers."""
    scenes: dict[str, Any] = {}
    runs: list[dict[str, Any]] = []
    for section in sections:
        dialogue = dialogues[section.run.report.run_id]
        if not dialogue.questions:
            continue
        key = section.run.scene
        scenes.setdefault(key, _describe_asked(dialogue, section.scene))
        runs.append(_describe_answered(section, dialogue))
    return {'scenes': scenes, 'runs': runs}


def _describe_asked(dialogue: Dialogue, scene: ScenePictures | None) -> dict[str, Any]:
    rows = build_question_rows(dialogue)
    used = {node for row in rows for node in row['nodes']}
    graph = scene.truth.graph if scene else SceneGraph()
    return {
        'questions': rows,
        'nodes': build_node_rows(graph, used, scene.grid if scene else None),
        'view': scene and {'id': scene.key, 'size': [scene.grid.width, scene.grid.height]},
    }


def _describe_answered(section: RunSection, dialogue: Dialogue) -> dict[str, Any]:
    pictures, scene = section.pictures, section.scene
    answers = answer_rows(dialogue, pictures.frames if pictures else ())
    graph = pictures.graph if pictures else SceneGraph()
    return {
        'anchor': section.anchor,
        'title': section.run.title,
        'scene': section.run.scene,
        'condition': section.run.condition,
        'mapper': section.run.mapper,
        'answers': answers,
        'nodes': build_node_rows(
            graph, collect_used_nodes(answers), scene.grid if scene else None
        ),
    }
