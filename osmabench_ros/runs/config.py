"""Models of the configuration file of `osmabench run`, thresholds included."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from osmabench_ros.base.configuration import bundled_file
from osmabench_ros.base.contract import POINT_CLOUD
from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import FilePath, PathText, PlainName, Strict, validated
from osmabench_ros.errors import ConfigError, check_all, suggestion
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.mappers.live_method import Edges, MapOrigin, TfMode
from osmabench_ros.maps.map_kinds import MapType
from osmabench_ros.metrics.map_statistics import SUITE as STATISTICS
from osmabench_ros.metrics.trajectory_records import ALIGNED
from osmabench_ros.metrics.trajectory_records import SUITE as TRAJECTORY
from osmabench_ros.scenes.changes import Changes
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.sequences.bags.recording_report import RecordedTopics
from osmabench_ros.sequences.topics import SequenceReading
from osmabench_ros.simulation.conditions import Condition, load_condition, name_of_condition
from osmabench_ros.simulation.robot_path import CameraMount
from osmabench_ros.simulation.simulator import Simulator, make_simulator
from osmabench_ros.simulation.strategies import Strategy
from osmabench_ros.suites.suite import find_repetition

Seed = Annotated[int, Field(ge=0, lt=2**31)]


class SceneConfig(Strict):
    """Which scene: a procedural one, a path to a data set, or a recorded one and its truth."""

    reference: PathText = setting('apartment', "'apartment', or a *.scene_dataset_config.json.")
    scene: str = setting('', 'Scene of a data set; the only one by default.')
    seed: int = Field(0, ge=0, lt=2**31, description='Seed of the scene, path and questions.')
    path_seed: Seed | None = None
    """Seed of the path, its sensor noise, and the questions; None: as `seed`."""
    changes: Changes = ()
    """Changes of the scene before it is rendered: a file, or a list."""
    sequence: FilePath | None = None
    """A recorded sequence or bag, in place of a simulated scene."""
    ground_truth: FilePath | None = None
    """Folder of the ground truth of `sequence`."""
    topics: SequenceReading = SequenceReading()

    @model_validator(mode='after')
    def _check_source(self) -> SceneConfig:
        if (self.sequence is None) != (self.ground_truth is None):
            raise ValueError('a recorded scene needs both sequence and ground_truth')
        fields = type(self).model_fields
        simulated = {'reference', 'scene', 'changes'}
        named = simulated & self.model_fields_set
        # A manifest names all of them, with their defaults.
        if named == simulated and all(getattr(self, x) == fields[x].default for x in named):
            named = set()
        if self.sequence is not None and named:
            raise ValueError('for a scene with a sequence leave out reference, scene and changes')
        if self.sequence is None and self.topics != SequenceReading():
            raise ValueError('topics belong to a sequence; name it too')
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
        """Seed of the path through the scene and of its questions."""
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
    """The frame of the poses in a recorded trajectory."""

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
    """Path and sampling; the condition has the speeds.

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
    """Planner of the ways between goals."""
    navmesh: PathText = ''
    recorded: PathText = ''
    recorded_frame: PoseFrame = PoseFrame.BASE
    """Frame of the poses in `recorded`."""
    frame_rate_hz: float = setting(5.0, 'Frames per second of stamp time.', 0.01, 1000)
    max_frames: int = setting(60, 'Frames at the speed of the baseline.', 2)

    @model_validator(mode='after')
    def _check_goals(self) -> TrajectoryConfig:
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
            raise ValueError('planner osma_bench draws goals; leave out goal_points and storey')
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
        False, description='Whether realtime runs may be measured while others run.'
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


class EvaluationConfig(Strict):
    """Which maps are scored as well as the final one: after every `map_every_frames`; 0: none."""

    map_every_frames: int = setting(
        0, 'Also publish the map after every so many frames; 0: never.', 0, 10**6
    )


class Resources(Strict):
    """Resources that a run with a mapper needs; the default is an equal share.

    With `gpus` a run sees only those that it was given, a part of one or one and more.
    """

    cpus: float | None = setting(None, 'Cores.', 0.1, 4096)
    gpus: float = setting(0.0, 'GPUs, or a part of one.', 0, 64)
    memory_gib: float | None = setting(None, 'Resident memory of all its processes.', 0.1, 10**5)


class RecordingConfig(RecordedTopics):
    """Whether and how the topics of a run are recorded to bag/ in its folder."""

    enabled: bool = False
    """Whether a bag is recorded."""
    split_size_mb: float = setting(0.0, 'Begin a new file at this size; 0 never.', 0)


