"""The settings of the evaluation of a bag, and the model of its report.json."""

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.pose import Similarity
from osmabench_ros.metrics.trajectory_records import TrajectorySettings
from osmabench_ros.runs.config import ScoringConfig
from osmabench_ros.runs.report_model import RunReport
from osmabench_ros.semantics.labels import LabelSet

BAG_SCHEMA = 'osmabench.bag_report/1'

REFERENCE_FREE = (
    'reference-free: nothing here says whether the map is right; give --scene, --run, '
    '--ground-truth or --reference to score it'
)


class MapAlignment(str, Enum):
    """How a map is aligned beyond the frames that the bag names."""

    NONE = 'none'
    KNOWN = 'known'
    ICP = 'icp'
    TRAJECTORY = 'trajectory'


class BagReport(RunReport):
    """The result of the evaluation of a bag; `transform` aligns the suites ``@aligned``.

    It takes map coordinates to the reference: x y z, quaternion x y z w, scale.
    """

    schema_name: str = BAG_SCHEMA
    bag: str
    map_topic: str
    map_type: str
    frame_id: str
    stamp_ns: int
    reference: str = ''
    transform: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BagSource:
    """A bag, as `open_bag` takes it, and how to read and score it; else ConfigError.

    The reference of the map is a scene, a run, ground truth, a cloud, or none. `transform` is the
    alignment `known`, or the first guess of `icp`. Poses are named by topic,
    ``/tf:PARENT.CHILD`` or TUM file.
    """

    path: Path
    config: ScoringConfig
    msg_paths: tuple[Path, ...] = ()
    map_topic: str = ''
    at_s: float | None = None
    method: str = ''
    label_set: LabelSet | None = None
    scene: str = ''
    run: Path | None = None
    ground_truth: Path | None = None
    cloud: Path | None = None
    reference_frame: str | None = None
    align: MapAlignment | None = None
    transform: Similarity | None = None
    pose_topic: str = ''
    reference_topic: str = ''
    reference_trajectory: Path | None = None
    pairing: TrajectorySettings = field(default_factory=TrajectorySettings)
    questions_file: Path | None = None
    device: str = 'auto'
    seed: int = 0

    def __post_init__(self) -> None:
        if len(self.references) > 1:
            names = ', '.join(map(str, self.references))
            raise ConfigError(f'a map has one reference, not {len(self.references)}: {names}')
        if self.reference_topic and self.reference_trajectory:
            raise ConfigError('give true poses by topic or by file, not both')
        if (self.reference_topic or self.reference_trajectory) and not self.pose_topic:
            raise ConfigError("true poses are given, but not the stack's own: add --pose-topic")

    @property
    def references(self) -> list[str | Path]:
        """The references that are given."""
        return [item for item in (self.scene, self.run, self.ground_truth, self.cloud) if item]
