"""The interface of importers, and what files and messages of a method do not say themselves."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, cast

from osmabench_ros.base.configuration import MAP_IMPORTERS, extension_names, load_extension
from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.base.reading import naming_errors
from osmabench_ros.errors import MapError
from osmabench_ros.geometry.axes import World as World
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.semantic_map import MapHeader, Provenance, SemanticMap
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.topics import stamp_ns_of


@dataclass(frozen=True)
class ImportOptions:
    """Information that a method's files do not contain.

    Parameters
    ----------
    world : World, optional
        Axes of the files' world; None for the usual ones of the method.
    metres_per_unit : float
        Length of the files' unit of length.
    pose : Pose
        The files' world (after turning it z-up) in the frame of the map, e.g. from alignment.
    frame_id : str
        Frame of the map.
    label_set : LabelSet, optional
        Vocabulary in which names of classes get their ids; None leaves points without labels.
    scene, condition : str
        Names for the provenance.
    frames_used : int
        Frames the method integrated; 0 if unknown.
    method_version : str
        Version or commit of the method.
    feature_model, feature_pretrained : str
        Encoder of the features, where it differs from the method's usual one.
    text_comparable : bool, optional
        Whether that encoder has text features; None for the usual ones of the method.
    """

    world: World | None = None
    metres_per_unit: float = 1.0
    pose: Pose = field(default_factory=Pose.identity)
    frame_id: str = WORLD_FRAME
    label_set: LabelSet | None = None
    scene: str = ''
    condition: str = ''
    frames_used: int = 0
    method_version: str = ''
    feature_model: str = ''
    feature_pretrained: str = ''
    text_comparable: bool | None = None


class MapImporter(Protocol):
    """Importer that an entry point in ``osmabench.map_importers`` names."""

    def __call__(self, path: Path, options: ImportOptions) -> SemanticMap:
        """Read a method's output at `path`; a MapError names the expected files."""


def list_importers() -> list[str]:
    """Return the names of all importers that are installed, in alphabetical order."""
    return extension_names(MAP_IMPORTERS)


def find_importer(method: str) -> MapImporter:
    """Return the importer of a method; ConfigError if there is none, or it cannot be imported."""
    return cast('MapImporter', load_extension(MAP_IMPORTERS, method))


def import_map(method: str, path: Path, options: ImportOptions | None = None) -> SemanticMap:
    """Read the output files of a method, by the name of its importer, as a map: z up, metres.

    `options` add to the files. Raises ConfigError if there is no such importer, MapError,
    which names the files, if they are missing or malformed.
    """
    importer = find_importer(method)
    with naming_errors(path, MapError):
        if not path.exists():
            raise MapError(f'{path} does not exist; give the file or folder that {method} wrote')
        return importer(path, options or ImportOptions())


@dataclass(frozen=True)
class TopicOptions:
    """Information that a message does not contain; None and '' mean unknown."""

    method: str
    label_set: LabelSet | None = None
    scene: str = ''
    condition: str = ''

    def header(self, message_header: object) -> MapHeader:
        """Return the header of the map of a std_msgs/Header."""
        provenance = Provenance(self.method, scene=self.scene, condition=self.condition)
        frame_id = str(message_header.frame_id).lstrip('/')  # type: ignore[attr-defined]
        stamp_ns = stamp_ns_of(message_header.stamp)  # type: ignore[attr-defined]
        return MapHeader(provenance, frame_id or WORLD_FRAME, max(stamp_ns, 0))