# How fine the search is: speeds per doubling.
STEPS_PER_OCTAVE = 2


class SweepConfig(Strict):
    """Which speed factors `osmabench run --speeds` tries: a list, or a search on a grid."""

    speeds: tuple[float, ...] = ()
    """Speed factors to try; () for a search."""
    lowest: float = setting(0.25, 'Slowest speed of the search.', 0.001, 1000)
    highest: float = setting(16.0, 'Fastest speed of the search.', 0.001, 1000)
    max_loss: float = Field(
        0.05, ge=0.0, lt=1.0, description='Fraction of frames that may be lost, e.g. 0.05.'
    )

    @field_validator('speeds')
    @classmethod
    def _sort_speeds(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0.001 <= speed <= 1000 for speed in value):
            raise ValueError('speed factors must be between 0.001 and 1000')
        return tuple(sorted(set(value)))

    @model_validator(mode='after')
    def _check_range(self) -> SweepConfig:
        if self.highest < self.lowest:
            raise ValueError('highest must not be below lowest')
        return self

    @property
    def grid(self) -> tuple[float, ...]:
        """Speed factors from the lowest to the highest, geometric, to three digits."""
        octaves = math.log2(self.highest / self.lowest)
        steps = max(0, math.ceil(octaves * STEPS_PER_OCTAVE - 1e-9))
        speeds = [self.lowest * 2 ** min(octaves, i / STEPS_PER_OCTAVE) for i in range(steps + 1)]
        return tuple(dict.fromkeys(float(f'{speed:.3g}') for speed in speeds))


class Settling(Strict):
    """How long the recorder waits for a third-party map after the last frame.

    It has settled when for `settle_s` it has not changed;
    longer where the method is known to take longer for a change.
    """

    settle_s: float = setting(3.0, 'Seconds without a change of the map.', 0, 3600)
    settle_timeout_s: float = setting(
        600.0,
        'Longest wait after the last frame; a map that still changes then is partial.',
        0.1,
        86_400,
    )
    allow_partial: bool = setting(False, 'Whether a map that was cut off may pass.')


class MapperConfig(Settling):
    """A mapping method: a bundled one, a command that starts a node, or a third-party stack.

    It has the keys of `Settling` too.

    Parameters
    ----------
    name : str
        In the report, and unless `implementation` says otherwise the entry point in the group
        osmabench.mappers.
    implementation : str
        Entry point of a bundled mapper, so that one may take part twice with other options.
    options : dict
        Of the bundled mapper. Strings may hold ``${run}``, the folder of the run, ``${scene}``,
        ``${condition}`` and ``${seed}``.
    command : tuple of str
        Starts a node that publishes `semantic_map`, or, with `map_topic`, a map of another type.
        ``${seed}`` in it, and in `variables`, is the seed of the method.
    acks : bool
        Whether that node acknowledges frames. By default one with a `map_topic` does not, and
        one that publishes `semantic_map` does. Runs of one that does not are realtime.
    map_topic, map_type : str
        Topic and type of the map of the node of `command`, if not `semantic_map`.
    stack : str
        Name in config/methods/live, or a YAML file like those; cannot acknowledge frames.
    variables : dict of str to str
        Values of the variables in its file.
    transforms : tuple of str, optional
        Edges of TF that the method publishes itself, as ``'odom->base_link'``; None for those
        that the file of the stack says.
    publish_tf : TfMode
        Edge from the world that the bridge publishes, if not the one that `transforms` leave free.
    map_origin : MapOrigin, optional
        Where a method that localises itself puts the origin of its map; None as `transforms`.
    resources : Resources
        Resources of a run with it, by which runs are admitted side by side.
    """

    name: PlainName
    implementation: str = ''
    options: dict[str, Any] = Field(default_factory=dict)
    command: tuple[str, ...] = ()
    acks: bool = True
    map_topic: str = ''
    map_type: MapType = POINT_CLOUD
    stack: PathText = ''
    variables: dict[str, str] = Field(default_factory=dict)
    transforms: Edges | None = None
    publish_tf: TfMode = TfMode.AUTO
    map_origin: MapOrigin | None = None
    resources: Resources = Resources()

    @model_validator(mode='before')
    @classmethod
    def _set_default_acks(cls, data: Any) -> Any:
        if isinstance(data, Mapping) and data.get('stack'):
            return {**data, 'acks': False}
        if isinstance(data, Mapping) and data.get('map_topic'):
            return {'acks': False, **data}
        return data

    @model_validator(mode='after')
    def _one_way_to_start(self) -> MapperConfig:
        bundled = self.implementation or self.options
        ways = {'command': self.command, 'stack': self.stack, 'implementation or options': bundled}
        given = ' and '.join(name for name, value in ways.items() if value)
        if ' and ' in given:
            raise ValueError(f'only one way to start it may be given; leave out one of {given}')
        if self.map_topic and not self.command:
            raise ValueError('map_topic says where the node of a command publishes; give both')
        defaults = Settling().model_dump(exclude={'allow_partial'})
        waits = [name for name, value in defaults.items() if getattr(self, name) != value]
        if waits and not (self.map_topic or self.stack):
            raise ValueError(f'{waits[0]} is about the map of a map_topic or stack')
        if self.variables and not self.stack:
            raise ValueError('variables belong to a stack; give its name too')
        return self

    @property
    def bundled(self) -> str:
        """Entry point of the bundled mapper, '' for a command or a stack."""
        return '' if self.command or self.stack else self.implementation or self.name


