"""Parts of conditions that change nothing on a path."""

from __future__ import annotations

import dataclasses
import re
import warnings
from typing import Any

import numpy as np
import pytest
from support.small_scenes import CAMERA, room_scene

from osmabench_ros.errors import OsmabenchWarning
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.conditions import Condition, load_condition, parse_condition
from osmabench_ros.simulation.frame_source import SimulatedFrames
from osmabench_ros.simulation.ineffective_settings import inert_parts
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.robot_path import Motion, RobotPath
from osmabench_ros.simulation.trajectory import Trajectory, sample_trajectory

STATES = np.array([[-2.5, 1.2, 0.0], [-1.0, 1.2, 0.0], [0.5, 1.2, 0.0], [2.0, 1.2, 0.0]])
PATH = RobotPath(STATES, np.array([0, 1, 2]), 0.0)
"""Three goals, 2 s each at the usual speed."""


def trajectory(duration_s: float, condition: Condition) -> Trajectory:
    return sample_trajectory(PATH.until(duration_s, Motion()), condition.motion_at(10.0), 10.0)


def found(data: str | dict[str, Any], duration_s: float, scene: Scene | None = None) -> list[str]:
    condition = (
        load_condition(data) if isinstance(data, str) else parse_condition('own', data, 'own.yaml')
    )
    path = trajectory(duration_s, condition)
    return list(inert_parts(condition, scene or room_scene(), path))


def rule(schedule: dict[str, Any]) -> dict[str, Any]:
    return {'lighting': {'scene_lights': [{'schedule': schedule}]}}


@pytest.mark.parametrize('name', ['dynamic', 'compat_dynamic'])
def test_lamps_that_never_go_out_are_told(name: str) -> None:
    [reported] = found(name, 1.9)
    assert reported == (
        f'part of condition "{name}" on scene test/room does not act: lighting.scene_lights.0 '
        'changes only after 1 goal segments, and the path ends at 1; raise trajectory.max_frames '
        'or trajectory.goals, or change the condition'
    )
    assert found(name, 2.5) == []


@pytest.mark.gl
def test_it_is_told_exactly_when_the_frames_are_those_of_the_baseline() -> None:
    scene = room_scene()

    def frames(name: str, duration_s: float) -> list[bytes]:
        condition = load_condition(name)
        path = trajectory(duration_s, condition)
        path = dataclasses.replace(path, frames=path.frames[::5])
        source = SimulatedFrames(scene, OpenGLSimulator(scene, CAMERA), condition, path)
        try:
            return [source.frame(i).frame.color.tobytes() for i in range(len(source))]
        finally:
            source.close()

    with pytest.warns(OsmabenchWarning, match='condition "dynamic" on scene test/room does not'):
        short = frames('dynamic', 1.9)
    assert short == frames('baseline', 1.9)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        assert frames('dynamic', 3.0) != frames('baseline', 3.0)


@pytest.mark.parametrize(
    ('data', 'end_s', 'reported'),
    [
        (rule({'alive': [{'seconds': [3, None]}]}), 2.5, 'only after 3 seconds, and .* at 2.5;'),
        (rule({'alive': [{'seconds': [3, None]}]}), 3.5, ''),
        (rule({'alive': [{'seconds': [0, None]}]}), 1.0, ''),
        (rule({'flicker': {'frequency_hz': 8, 'depth': 0.5}}), 0.5, ''),
        ({'lighting': {'lights': [{'name': 'torch'}]}}, 0.5, ''),
        ('dimming', 1.5, r'lighting.scene_lights.0 changes only after 1 goal'),
        ('dimming', 2.5, ''),
        ('blackout', 3.5, 'light "emergency" changes only after 2 goal segments, .* at 2;'),
        ('blackout', 5.0, ''),
        ('rearranged', 1.5, 'moving_objects.0 changes only after 1 goal segments'),
        ('rearranged', 2.5, ''),
        ('baseline', 0.1, ''),
        ('velocity', 0.1, ''),
    ],
)
def test_changes_that_come_too_late(
    data: str | dict[str, Any], end_s: float, reported: str
) -> None:
    sentences = ' '.join(found(data, end_s))
    assert bool(sentences) == bool(reported)
    assert not reported or re.search(reported, sentences)


def test_lights_that_are_not_there() -> None:
    scene = room_scene()
    fill = tuple(dataclasses.replace(light, lamp=False) for light in scene.lights)
    names = ', '.join(light.name for light in fill)
    assert fill
    [reported] = found('dynamic', 5.0, dataclasses.replace(scene, lights=fill))
    assert f'lighting.scene_lights.0 selects no light of the scene, which has {names};' in reported
    nowhere = tuple(dataclasses.replace(light, room_id=None) for light in scene.lights)
    [reported] = found('follow', 5.0, dataclasses.replace(scene, lights=nowhere))
    assert 'no light it selects is in a room; add rooms' in reported
    # All lights are meant, and there is none to switch off.
    assert found('camera', 5.0, dataclasses.replace(scene, lights=())) == []
