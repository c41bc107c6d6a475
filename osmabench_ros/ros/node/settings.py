"""Settings of the nodes, by the plan of a run or by parameters.

A field that has a description is a parameter too; the others come only from a plan.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, WithJsonSchema, model_validator

from osmabench_ros.base import contract as topics
from osmabench_ros.base.settings import Names, setting
from osmabench_ros.base.strict import FilePath, Strict
from osmabench_ros.errors import ConfigError, errors_as
from osmabench_ros.mappers.live_method import MapOrigin, TfMode, parents_of, way_up
from osmabench_ros.maps.map_kinds import MapType
from osmabench_ros.ros.node.participants import DeclaredParticipant
from osmabench_ros.runs import config
from osmabench_ros.sequences.topics import SequenceReading, reading_from_text
from osmabench_ros.simulation.conditions import Condition

# REP 105; what world_to_map places where the edges of the stack are not declared.
DEFAULT_MAP_FRAME = 'map'


class TfSettings(Strict):
    """Who publishes which edge; ConfigError names both keys if two contradict each other."""

    transforms: tuple[str, ...] = setting(
        (), 'Edges that a stack publishes on TF itself, such as "map->odom" and "odom->base_link".'
    )
    publish_tf: TfMode = setting(
        TfMode.AUTO,
        'Edge from the world to publish on TF; auto: the one that transforms leave '
        'free; none leaves out the camera too.',
    )
    map_origin: MapOrigin = setting(
        MapOrigin.FIRST_POSE, 'Where a stack that localises itself puts the origin of its map.'
    )

    @model_validator(mode='after')
    def _one_authority(self) -> TfSettings:
        theirs, child = self._theirs, self.below_world
        if child in theirs or child == topics.WORLD_FRAME:
            raise ConfigError(
                f'"publish_tf: {self.publish_tf.value}" contradicts "transforms: '
                f'[{", ".join(self.transforms)}]": the stack itself publishes where "{child}" is; '
                'leave out publish_tf, or correct transforms'
            )
        return self

    @property
    def below_world(self) -> str:
        """The frame that we place in the world, empty if none."""
        if self.publish_tf is TfMode.NONE:
            return ''
        if self.publish_tf is TfMode.WORLD_TO_BASE:
            return topics.BASE_FRAME
        theirs = self._theirs
        if topics.BASE_FRAME in theirs:
            root = way_up(topics.BASE_FRAME, theirs)[-1]
            return '' if root == topics.WORLD_FRAME and self.publish_tf is TfMode.AUTO else root
        return topics.BASE_FRAME if self.publish_tf is TfMode.AUTO else DEFAULT_MAP_FRAME

    @property
    def of_camera(self) -> tuple[str, ...]:
        """The frames of the camera that we place."""
        if self.publish_tf is TfMode.NONE:
            return ()
        theirs = self._theirs
        return tuple(
            item for item in (topics.CAMERA_LINK_FRAME, topics.CAMERA_FRAME) if item not in theirs
        )

    @property
    def _theirs(self) -> dict[str, str]:
        with errors_as(ConfigError, '"transforms"', ValueError):
            return parents_of(self.transforms)


def _participant(data: Any) -> Any:
    return DeclaredParticipant.parse(data) if isinstance(data, str) else data


def _reading(data: Any) -> Any:
    return reading_from_text(data) if isinstance(data, str) else data


_AS_TEXT = WithJsonSchema({'type': 'string'})
Participants = tuple[Annotated[DeclaredParticipant, BeforeValidator(_participant), _AS_TEXT], ...]
Reading = Annotated[SequenceReading, BeforeValidator(_reading)]
Pacing = Annotated[config.PacingConfig, Names(mode='pacing')]


class BridgeSettings(Strict):
    """The frames that the bridge publishes, simulated or recorded, and their pace."""

    scene: Annotated[config.SceneConfig, Names('seed', reference='scene', scene='scene_name')] = (
        config.SceneConfig()
    )
    condition: str | Condition = setting(
        'baseline', 'Name in config/conditions/, a YAML file, or a whole one as JSON.'
    )
    simulator: Annotated[config.SimulatorConfig, Names(name='simulator')] = (
        config.SimulatorConfig()
    )
    camera: Annotated[config.CameraConfig, Names(width='image_width', height='image_height')] = (
        config.CameraConfig()
    )
    robot: config.RobotConfig = config.RobotConfig()
    trajectory: Annotated[config.TrajectoryConfig, Names('goals', 'frame_rate_hz')] = (
        config.TrajectoryConfig()
    )
    path_file: FilePath | None = setting(
        None, 'Prepared path, RUNS/shared/SCENE/path.json; planned if empty.'
    )
    sequence: FilePath | None = setting(
        None, 'Recorded sequence to play instead of a simulation: a folder, a bag, an .mcap file.'
    )
    sequence_topics: Reading = setting(
        SequenceReading(),
        'Topics of a bag with other names: a YAML mapping such as {color: /rgb, pose: '
        'tf}, or a file with one.',
    )
    tf: Annotated[TfSettings, Names('publish_tf', 'map_origin', 'transforms')] = TfSettings()
    pacing: Annotated[config.PacingConfig, Names('speed_factor', mode='pacing')] = (
        config.PacingConfig()
    )
    run_id: str = 'unnamed'
    mapper: str = ''
    config_sha256: str = ''
    start_paused: bool = setting(False, 'Publish nothing before start_run or step_run.')
    participants: Participants = setting(
        (),
        'Nodes to wait for: NAME, or NAME:acks if it acknowledges frames.',
    )


class MapperSettings(Strict):
    """Which bundled method maps."""

    mapper: str = setting('oracle', 'Entry point in the group osmabench.mappers.')
    options: dict[str, object] = setting({}, 'Options of the mapper, a YAML mapping.')
    seed: config.Seed = setting(0, 'Seed of everything random in the mapper.')
    pacing: Pacing = config.PacingConfig()
    settle_s: float = setting(1.0, 'Seconds without a frame that end a realtime run.', 0, 600)
    evaluation: config.EvaluationConfig = config.EvaluationConfig()


class MapAdapterSettings(Strict):
    """Where the map of a third-party stack comes from."""

    method: str = setting('unknown', 'Name of the mapping method, for the report.')
    map_topic: str = setting('', "The stack's topic with the map.")
    map_type: MapType = setting(topics.POINT_CLOUD, 'Type of that topic.')
    map_file: FilePath | None = setting(None, 'A file that the stack writes, instead of a topic.')
    importer: str = setting('', 'Importer of that file; see osmabench map import --help.')
    finish_service: str = setting('', 'Called after the last frame; empty for none.')
    finish_type: str = setting('std_srvs/srv/Empty', 'Type of that service.')
    finish_request: dict[str, object] = setting({}, 'Its request, a YAML mapping.')
    settling: Annotated[config.Settling, Names('settle_s', 'settle_timeout_s')] = config.Settling()
    map_timeout_s: float = 120.0
    count_frames: bool = True
    map_frame_is_world: bool = setting(
        False, 'Take the map frame for the world where TF says nothing.'
    )


class MapRecorderSettings(Strict):
    """Which maps are recorded, and where to."""

    map_directory: FilePath | None = setting(
        None, 'Folder to write the final map to; must not exist, or be empty.'
    )
    participant: str = setting('', 'Only record maps of this participant; empty for any.')
    pacing: Pacing = config.PacingConfig()
    frames_directory: FilePath | None = setting(
        None, 'Folder for sample colour frames; empty for none.'
    )
    keep_intermediate_maps: bool = False
    chunk_timeout_s: float = 20.0
    max_snapshots: int = 100
    exit_when_done: bool = setting(False, 'End with exit code 0 once the final map is written.')


class EvaluatorSettings(Strict):
    """What maps are scored with."""

    ground_truth_directory: FilePath | None = setting(
        None, 'Ground truth of the scene, as prepared.'
    )
    questions_file: FilePath | None = setting(None, 'Questions about the scene, JSON lines.')
    output_directory: FilePath | None = setting(
        None, 'Folder that gets report.json and the answers.'
    )
    suites: tuple[config.SuiteConfig, ...] = setting(
        (), 'Suites to run, a YAML list of {name, options}.'
    )
    requirements: tuple[config.Requirement, ...] = setting(
        (), 'Thresholds, a YAML list as in a configuration.'
    )
    text_features: dict[str, FilePath] = setting(
        {}, 'YAML mapping: encoder of a map to .npy of its text.'
    )
    settling: Annotated[config.Settling, Names('allow_partial')] = config.Settling()
    device: Literal['auto', 'cpu', 'cuda'] = setting('auto', 'Where to compute.')
    use_run_info: bool = True
    """Whether run_info names the run; else the fields below, the map and the ground truth do."""
    condition: str = ''
    mapper: str = ''
    simulator: str = ''
    seed: config.Seed = 0
    exit_when_done: bool = setting(False, 'End with the verdict as exit code after one map.')


class MapViewerSettings(Strict):
    """Which maps are shown, and with what."""

    map_directory: FilePath | None = setting(
        None, 'Map on disk to show at once; empty to wait for topics.'
    )
    ground_truth_directory: FilePath | None = setting(
        None, 'Ground truth of the scene; empty for no errors.'
    )
    max_distance_m: float = setting(0.1, 'Largest distance of a match, metres.', 0.001, 10)
    max_points: int = setting(200_000, 'Points of a cloud; 0 for all.', 0, 100_000_000)
