"""What a suite may make once for all runs in a scene: questions, and files beside them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

from osmabench_ros.base.progress import Progress, silent
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.ground_truth import GroundTruth
from osmabench_ros.simulation.robot_path import RobotPath
from osmabench_ros.simulation.simulator import Simulator
from osmabench_ros.vqa.questions import Question


@dataclass(frozen=True, eq=False)
class SimulatedScene:
    """A scene that is simulated, and the path through it.

    `simulator` starts the backend of the runs with a horizontal field of view in radians; who
    calls it closes it.
    """

    scene: Scene
    path: RobotPath
    simulator: Callable[[float], Simulator]


@dataclass(frozen=True, eq=False)
class PreparedScene:
    """A scene before its runs.

    Parameters
    ----------
    ground_truth : GroundTruth
        Of the scene and the path through it.
    key : str
        Name of the scene in tables and questions.
    seed : int
        The same seed gives the same questions.
    directory : Path
        New folder that all runs in the scene share. Images of questions are relative to it.
    simulated : SimulatedScene, optional
        None where the scene was recorded.
    progress : Progress
        Told what is done.
    """

    ground_truth: GroundTruth
    key: str
    seed: int
    directory: Path
    simulated: SimulatedScene | None = None
    progress: Progress = silent


@runtime_checkable
class PreparesQuestions(Protocol):
    """A suite whose questions are made with the scene, not when a map is scored."""

    def prepare(self, prepared: PreparedScene) -> list[Question]:
        """Return the questions about a scene; the context of each evaluation brings them."""
        ...
