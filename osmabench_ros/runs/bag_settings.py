"""What the evaluation of a bag is told."""

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
    """What a map is compared with; at most one of the four, none for a reference-free report.

    Parameters
    ----------
    scene : str
        As `load_scene` takes it; ground truth is made on the fly.
    run : Path, optional
        Folder of a run, of what its scene shares, or of ground truth.
    cloud : Path, optional
        PLY or PCD of the user's.
    frame_id : str, optional
        Frame of the reference; by default ``world``, and for a cloud the frame of the map.

    Raises
    ------
    ConfigError
        If more than one is given.
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
    """Which trajectory is compared with which.

    Parameters
    ----------
    estimate : str
        Topic of the stack's own pose, or ``/tf:PARENT.CHILD``; '' for no comparison.
    reference : str
        Topic of true poses; '' for the bag's own ground truth.
    reference_file : Path, optional
        TUM file of true poses instead.
    settings : TrajectorySettings
        How they are compared.
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
    """How the map is aligned.

    Parameters
    ----------
    kind : MapAlignment, optional
        None: by the frames and TF of the bag alone.
    transform : Similarity, optional
        Of `known`; the first guess of `icp`.
    """

    kind: MapAlignment | None = None
    transform: Similarity | None = None


@dataclass(frozen=True)
class BagSource:
    """A bag and how to read and score it.

    Parameters
    ----------
    path : Path
        As `open_bag` takes it.
    config : MatrixConfig
        Camera and path of scenes, files of text features.
    msg_paths : tuple of Path
        Definitions that the bag lacks.
    map_topic : str
        '' to find it.
    at_s : float, optional
        The map as it was so many seconds after the start of the bag; the last one by default.
    method : str
        Name of the method in the report; '' for what the bag says.
    label_set : LabelSet, optional
        Meaning of class ids, before what the bag says.
    reference : ReferenceChoice
        What the map is compared with.
    alignment : AlignmentChoice
        How it is aligned.
    trajectory : TrajectoryChoice
        Which trajectories are compared.
    questions_file : Path, optional
        Questions of the scene.
    text_features : mapping of str to Path
        As `TextMatching` takes them.
    device : str
        'auto', 'cpu' or 'cuda'.
    seed : int
        Of scene, resampling and questions.
    model : ModelSettings, optional
        Model that writes questions about the images of the bag and answers them from the map.
    question_frames : int
        Images it writes about at most.
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