# Suites that ask no model, take seconds and are about what most maps hold.
DEFAULT_SUITES = (
    'osma_segmentation',
    'map_geometry',
    'instances',
    'scene_graph',
    'exact_questions',
)


class SeedsConfig(Strict):
    """Seeds of scenes, paths in each of them, and runs of the method on each; () for `seed`."""

    scene: tuple[Seed, ...] = ()
    """Of scenes; () for `seed` of each."""
    path: tuple[Seed, ...] = ()
    """Of paths in each scene; () for `path_seed` of each."""
    method: tuple[Seed, ...] = ()
    """Of runs of the method on each path."""

    @model_validator(mode='before')
    @classmethod
    def _say_of_what(cls, value: Any) -> Any:
        if isinstance(value, (list, int)):
            raise ValueError('name the kind of seeds, scene, path or method, as {scene: [0, 1]}')
        return value

    @field_validator('scene', 'path', 'method')
    @classmethod
    def _once_each(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if len(set(value)) < len(value):
            raise ValueError('every seed may be listed once')
        return value


# Figures of timings.json of a run, frames and latencies with the node as class name.
TIMING_SUITES = ('timing',)

# Suites of the evaluation of a bag next to those that are configured.
BAG_SUITES = (TRAJECTORY, f'{TRAJECTORY}{ALIGNED}', 'alignment', 'bag_timing', STATISTICS)

# What follows the name of a metric in growth.json.
GROWTH_SUFFIXES = ('_over_frames', '_over_time', '_frames_until_90', '_seconds_until_90')


class Source(str, Enum):
    """The results that a requirement is checked against."""

    MAP = 'map'
    TIMING = 'timing'
    GROWTH = 'growth'
    BAG = 'bag'


class Requirement(Strict):
    """A threshold that must hold for every matching record of the report.

    Apart from the suites of the configuration there are metrics that only a run has (suite
    `timing`, and how metrics grew), and some that only the evaluation of a bag has (`BAG_SUITES`
    and, after an alignment, ``SUITE@aligned``).
    """

    suite: str
    """Suite of the metric."""
    metric: str
    """Name of the metric, as in report.csv."""
    mode: str | None = None
    """compat or strict; both by default."""
    class_name: str = ''
    """Class, or node of a metric of `timing`."""
    mapper: str | None = None
    """Which mapper it is for; all by default."""
    condition: str | None = None
    """Which condition it is for; all by default."""
    at_least: float | None = None
    """The lowest value that passes."""
    at_most: float | None = None
    """The highest value that passes."""

    @model_validator(mode='after')
    def _require_bound(self) -> Requirement:
        if self.at_least is None and self.at_most is None:
            raise ValueError('a requirement needs at_least or at_most')
        return self

    @property
    def source(self) -> Source:
        """The results that it can be checked against."""
        if self.suite in TIMING_SUITES:
            return Source.TIMING
        if self.suite in BAG_SUITES or self.suite.endswith(ALIGNED):
            return Source.BAG
        return Source.GROWTH if self.metric.endswith(GROWTH_SUFFIXES) else Source.MAP


def check_for_runs(
    requirements: Iterable[Requirement], *, grows: bool, final_only: Collection[str] = ()
) -> None:
    """Refuse requirements that no run could fulfil: of bags, or of growth that is not measured."""
    for item in requirements:
        if item.source is Source.BAG:
            where = 'which a run does not have, only `osmabench bag evaluate`'
            raise ConfigError(f'a requirement names suite "{item.suite}", {where}')
        named = f'a requirement names metric "{item.metric}" of suite "{item.suite}"'
        if item.source is Source.GROWTH and not grows:
            why = 'which needs maps on the way; set evaluation: {map_every_frames: 10}'
            raise ConfigError(f'{named}, {why}')
        if item.source is Source.GROWTH and item.suite in final_only:
            why = 'which asks a language model and is scored for the final map only'
            raise ConfigError(f'{named}, {why}; let the rules answer and judge')


class ScoringConfig(Strict):
    """How maps are scored; with nothing else in it, a configuration for maps that exist."""

    suites: tuple[SuiteConfig, ...] = tuple(SuiteConfig(name=name) for name in DEFAULT_SUITES)
    requirements: tuple[Requirement, ...] = ()
    text_features: dict[str, FilePath] = Field(default_factory=dict)
    """Files for the encoders of open-vocabulary maps; see `text_matching.TextMatching`."""

    @field_validator('suites')
    @classmethod
    def _once_each(cls, value: tuple[SuiteConfig, ...]) -> tuple[SuiteConfig, ...]:
        if fault := find_repetition(item.name for item in value):
            raise ValueError(f'{fault}; list it once')
        return value


class MatrixConfig(ScoringConfig):
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
    evaluation: EvaluationConfig = EvaluationConfig()
    recording: RecordingConfig = RecordingConfig()
    sweep: SweepConfig = SweepConfig()

    @model_validator(mode='after')
    def _check_parts(self) -> MatrixConfig:
        faults = dict.fromkeys([*self._find_requirement_faults(), *self._find_seed_faults()])
        if faults:
            raise ValueError('; '.join(faults))
        return self

    def _find_requirement_faults(self) -> Iterator[str]:
        mappers = [item.name for item in self.mappers]
        conditions = [name_of_condition(item) for item in self.conditions]
        configured = [item.name for item in self.suites]
        aligned = (f'{name}{ALIGNED}' for name in configured)
        suites = [*configured, *TIMING_SUITES, *BAG_SUITES, *aligned]
        for item in self.requirements:
            for kind, name, known in (
                ('mapper', item.mapper, mappers),
                ('condition', item.condition, conditions),
                ('suite', item.suite, suites),
            ):
                if name is not None and name not in known:
                    problem = f'a requirement names {kind} "{name}", which is not run'
                    yield f'{problem}. {suggestion(name, known)}'

    def _find_seed_faults(self) -> Iterator[str]:
        for item in self.scenes:
            if self.seeds.scene and item.seed:
                yield 'seeds.scene and "seed" of a scene say the same; give one'
            if self.seeds.path and item.path_seed is not None:
                yield 'seeds.path and "path_seed" of a scene say the same; give one'
            if (self.seeds.scene or self.seeds.path) and item.sequence is not None:
                problem = f'sequence {item.sequence} is recorded: it has one scene and one path'
                yield f'{problem}; leave out seeds.scene and seeds.path'
        if self.seeds.path and (self.trajectory.recorded or self.trajectory.goal_points):
            yield 'seeds.path chooses where to drive, and so do "recorded", "goal_points"'

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
        """The conditions in order, read once, so that all runs render the recorded ones."""
        loads = [cache(partial(load_condition, item)) for item in self.conditions]
        check_all(loads)
        return tuple(load() for load in loads)

    @field_validator('scenes', 'conditions', 'mappers', 'suites')
    @classmethod
    def _require_entries(cls, value: tuple[Any, ...]) -> tuple[Any, ...]:
        if not value:
            raise ValueError('must not be empty')
        return value


def load_scoring(name_or_path: str) -> ScoringConfig:
    """Read a configuration of runs, or one of suites and requirements only; as `load_config`."""
    data, source = _read_config(name_or_path)
    if isinstance(data, dict) and data.keys() <= ScoringConfig.model_fields.keys():
        return validated(ScoringConfig, data, f'configuration {source}')
    return parse_config(data, source)


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
    return parse_config(*_read_config(name_or_path))


def _read_config(name_or_path: str) -> tuple[Any, str]:
    path = Path(name_or_path)
    # A folder of that name, such as one of results, is not a configuration.
    if not path.suffix and (not os.path.exists(path) or os.path.isdir(path)):
        problem = f'there is neither a file nor a bundled configuration "{name_or_path}"'
        path = bundled_file(name_or_path, problem=problem)
    return read_yaml(path, ConfigError), str(path)


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
