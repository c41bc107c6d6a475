"""Matrices next to a matrix: its changed scenes mapped again, and a change made halfway a run."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import MatrixConfig, parse_config
from osmabench_ros.runs.evaluate.evaluation import TRUE_TRAJECTORY
from osmabench_ros.runs.identity import slug
from osmabench_ros.runs.matrix_on_disk import MatrixOnDisk, RunState
from osmabench_ros.runs.plan import RunPlan
from osmabench_ros.runs.run_manifest import MANIFEST
from osmabench_ros.runs.shared_path import PATH_FILE
from osmabench_ros.simulation.conditions import name_of_condition
from osmabench_ros.suites.hypo3d import suite as hypo3d
from osmabench_ros.suites.hypo3d.generation import SUITE
from osmabench_ros.vqa.question_files import read_records
from osmabench_ros.vqa.questions import Question

REMAPPED, LIVE = 'changed', 'live'
"""Parts of the names of the folders next to that of a matrix."""


@dataclass(frozen=True)
class _MappedScene:
    """A scene of a matrix that is mapped, with one of its runs and its mappers."""

    plan: RunPlan
    options: hypo3d.Hypo3DOptions
    mappers: tuple[str, ...]

    def changes(self) -> dict[str, list[Any]]:
        """Return the changes that are asked about, by the names of the changed scenes."""
        found: dict[str, list[Any]] = {}
        for item in read_records(self.plan.questions_file, Question):
            if item.suite == SUITE and item.provenance['changed_scene'] not in found:
                number = int(item.provenance['number'])
                file = self.plan.shared_directory / hypo3d.CHANGE_FILES.format(number)
                found[item.provenance['changed_scene']] = read_yaml(file, ConfigError)
        return found

    def config(self, kind: str, own: Mapping[str, Any]) -> MatrixConfig:
        """Return a configuration that drives along the path of the runs again."""
        config = self.plan.config
        data = config.model_dump(mode='json')
        name = folder_beside(self.plan, kind).name
        track = (self.plan.shared_directory / PATH_FILE).absolute()
        drawn = {'strategy', 'goal_points', 'planner', 'navmesh', 'storey', 'recorded_frame'}
        kept = {key: value for key, value in data['trajectory'].items() if key not in drawn}
        data |= {
            'name': name,
            'seeds': {'method': data['seeds']['method']},
            'mappers': [item for item in data['mappers'] if item['name'] in self.mappers],
            'trajectory': {**kept, 'recorded': str(track)},
            'requirements': [],
            'recording': {},
            'sweep': {},
            **own,
        }
        return parse_config(data, f'{name} beside {config.name}')

    def suite(self, **options: str) -> list[dict[str, Any]]:
        """Return the suite that asks the questions again, without describing the changes."""
        left_out = {'remap', 'live_maps_every', 'before', 'change'}
        asked = self.options.model_dump(mode='json', exclude=left_out, exclude_defaults=True)
        before = str(self.plan.questions_file.absolute())
        return [{'name': SUITE, 'options': {**asked, 'before': before, **options}}]

    def scene(self) -> dict[str, Any]:
        return self.plan.scene.model_dump(mode='json', exclude_defaults=True)


def folder_beside(plan: RunPlan, kind: str) -> Path:
    """Return the folder next to the matrix for a kind of runs of a scene."""
    name = f'{plan.root.name}_{kind}_{plan.identity.scene_key}'
    return plan.root.with_name(slug(name))


def matrices_beside(plans: Sequence[RunPlan]) -> Iterator[MatrixConfig]:
    """Yield the matrices that the suite hypo3d needs next to a matrix that was run, if any.

    For each path in a scene: the changed scenes under the conditions of the matrix, and one run
    of each mapper in which the first change is made halfway. A scene that could not be prepared
    has none.
    """
    for mapped in _map_scenes(plans):
        changes, before = mapped.changes(), list(mapped.plan.scene.changes)
        earlier = [item.model_dump(mode='json', exclude_defaults=True) for item in before]
        if mapped.options.remap and changes:
            scenes = [{**mapped.scene(), 'changes': [*earlier, *new]} for new in changes.values()]
            suites = mapped.suite()
            yield mapped.config(REMAPPED, {'scenes': scenes, 'suites': suites, 'evaluation': {}})
        halfway = mapped.plan.shared_directory / hypo3d.HALFWAY_FILE
        if mapped.options.live_maps_every and changes and halfway.exists():
            yield mapped.config(
                LIVE,
                {
                    'scenes': [mapped.scene()],
                    'conditions': [str(halfway.absolute())],
                    'suites': mapped.suite(change=next(iter(changes))),
                    'evaluation': {'map_every_frames': mapped.options.live_maps_every},
                },
            )


def _map_scenes(plans: Sequence[RunPlan]) -> Iterator[_MappedScene]:
    for folder in dict.fromkeys(plan.shared_directory for plan in plans):
        own = [plan for plan in plans if plan.shared_directory == folder]
        done = [plan for plan in own if (plan.directory / TRUE_TRAJECTORY).exists()]
        options = hypo3d.hypo3d_options(own[0].config.suites)
        if done and options is not None and options.before is None:
            yield _MappedScene(done[0], options, tuple({plan.mapper.name for plan in done}))


def runs_beside(plan: RunPlan, kind: str) -> list[RunPlan]:
    """Return the finished runs of a mapper next to its run, under the same condition.

    Those that a change is made in are next to the runs of the first condition.
    """
    root, wanted = folder_beside(plan, kind), plan.identity
    first = name_of_condition(plan.config.conditions[0])
    if not (root / MANIFEST).is_file() or (kind == LIVE and wanted.condition != first):
        return []
    matrix = MatrixOnDisk(root)
    found = [matrix.plan(run.run_id) for run in matrix.runs() if run.state is RunState.DONE]
    return [
        other
        for other in found
        if (other.identity.mapper, other.identity.method_seed)
        == (wanted.mapper, wanted.method_seed)
        and (kind == LIVE or other.identity.condition == wanted.condition)
    ]
