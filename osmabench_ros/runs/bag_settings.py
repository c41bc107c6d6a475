"""The settings of the evaluation of a bag."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.language.settings import ModelSettings
from osmabench_ros.metrics.trajectory_records import TrajectorySettings
from osmabench_ros.runs.config import MatrixConfig
from osmabench_ros.runs.map_placement import MapAlignment
from osmabench_ros.semantics.labels import LabelSet


@dataclass(frozen=True)
class ReferenceChoice:
    """What a map is compared with: a scene, a run or a cloud; none for a reference-free report.

    Ground truth of a `scene`, as `load_scene` takes it, is made on the fly; `run` is the folder of
    a run, of what its scene shares, or of ground truth; `cloud` is a PLY or PCD. `frame_id` is by
    default ``world``, and for a cloud the frame of the map. Raises ConfigError if more than one is
    given.
    """

    scene: str = ''
    run: Path | None = None
    cloud: Path | None = None
    frame_id: str | None = None

    def __post_init__(self) -> None:
        given = [item for item in (self.scene, self.run, self.cloud) if item]
        if len(given) > 1:
            raise ConfigError(
                f'a map has one reference, not {len(given)}: '
                f'{", ".join(str(item) for item in given)}'
            )

    @property
    def exists(self) -> bool:
        """Whether there is a reference."""
        return bool(self.scene or self.run or self.cloud)


@dataclass(frozen=True)
class TrajectoryChoice:
    """Which trajectory is compared with which, by topic or as ``/tf:PARENT.CHILD``.

    `estimate` is the stack's own, '' for no comparison. `reference` is the true one, '' for the
    bag's own ground truth; `reference_file` is a TUM file instead. Raises ConfigError if both are
    given, or either without an estimate.
    """

    estimate: str = ''
    reference: str = ''
    reference_file: Path | None = None
    settings: TrajectorySettings = field(default_factory=TrajectorySettings)

    def __post_init__(self) -> None:
        if self.reference and self.reference_file:
            raise ConfigError('give true poses by topic or by file, not both')
        if (self.reference or self.reference_file) and not self.estimate:
            raise ConfigError("true poses are given, but not the stack's own: add --pose-topic")


@dataclass(frozen=True)
class AlignmentChoice:
    """How the map is aligned; without a kind by the frames and TF of the bag alone.

    `transform` is that of the kind `known`, or the first guess of `icp`.
    """

    kind: MapAlignment | None = None
    transform: Similarity | None = None


@dataclass(frozen=True)
class BagSource:
    """A bag, as `open_bag` takes it, and how to read and score it.

    `msg_paths` are definitions that the bag lacks; '' for `map_topic` means to find it, for
    `method` what the bag says; `label_set` goes before what the bag says. `at_s` counts from the
    start of the bag, None is the last map; `seed` is that of scene, resampling and questions;
    `model` writes and answers questions about at most `question_frames` images.
    """

    path: Path
    config: MatrixConfig
    msg_paths: tuple[Path, ...] = ()
    map_topic: str = ''
    at_s: float | None = None
    method: str = ''
    label_set: LabelSet | None = None
    reference: ReferenceChoice = field(default_factory=ReferenceChoice)
    alignment: AlignmentChoice = field(default_factory=AlignmentChoice)
    trajectory: TrajectoryChoice = field(default_factory=TrajectoryChoice)
    questions_file: Path | None = None
    text_features: Mapping[str, Path] = field(default_factory=lambda: MappingProxyType({}))
    device: str = 'auto'
    seed: int = 0
    model: ModelSettings | None = None
    question_frames: int = 10
