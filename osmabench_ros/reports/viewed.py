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
    """A map, the ground truth that shows its errors, and what the camera saw.

    `about` is Markdown, `gate_m` the largest distance of a match, metres; `frames` are in order
    and consumed once.
    """

    name: str
    about: str
    semantic_map: SemanticMap
    truth: GroundTruth | None = None
    gate_m: float = 0.1
    intrinsics: Intrinsics | None = None
    frames: Iterable[TrackedFrame] = ()
