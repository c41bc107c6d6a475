"""What a configuration file of `osmabench run` may say."""

from __future__ import annotations

import math
import os
from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import Field, field_validator, model_validator

from osmabench_ros.base.limits.documents import read_yaml
from osmabench_ros.base.limits.reading import shown
from osmabench_ros.base.strict import FilePath, PathText, PlainName
from osmabench_ros.configuration import config_path
from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.runs.mapper_config import MapperConfig as MapperConfig
from osmabench_ros.runs.recording_config import EvaluationConfig as EvaluationConfig
from osmabench_ros.runs.recording_config import RecordingConfig as RecordingConfig
from osmabench_ros.runs.requirement import Requirement as Requirement
from osmabench_ros.runs.requirement import known_suites
from osmabench_ros.runs.sweep_config import SweepConfig as SweepConfig
from osmabench_ros.sequences.reading import SequenceReading
from osmabench_ros.simulation.conditions import Condition, load_condition, name_of_condition
from osmabench_ros.simulation.section import Section, validated
from osmabench_ros.simulation.strategies import Strategy
from osmabench_ros.suites.registry import repeated_suite, told_twice


class SceneConfig(Section):
    """Which scene; `reference` is 'apartment' or a path to a scene data set.

    Or a recorded one: `sequence` is a folder or bag, `ground_truth` the folder made for it, and
    `topics` what a bag of a robot calls the parts of a frame.
    """

    reference: PathText = 'apartment'
    scene: str = ''
    seed: int = Field(0, ge=0, lt=2**31)
    sequence: FilePath | None = None
    ground_truth: FilePath | None = None
    topics: SequenceReading = SequenceReading()

    @model_validator(mode='after')
    def _simulated_or_recorded(self) -> SceneConfig:
        if (self.sequence is None) != (self.ground_truth is None):
            raise ValueError('a recorded scene needs both sequence and ground_truth')
        if self.sequence is not None and {'reference', 'scene'} & self.model_fields_set:
            raise ValueError('a recorded scene has a sequence; leave out reference and scene')
        if self.sequence is None and self.topics != SequenceReading():
            raise ValueError('topics are those of a sequence; name it too')
        return self


class CameraConfig(Section):
    """The robot's camera."""

    width: int = Field(640, ge=16, le=4096)
    height: int = Field(480, ge=16, le=4096)
    hfov_deg: float = Field(90.0, ge=1, le=179)
    mounting_height_m: float = Field(1.5, ge=0.01, le=3)
    pitch_deg: float = Field(0.0, ge=-90, le=90)
    near_m: float = Field(0.05, ge=0.001, le=10)
    far_m: float = Field(50.0, ge=1, le=10_000)

    @property
    def intrinsics(self) -> Intrinsics:
        """Pinhole with the principal point in the middle."""
        return Intrinsics.from_hfov(self.width, self.height, math.radians(self.hfov_deg))

    @property
    def pitch_rad(self) -> float:
        """Positive looks down."""
        return math.radians(self.pitch_deg)


class RobotConfig(Section):
    """Size of the robot that paths are planned for."""

    radius_m: float = Field(0.2, ge=0.01, le=1)
    height_m: float = Field(1.5, ge=0.01, le=3)


class PoseFrame(str, Enum):
    """Whose poses a recorded trajectory holds."""

    BASE = 'base'
    CAMERA = 'camera'


class Planner(str, Enum):
    """What finds the way between goals.

    GRID is built in; NAVMESH takes the shortest way on Habitat-Sim's navigation mesh, GREEDY the
    steps of 0.06 m and turns of 4 degrees of its GreedyGeodesicFollower, as OSMa-Bench's code.
    """

    GRID = 'grid'
    NAVMESH = 'navmesh'
    GREEDY = 'greedy_follower'


class TrajectoryConfig(Section):
    """Path and sampling; speeds are those of the condition.

    `recorded` names poses to drive along instead of goals: a TUM file, ``BAG:TOPIC``, or the
    folder of a sequence. `goals` is then the number of equal parts that conditions count.
    `navmesh` is a file for the planners of Habitat-Sim, which compute a mesh without one.
    """

    strategy: Strategy = Strategy.FOLLOW
    goals: int = Field(5, ge=1, le=100)
    goal_points: tuple[tuple[float, float], ...] = ()
    planner: Planner = Planner.GRID
    navmesh: PathText = ''
    recorded: PathText = ''
    recorded_frame: PoseFrame = PoseFrame.BASE
    frame_rate_hz: float = Field(5.0, ge=0.01, le=1000)
    max_frames: int = Field(60, ge=2)

    @model_validator(mode='after')
    def _one_choice_of_goals(self) -> TrajectoryConfig:
        if self.goal_points and self.strategy is Strategy.COVERAGE:
            raise ValueError('the strategy coverage chooses its goals; leave out goal_points')
        if self.navmesh and self.planner is Planner.GRID:
            raise ValueError('"navmesh" is for the planners navmesh and greedy_follower')
        if self.planner is not Planner.GRID and (
            self.recorded or self.strategy is Strategy.COVERAGE
        ):
            raise ValueError('the strategy coverage and "recorded" have the planner grid alone')
        if self.planner is Planner.GREEDY and self.strategy is not Strategy.FOLLOW:
            raise ValueError('the planner greedy_follower has the strategy follow alone')
        if self.recorded and (self.goal_points or self.strategy is not Strategy.FOLLOW):
            raise ValueError('"recorded" says where to drive; leave out strategy and goal_points')
        if self.recorded_frame is not PoseFrame.BASE and not self.recorded:
            raise ValueError('"recorded_frame" is about "recorded"; name that, or leave both out')
        return self


