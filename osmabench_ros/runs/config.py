"""Models of the configuration file of `osmabench run`."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from enum import Enum
from functools import cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from osmabench_ros.base.configuration import config_path
from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import FilePath, PathText, PlainName, Strict, validated
from osmabench_ros.errors import ConfigError, check_all, choose, suggestion
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.runs.mapper_config import EvaluationConfig, RecordingConfig
from osmabench_ros.runs.mapper_config import MapperConfig as MapperConfig
from osmabench_ros.runs.mapper_config import SweepConfig as SweepConfig
from osmabench_ros.runs.requirement import Requirement as Requirement
from osmabench_ros.runs.requirement import known_suites
from osmabench_ros.scenes.change_kinds import Changes
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.reading import SequenceReading
from osmabench_ros.simulation.conditions import Condition, load_condition, name_of_condition
from osmabench_ros.simulation.simulator import Simulator, make_simulator
from osmabench_ros.simulation.strategies import Strategy
from osmabench_ros.simulation.trajectory import CameraMount
from osmabench_ros.suites.suite import repeated_suite, repetition_fault

Seed = Annotated[int, Field(ge=0, lt=2**31)]


class SceneConfig(Strict):
    """Which scene: a procedural one, a path to a data set, or a recorded one and its truth."""

    reference: PathText = setting('apartment', "'apartment', or a *.scene_dataset_config.json.")
    scene: str = setting('', 'Scene of a data set; the only one by default.')
    seed: int = Field(0, ge=0, lt=2**31, description='Seed of the scene, path and questions.')
    path_seed: Seed | None = None
    """Seed of the path, what the sensors add on it, and the questions; None: as `seed`."""
    changes: Changes = ()
    """What is changed in the scene before anything is rendered; a file of changes, or a list."""
    sequence: FilePath | None = None
    """A recorded sequence or bag, in place of a simulated scene."""
    ground_truth: FilePath | None = None
    """Folder of the ground truth of `sequence`."""
    topics: SequenceReading = SequenceReading()

    @model_validator(mode='after')
    def _simulated_or_recorded(self) -> SceneConfig:
        if (self.sequence is None) != (self.ground_truth is None):
            raise ValueError('a recorded scene needs both sequence and ground_truth')
        if self.sequence is not None and (
            {'reference', 'scene', 'changes'} & self.model_fields_set
        ):
            raise ValueError(
                'a recorded scene has a sequence; leave out reference, scene and changes'
            )
        if self.sequence is None and self.topics != SequenceReading():
            raise ValueError('topics are those of a sequence; name it too')
        if self.sequence is not None and self.path_seed is not None:
            raise ValueError('a recorded scene has one path; leave out path_seed')
        return self

    def load(self) -> Scene:
        """Load the scene, if it is simulated, and change it."""
        return load_scene(self.reference, scene=self.scene, seed=self.seed, changes=self.changes)

    @property
    def recorded_files(self) -> tuple[Path, Path]:
        """Sequence and ground truth of a recorded scene."""
        assert self.sequence is not None
        assert self.ground_truth is not None
        return self.sequence, self.ground_truth

    @property
    def seed_of_path(self) -> int:
        """Seed of what a drive through the scene adds to it."""
        return self.seed if self.path_seed is None else self.path_seed

    @property
    def without_path(self) -> SceneConfig:
        """The scene itself, equal for all paths in it."""
        return self.model_copy(update={'path_seed': None})


class CameraConfig(Strict):
    """The robot's camera."""

    width: int = setting(640, 'Pixels.', 16, 4096)
    height: int = setting(480, 'Pixels.', 16, 4096)
    hfov_deg: float = setting(90.0, 'Horizontal field of view, degrees.', 1, 179)
    mounting_height_m: float = setting(1.5, 'Camera above the floor, metres.', 0.01, 3)
    pitch_deg: float = setting(0.0, 'Positive looks down, degrees.', -90, 90)
    near_m: float = setting(0.05, 'Nearest depth, metres.', 0.001, 10)
    far_m: float = setting(50.0, 'Farthest depth, metres.', 1, 10_000)

    @property
    def intrinsics(self) -> Intrinsics:
        """Pinhole with the principal point in the middle."""
        return Intrinsics.from_hfov(self.width, self.height, math.radians(self.hfov_deg))

    @property
    def mount(self) -> CameraMount:
        """Pose of the camera on the robot."""
        return CameraMount(self.mounting_height_m, math.radians(self.pitch_deg))


class RobotConfig(Strict):
    """Size of the robot that paths are planned for."""

    radius_m: float = setting(0.2, 'For planning a path, metres.', 0.01, 1)
    height_m: float = setting(1.5, 'For planning a path, metres.', 0.01, 3)


class PoseFrame(str, Enum):
    """The frame whose poses a recorded trajectory holds."""

    BASE = 'base'
    CAMERA = 'camera'


