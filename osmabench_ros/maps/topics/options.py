"""Options of the readers of map messages."""

from __future__ import annotations

from dataclasses import dataclass

from osmabench_ros.base.contract import WORLD_FRAME
from osmabench_ros.maps.semantic_map import MapHeader, Provenance
from osmabench_ros.semantics.labels import LabelSet
from osmabench_ros.sequences.pose_topics import stamp_ns_of


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
