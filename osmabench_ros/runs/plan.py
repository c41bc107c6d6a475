"""Plans the runs of a configuration and their folders."""

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from osmabench_ros.base.files import sha256_of_data
from osmabench_ros.errors import ConfigError
from osmabench_ros.runs.config import (
    MapperConfig,
    MatrixConfig,
    PacingConfig,
    PacingMode,
    SceneConfig,
)
from osmabench_ros.runs.identity import RunIdentity, SceneKey
from osmabench_ros.sequences.recorded import RECORDED
from osmabench_ros.simulation.conditions import Condition, name_of_condition

GROUND_TRUTH_FOLDER = 'ground_truth'
QUESTIONS_FILE = 'questions.jsonl'
# Of the folder that the runs of a scene share; `trajectory.recorded` may name it.
PATH_FILE = 'path.json'


@dataclass(frozen=True)
class RunPlan:
    """One run and its folders; `root` is the folder of the matrix."""

    identity: RunIdentity
    scene: SceneConfig
    mapper: MapperConfig
    condition: Condition
    config: MatrixConfig
    root: Path

    @property
    def directory(self) -> Path:
        """Folder of the run."""
        return self.root / self.identity.run_id

    @property
    def shared_directory(self) -> Path:
        """Folder shared by all runs on one path in the scene."""
        return self.root / 'shared' / str(self.identity.scene_key)

    @property
    def ground_truth_directory(self) -> Path:
        """Folder of the ground truth that the runs share."""
        return self.shared_directory / GROUND_TRUTH_FOLDER

    @property
    def questions_file(self) -> Path:
        """Questions that the runs share."""
        return self.shared_directory / QUESTIONS_FILE

    @property
    def method_seed(self) -> int:
        """Seed that the mapping method gets."""
        own = self.identity.method_seed
        return self.scene.seed if own is None else own

    @property
    def pacing(self) -> PacingMode:
        """Realtime if the mapper cannot acknowledge frames, else as configured."""
        return self.config.pacing_of(self.mapper)

    @property
    def pacing_config(self) -> PacingConfig:
        """The pacing of the configuration, in the mode of the run."""
        return self.config.pacing.model_copy(update={'mode': self.pacing})

    @property
    def map_directory(self) -> Path:
        """Folder of the recorded map."""
        return self.directory / 'map'

    @property
    def snapshots_directory(self) -> Path:
        """Folder of the intermediate maps."""
        return self.directory / 'map_snapshots'

    @property
    def frames_directory(self) -> Path:
        """Folder of the images that the run keeps."""
        return self.directory / 'frames'

    @property
    def bag_directory(self) -> Path:
        """Folder of the bag, if the run is recorded."""
        return self.directory / 'bag'

    @property
    def report_file(self) -> Path:
        """Report of the run."""
        return self.directory / 'report.json'


def config_digest(config: MatrixConfig) -> str:
    """Return the hex digest of what results depend on in a configuration, however written."""
    data = config.model_dump(
        mode='json',
        exclude_defaults=True,
        exclude={'sweep': True, 'mappers': {'__all__': {'resources'}}},
    )
    return sha256_of_data(data)


def plan_runs(
    config: MatrixConfig,
    scene_keys: Mapping[SceneConfig, SceneKey],
    root: Path,
    conditions: Sequence[Condition] | None = None,
) -> list[RunPlan]:
    """Return the runs of a matrix in `root`, scene by scene, condition by condition.

    `scene_keys` are of its seeded scenes; `conditions` are by default read from their files.
    """
    speed = config.pacing.speed_factor
    named = config.conditions, conditions or config.loaded_conditions
    plans = [
        RunPlan(
            RunIdentity(
                scene_keys[scene],
                name_of_condition(name),
                mapper.name,
                config.simulator.name if scene.sequence is None else RECORDED,
                speed if config.pacing_of(mapper) is PacingMode.REALTIME else None,
                method_seed,
            ),
            scene,
            mapper,
            condition,
            config,
            root,
        )
        for scene in config.seeded_scenes
        for name, condition in zip(*named, strict=True)
        for mapper in config.mappers
        for method_seed in config.seeds.method or (None,)
    ]
    # By the names of their folders, of which some file systems do not distinguish the case.
    found: dict[str, str] = {}
    for run_id in (plan.identity.run_id for plan in plans):
        folded = unicodedata.normalize('NFC', run_id).casefold()
        if other := found.get(folded):
            what = f'runs {other} and {run_id}, which not every file system distinguishes'
            if other == run_id:
                what = f'run {run_id} more than once; name every scene, condition and mapper once'
            raise ConfigError(f'configuration "{config.name}" lists {what}')
        found[folded] = run_id
    return plans
