"""What a viewer is shown of one map."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.maps.semantic_map import SemanticMap
from osmabench_ros.reports.camera_track import TrackedFrame
from osmabench_ros.sequences.ground_truth import GroundTruth


@dataclass(frozen=True, eq=False)
class View:
    """A map, what it is compared with, and what the camera saw.

    Parameters
    ----------
    name : str
        Name of the recording.
    about : str
        Markdown.
    semantic_map : SemanticMap
        The map.
    truth : GroundTruth, optional
        What its errors are told by.
    gate_m : float
        Largest distance of a match.
    intrinsics : Intrinsics, optional
        Camera of the frames.
    frames : iterable of TrackedFrame
        In order; consumed once.
    """

    name: str
    about: str
    semantic_map: SemanticMap
    truth: GroundTruth | None = None
    gate_m: float = 0.1
    intrinsics: Intrinsics | None = None
    frames: Iterable[TrackedFrame] = ()