class PacingMode(str, Enum):
    """How the bridge times frames."""

    LOCKSTEP = 'lockstep'
    REALTIME = 'realtime'


class PacingConfig(Section):
    """Timing and watchdogs, in seconds of wall time."""

    mode: PacingMode = PacingMode.LOCKSTEP
    speed_factor: float = Field(1.0, ge=0.001, le=1000)
    match_timeout_s: float = Field(60.0, ge=0.1, le=86_400)
    ack_timeout_s: float = Field(120.0, ge=0.1, le=86_400)
    evaluation_timeout_s: float = Field(900.0, gt=0)


class SimulatorConfig(Section):
    """A simulator backend and its options."""

    name: str = 'opengl'
    options: dict[str, Any] = Field(default_factory=dict)


class SuiteConfig(Section):
    """A suite of metrics and its options."""

    name: str
    options: dict[str, Any] = Field(default_factory=dict)


class MatrixConfig(Section):
    """A list of runs: every scene under every condition with every mapper."""

    name: PlainName
    scenes: tuple[SceneConfig, ...] = (SceneConfig(),)
    conditions: tuple[PathText, ...] = ('baseline',)
    mappers: tuple[MapperConfig, ...]
    simulator: SimulatorConfig = SimulatorConfig()
    camera: CameraConfig = CameraConfig()
    robot: RobotConfig = RobotConfig()
    trajectory: TrajectoryConfig = TrajectoryConfig()
    pacing: PacingConfig = PacingConfig()
    suites: tuple[SuiteConfig, ...]
    requirements: tuple[Requirement, ...] = ()
    evaluation: EvaluationConfig = EvaluationConfig()
    recording: RecordingConfig = RecordingConfig()
    sweep: SweepConfig = SweepConfig()
    text_features: dict[str, FilePath] = Field(default_factory=dict)
    """Files for the encoders of open-vocabulary maps; see `text_matching.TextMatching`."""

    @field_validator('suites')
    @classmethod
    def _once_each(cls, value: tuple[SuiteConfig, ...]) -> tuple[SuiteConfig, ...]:
        repeated = repeated_suite([item.name for item in value])
        if repeated is not None:
            raise ValueError(f'{told_twice(repeated)}; list it once')
        return value

    @model_validator(mode='after')
    def _requirements_name_runs(self) -> MatrixConfig:
        mappers = [item.name for item in self.mappers]
        conditions = [name_of_condition(item) for item in self.conditions]
        suites = known_suites([item.name for item in self.suites])
        for item in self.requirements:
            for kind, name, known in (
                ('mapper', item.mapper, mappers),
                ('condition', item.condition, conditions),
                ('suite', item.suite, suites),
            ):
                if name is not None and name not in known:
                    raise ValueError(
                        f'a requirement names {kind} "{name}", which is not run. '
                        f'{suggestion(name, known)}'
                    )
        return self

    @cached_property
    def loaded_conditions(self) -> dict[str, Condition]:
        """What the conditions say, as given; read once, so that all runs render what was hashed.

        Raises ConfigError if one is unknown, or its file is at fault.
        """
        return {item: load_condition(item) for item in self.conditions}

    @field_validator('scenes', 'conditions', 'mappers', 'suites')
    @classmethod
    def _not_empty(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            raise ValueError('must not be empty')
        return value


def load_config(name_or_path: str) -> MatrixConfig:
    """Read a configuration file.

    Parameters
    ----------
    name_or_path : str
        A YAML file, or the name of one in the package's `config/`, such as ``'demo'``.

    Raises
    ------
    ConfigError
        If it is missing, not YAML, or says something unknown; names the file and the key.
    """
    path = Path(name_or_path)
    if not path.suffix and not os.path.exists(path):
        path = _bundled(name_or_path)
    return parse_config(read_yaml(path, ConfigError), shown(path))


def _bundled(name: str) -> Path:
    names = {path.stem: path for path in config_path('demo.yaml').parent.glob('*.yaml')}
    if name not in names:
        raise ConfigError(
            f'there is neither a file nor a bundled configuration "{name}". '
            f'{suggestion(name, names)}'
        )
    return names[name]


def with_scene(config: MatrixConfig, reference: str, seed: int) -> MatrixConfig:
    """Return a configuration for another scene and seed; the name says so."""
    scene = SceneConfig(reference=reference, seed=seed)
    if config.scenes == (scene,):
        return config
    stem = Path(reference).name.split('.')[0]
    name = f'{config.name}_{stem}_{seed}'
    return config.model_copy(update={'scenes': (scene,), 'name': name})


def parse_config(data: Any, source: str) -> MatrixConfig:
    """Check the content of a configuration; `source` is named in errors."""
    return validated(MatrixConfig, data, f'configuration {source}')
