"""What every importer of a method's files offers, and the options they share."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from osmabench_ros.geometry.axes import World as World
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.semantics.labels import LabelSet


@dataclass(frozen=True)
class ImportOptions:
    """What a method's files do not say themselves.

    Parameters
    ----------
    world : World, optional
        Axes of the files' world; None for what the method usually uses.
    metres_per_unit : float
        Length of the files' unit of length.
    pose : Pose
        The files' world (after turning it z-up) in the frame of the map, e.g. from alignment.
    frame_id : str
        Frame of the map.
    label_set : LabelSet, optional
        Vocabulary in which names of classes get their ids; None leaves points without labels.
    scene, condition : str
        What was mapped, for the provenance.
    frames_used : int
        Frames the method integrated; 0 if unknown.
    method_version : str
        Version or commit of the method.
    feature_model, feature_pretrained : str
        Encoder of the features, where it differs from the method's usual one.
    text_comparable : bool, optional
        Whether that encoder has text features; None for what the method usually uses.
    """

    world: World | None = None
    metres_per_unit: float = 1.0
    pose: Pose = field(default_factory=Pose.identity)
    frame_id: str = 'world'
    label_set: LabelSet | None = None
    scene: str = ''
    condition: str = ''
    frames_used: int = 0
    method_version: str = ''
    feature_model: str = ''
    feature_pretrained: str = ''
    text_comparable: bool | None = None


class MapImporter(Protocol):
    """What an entry point in the group ``osmabench.map_importers`` names."""

    def __call__(self, path: Path, options: ImportOptions) -> SemanticMap:
        """Read what a method left at `path`; a MapError names the files that are expected."""
        ...