class Planner(str, Enum):
    """What finds the way between goals: GRID is built in, the others are of Habitat-Sim.

    OSMA_BENCH draws the goals and drives exactly as OSMa-Bench's code does.
    """

    GRID = 'grid'
    NAVMESH = 'navmesh'
    GREEDY = 'greedy_follower'
    OSMA_BENCH = 'osma_bench'


class TrajectoryConfig(Strict):
    """Path and sampling; speeds are those of the condition.

    `recorded` names poses to drive along instead of goals: a TUM file, ``BAG:TOPIC``, the folder
    of a sequence, or the path.json of earlier runs. `goals` is then the number of equal parts that
    conditions count.
    `navmesh` is a file for the planners of Habitat-Sim, which compute a mesh without one.
    `storey` is the number of the one to stay on, from 0; by default goals lie on all that stairs
    and ramps lead to from the lowest one. A goal point is x and y, or x, y and z.
    """

    strategy: Strategy = setting(Strategy.FOLLOW, 'How the goals of a path are chosen.')
    goals: int = setting(5, 'Goals of a path that is planned.', 1, 100)
    goal_points: tuple[tuple[float, float] | tuple[float, float, float], ...] = ()
    """Goals in this order, metres; drawn from the scene by default."""
    storey: Literal['all'] | Annotated[int, Field(ge=0)] = 'all'
    planner: Planner = Planner.GRID
    """What finds the way between goals."""
    navmesh: PathText = ''
    recorded: PathText = ''
    recorded_frame: PoseFrame = PoseFrame.BASE
    """Whose poses `recorded` holds."""
    frame_rate_hz: float = setting(5.0, 'Frames per second of stamp time.', 0.01, 1000)
    max_frames: int = setting(60, 'Frames at the speed of the baseline.', 2)

    @model_validator(mode='after')
    def _one_choice_of_goals(self) -> TrajectoryConfig:
        coverage, follows = (self.strategy is x for x in (Strategy.COVERAGE, Strategy.FOLLOW))
        if self.goal_points and coverage:
            raise ValueError('the strategy coverage chooses its goals; leave out goal_points')
        if self.navmesh and self.planner is Planner.GRID:
            raise ValueError('"navmesh" is for the planners of Habitat-Sim, not for "grid"')
        if self.planner is not Planner.GRID and (self.recorded or coverage):
            raise ValueError('the strategy coverage and "recorded" need the planner grid')
        if self.planner in (Planner.GREEDY, Planner.OSMA_BENCH) and not follows:
            raise ValueError(f'the planner {self.planner.value} needs the strategy follow')
        drawn = {'goal_points': self.goal_points, 'storey': self.storey != 'all'}
        if self.planner is Planner.OSMA_BENCH and any(drawn.values()):
            raise ValueError(
                'the planner osma_bench draws goals; leave out goal_points and storey'
            )
        chosen = [name for name, value in {**drawn, 'strategy': not follows}.items() if value]
        if self.recorded and chosen:
            raise ValueError(f'"recorded" says where to drive; leave out {" and ".join(chosen)}')
        if self.recorded_frame is not PoseFrame.BASE and not self.recorded:
            raise ValueError('"recorded_frame" is about "recorded"; name that, or leave both out')
        return self


class PacingMode(str, Enum):
    """How the bridge times frames."""

    LOCKSTEP = 'lockstep'
    REALTIME = 'realtime'


class PacingConfig(Strict):
    """Timing and watchdogs, in seconds of wall time."""

    mode: PacingMode = setting(
        PacingMode.LOCKSTEP, 'Wait for each participant after each frame, or for none.'
    )
    speed_factor: float = setting(1.0, 'Realtime: stamp seconds per wall second.', 0.001, 1000)
    match_timeout_s: float = setting(60.0, 'Wait for participants, seconds.', 0.1, 86_400)
    ack_timeout_s: float = setting(120.0, 'Wait for acknowledgements, seconds.', 0.1, 86_400)
    evaluation_timeout_s: float = Field(900.0, gt=0)
    """Longest evaluation of a map, seconds."""
    side_by_side: bool = Field(
        False, description='Whether realtime runs may be measured beside other runs.'
    )

    @property
    def lockstep(self) -> bool:
        """Whether frames wait for acknowledgements."""
        return self.mode is PacingMode.LOCKSTEP


class SimulatorConfig(Strict):
    """A simulator backend and its options."""

    name: str = setting('opengl', 'Entry point in the group osmabench.simulators.')
    options: dict[str, Any] = Field(
        default_factory=dict, description='Options of the simulator, a YAML mapping.'
    )

    def simulator(self, scene: Scene, camera: CameraConfig) -> Simulator:
        """Start the backend; raises as `make_simulator`."""
        limits = {'near_m': camera.near_m, 'far_m': camera.far_m}
        return make_simulator(self.name, scene, camera.intrinsics, {**limits, **self.options})


class SuiteConfig(Strict):
    """A suite of metrics and its options."""

    name: str
    """Entry point in the group osmabench.suites."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Of the suite."""


