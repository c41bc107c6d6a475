"""Content of the page for every run: pictures, questions and answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, TypeVar

from osmabench_ros.errors import OsmabenchError
from osmabench_ros.reports import dialogue
from osmabench_ros.reports.dialogue import Dialogue
from osmabench_ros.reports.pictures import illustrations
from osmabench_ros.reports.pictures.illustrations import RunPictures, ScenePictures
from osmabench_ros.reports.pictures.view_3d import LARGEST_CLOUD, MOST_POINTS
from osmabench_ros.reports.tidy import Run
from osmabench_ros.semantics.scene_graph import SceneGraph

Drawn = TypeVar('Drawn')

MOST_ILLUSTRATED = 16
"""Runs with pictures; more would make the page too heavy to open."""


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
        shown = [
            (item, item.pictures, item.scene)
            for item in self.sections
            if item.pictures and item.scene
        ]
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
            if section.run.scene not in scenes:
                rows = dialogue.build_question_rows(asked)
                graph = scene.truth.graph if scene else SceneGraph()
                scenes[section.run.scene] = {
                    'questions': rows,
                    'nodes': dialogue.build_node_rows(graph, rows, grid),
                    'view': scene
                    and {'id': scene.key, 'size': [scene.grid.width, scene.grid.height]},
                }
            answers = dialogue.build_answer_rows(asked, pictures.frames if pictures else ())
            graph = pictures.graph if pictures else SceneGraph()
            runs.append({
                **section.names,
                'condition': section.run.condition,
                'mapper': section.run.mapper,
                'answers': answers,
                'nodes': dialogue.build_node_rows(graph, answers.values(), grid),
            })  # fmt: skip
        return {'scenes': scenes, 'runs': runs}


def gather(runs: Sequence[Run]) -> PageContent:
    """Read the folders of the runs; missing files become remarks."""
    scenes = {run.scene: run.plan for run in reversed(runs)}
    illustrated = min(len(runs), MOST_ILLUSTRATED)
    most_points = min(LARGEST_CLOUD, MOST_POINTS // max(illustrated, 1))
    drawn = {
        name: _draw_or_explain(
            partial(illustrations.draw_scene_pictures, scenes[name], f'scene-{i}', most_points)
        )
        for i, name in enumerate(sorted(scenes))
    }
    sections = []
    for i, run in enumerate(runs):
        scene, remark = drawn[run.scene]
        pictures = None
        if scene is not None and not run.failed and i < MOST_ILLUSTRATED:
            pictures, remark = _draw_or_explain(
                partial(illustrations.draw_run_pictures, run.plan, scene)
            )
        sections.append(RunSection(run, f'run-{i}', scene, pictures, remark))
    return PageContent(
        tuple(pictures for pictures, _ in drawn.values() if pictures is not None),
        tuple(sections),
        {run.report.run_id: dialogue.read_dialogue(run.plan.directory) for run in runs},
    )


def skip_pictures(
    runs: Sequence[Run], dialogues: Mapping[str, Dialogue] | None = None
) -> PageContent:
    """Return the content of runs without reading their folders."""
    return PageContent((), tuple(RunSection(run) for run in runs), dialogues or {})


def _draw_or_explain(draw: Callable[[], Drawn]) -> tuple[Drawn | None, str]:
    """Return pictures, or None and why they cannot be drawn."""
    try:
        return draw(), ''
    except OsmabenchError as error:
        return None, str(error)
