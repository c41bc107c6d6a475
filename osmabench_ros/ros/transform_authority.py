"""Whether another node publishes an edge of the TF tree that is ours."""

from __future__ import annotations

from collections.abc import Iterable

from geometry_msgs.msg import TransformStamped

from osmabench_ros.mappers.transform_edges import ARROW, way_up

REMEMBERED = 4096
"""Own transforms that are recognised when they come back, and frames of others."""

_Key = tuple[str, str, int, int, float, float, float, float, float, float, float]


class TransformAuthority:
    """Remembers which transforms are ours.

    In a tree a frame has one parent, so another node that publishes a frame that we publish,
    under our parent or another, contests our edge.
    """

    def __init__(self) -> None:
        self._moving: dict[_Key, None] = {}
        self._fixed: set[_Key] = set()
        self._parents: dict[str, str] = {}
        self._of_others: dict[str, str] = {}

    def claim(self, transforms: Iterable[TransformStamped], *, fixed: bool) -> None:
        """Remember what is about to be published; for good if it is fixed."""
        for transform in transforms:
            if fixed:
                self._fixed.add(_key(transform))
            else:
                self._moving[_key(transform)] = None
            if len(self._moving) > REMEMBERED:
                del self._moving[next(iter(self._moving))]
            self._parents[_name(transform.child_frame_id)] = _name(transform.header.frame_id)

    def contested(
        self, transforms: Iterable[TransformStamped]
    ) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """Return our edge and the foreign one, (parent, child) each, of the first conflict.

        The transforms are as heard, our own among them.
        """
        for transform in transforms:
            if self._is_ours(_key(transform)):
                continue
            parent, child = _name(transform.header.frame_id), _name(transform.child_frame_id)
            if len(self._of_others) < REMEMBERED:
                self._of_others[child] = parent
            if child in self._parents:
                return (self._parents[child], child), (parent, child)
        return None

    def way_of_others(self, child: str) -> list[str]:
        """Return the edges of others from their root to a frame, as far as they were heard."""
        try:
            way = way_up(child, self._of_others)
        except ValueError:  # they lie in each other in a circle
            way = [child, self._of_others[child]]
        return [ARROW.join(edge) for edge in zip(way[:0:-1], way[-2::-1], strict=True)]

    def _is_ours(self, key: _Key) -> bool:
        return key in self._moving or key in self._fixed


def _name(frame_id: str) -> str:
    # tf2 ignores a leading slash as well.
    return frame_id.lstrip('/')


def _key(transform: TransformStamped) -> _Key:
    stamp, pose = transform.header.stamp, transform.transform
    position, rotation = pose.translation, pose.rotation
    return (
        _name(transform.header.frame_id),
        _name(transform.child_frame_id),
        stamp.sec,
        stamp.nanosec,
        position.x,
        position.y,
        position.z,
        rotation.x,
        rotation.y,
        rotation.z,
        rotation.w,
    )