DEFAULT_SUITES = (
    'osma_segmentation',
    'map_geometry',
    'instances',
    'scene_graph',
    'exact_questions',
)
"""Suites that ask no model, take seconds and are about what most maps hold."""


class SeedsConfig(Strict):
    """Seeds of scenes, paths in each of them, and runs of the method on each; () for `seed`."""

    scene: tuple[Seed, ...] = ()
    """Of scenes; () for `seed` of each."""
    path: tuple[Seed, ...] = ()
    """Of paths in each scene; () for `path_seed` of each."""
    method: tuple[Seed, ...] = ()
    """Of runs of the method on each path."""

    @field_validator('scene', 'path', 'method')
    @classmethod
    def _once_each(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError('every seed may be listed once')
        return value


class MatrixConfig(Strict):
    """A list of runs: every scene, by every seed, under every condition with every mapper."""

    name: PlainName
    """Of the matrix, and of its folder."""
    scenes: tuple[SceneConfig, ...] = (SceneConfig(),)
    seeds: SeedsConfig = SeedsConfig()
    conditions: tuple[PathText, ...] = ('baseline',)
    """Names of conditions, or YAML files."""
    mappers: tuple[MapperConfig, ...]
    simulator: SimulatorConfig = SimulatorConfig()
    camera: CameraConfig = CameraConfig()
    robot: RobotConfig = RobotConfig()
    trajectory: TrajectoryConfig = TrajectoryConfig()
    pacing: PacingConfig = PacingConfig()
    suites: tuple[SuiteConfig, ...] = tuple(SuiteConfig(name=name) for name in DEFAULT_SUITES)
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
            raise ValueError(f'{repetition_fault(repeated)}; list it once')
        return value

    @model_validator(mode='after')
    def _parts_agree(self) -> MatrixConfig:
        faults = dict.fromkeys([*self._requirement_faults(), *self._seed_faults()])
        if faults:
            raise ValueError('; '.join(faults))
        return self

    def _requirement_faults(self) -> Iterator[str]:
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
                    yield (
                        f'a requirement names {kind} "{name}", which is not run. '
                        f'{suggestion(name, known)}'
                    )

    def _seed_faults(self) -> Iterator[str]:
        for item in self.scenes:
            if self.seeds.scene and item.seed:
                yield 'seeds.scene and "seed" of a scene say the same; give one'
            if self.seeds.path and item.path_seed is not None:
                yield 'seeds.path and "path_seed" of a scene say the same; give one'
            if (self.seeds.scene or self.seeds.path) and item.sequence is not None:
                yield (
                    f'sequence {item.sequence} is recorded: it has one scene and one path; leave '
                    'out seeds.scene and seeds.path'
                )
        if self.seeds.path and (self.trajectory.recorded or self.trajectory.goal_points):
            yield (
                'seeds.path chooses where to drive, and so do "recorded" and "goal_points"; leave '
                'one of them out'
            )

    @property
    def seeded_scenes(self) -> tuple[SceneConfig, ...]:
        """The scenes with every seed of scene and path."""
        return tuple(
            item.model_copy(update={'seed': seed, 'path_seed': path_seed})
            for item in self.scenes
            for seed in self.seeds.scene or (item.seed,)
            for path_seed in self.seeds.path or (item.path_seed,)
        )

    def pacing_of(self, mapper: MapperConfig) -> PacingMode:
        """Return the pacing of runs with a mapper: realtime if it acknowledges no frames."""
        return self.pacing.mode if mapper.acks else PacingMode.REALTIME

    @cached_property
    def loaded_conditions(self) -> tuple[Condition, ...]:
        """The conditions in order, read once, so that all runs render what was recorded."""
        found: list[Condition] = []

        def load(item: str) -> None:
            found.append(load_condition(item))

        check_all(partial(load, item) for item in self.conditions)
        return tuple(found)

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
    # A folder of that name, such as one of results, is no configuration.
    if not path.suffix and (not os.path.exists(path) or os.path.isdir(path)):
        path = _bundled(name_or_path)
    return parse_config(read_yaml(path, ConfigError), str(path))


def _bundled(name: str) -> Path:
    names = {path.stem: path for path in config_path('demo.yaml').parent.glob('*.yaml')}
    problem = f'there is neither a file nor a bundled configuration "{name}"'
    return names[choose(name, names, ConfigError, problem)]


def with_scene(config: MatrixConfig, reference: str, seed: int) -> MatrixConfig:
    """Return a configuration for another scene and seed; the name says so."""
    scene = SceneConfig(reference=reference, seed=seed)
    if config.scenes == (scene,) and config.seeds == SeedsConfig():
        return config
    stem = Path(reference).name.split('.')[0]
    name = f'{config.name}_{stem}_{seed}'
    return config.model_copy(update={'scenes': (scene,), 'seeds': SeedsConfig(), 'name': name})


def parse_config(data: Any, source: str) -> MatrixConfig:
    """Check the content of a configuration; `source` is named in errors."""
    return validated(MatrixConfig, data, f'configuration {source}')
