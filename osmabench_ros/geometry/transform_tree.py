"""A tree of coordinate frames with edges that change over time, as in tf2."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

from osmabench_ros.errors import ContractError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.geometry.stamped_trajectory import StampedTrajectory

# How far beyond the first or last sample of an edge a time may lie.
MAX_GAP_NS = 1_000_000_000


@dataclass(frozen=True)
class StampedTransform:
    """One sample of an edge: the pose of the child in the parent, at all times if it is static."""

    parent: str
    child: str
    stamp_ns: int
    pose: Pose
    is_static: bool


@dataclass
class _Edge:
    parent: str
    is_static: bool
    samples: dict[int, Pose] = field(default_factory=dict)

    @cached_property
    def stamps_ns(self) -> list[int]:
        """Times of all samples, once all are there."""
        return sorted(self.samples)

    def at(self, stamp_ns: int, max_gap_ns: int) -> Pose | None:
        """Return the interpolated pose, None too far from the samples."""
        stamps = self.stamps_ns
        if self.is_static:
            return self.samples[stamps[-1]]
        after = bisect_left(stamps, stamp_ns)
        if after in (0, len(stamps)):
            nearest = stamps[min(after, len(stamps) - 1)]
            return self.samples[nearest] if abs(nearest - stamp_ns) <= max_gap_ns else None
        low = stamps[after - 1]
        high = stamps[after]
        return _interpolate(self.samples[low], self.samples[high], (stamp_ns - low) / (high - low))


class TransformTree:
    """Frames and the transforms between them; ContractError for two parents or a circle."""

    def __init__(self, samples: Iterable[StampedTransform]) -> None:
        self._edges: dict[str, _Edge] = {}
        for sample in samples:
            edge = self._edges.get(sample.child)
            if edge is None:
                edge = self._edges[sample.child] = _Edge(sample.parent, sample.is_static)
            if edge.parent != sample.parent:
                raise ContractError(
                    f'TF: frame "{sample.child}" has the parents "{edge.parent}" and '
                    f'"{sample.parent}"; only one node may publish the parent of a frame'
                )
            if edge.is_static and not sample.is_static:
                edge.is_static, edge.samples = False, {}
            if edge.is_static == sample.is_static:
                edge.samples[sample.stamp_ns] = sample.pose
        for child in self._edges:
            list(self._list_ancestors(child))

    @property
    def frames(self) -> tuple[str, ...]:
        """Names of all frames, sorted."""
        parents = {edge.parent for edge in self._edges.values()}
        return tuple(sorted({*self._edges, *parents}))

    def find_root(self, frame: str) -> str:
        """Return the outermost frame around a frame."""
        *_, root = self._list_ancestors(frame)
        return root

    def connects(self, parent: str, child: str) -> bool:
        """Return whether two frames are in one tree."""
        known = {parent, child} <= set(self.frames)
        return known and self.find_root(parent) == self.find_root(child)

    def look_up(
        self, parent: str, child: str, stamp_ns: int, max_gap_ns: int = MAX_GAP_NS
    ) -> Pose | None:
        """Return the pose of a frame in another at a time.

        Between samples positions are interpolated linearly, rotations on the shortest arc, as
        tf2 does. None if the frames are not connected, or an edge has no sample near that time.
        """
        if not self.connects(parent, child):
            return None
        up = dict(self._trace(parent, stamp_ns, max_gap_ns))
        for name, pose in self._trace(child, stamp_ns, max_gap_ns):
            if name in up:
                return up[name].inverse() @ pose
        return None

    def look_up_or_last(self, parent: str, child: str, stamp_ns: int) -> Pose | None:
        """As `look_up`, else return the last pose: a map may be newer than all of TF."""
        pose = self.look_up(parent, child, stamp_ns)
        if pose is not None or not self.connects(parent, child):
            return pose
        try:
            way = self.trajectory(parent, child)
        except ContractError:
            return None
        return way.pose(len(way) - 1)

    def trajectory(self, parent: str, child: str) -> StampedTrajectory:
        """Return the trajectory of a frame in another, at the stamps of the busiest edge between.

        Raises ContractError if the frames are not connected, nothing between them moves, or at no
        time all transforms between them are known.
        """
        if not self.connects(parent, child):
            raise ContractError(
                f'TF does not connect "{parent}" with "{child}"; '
                f'there are {", ".join(self.frames) or "no frames"}'
            )
        between = set(self._list_ancestors(parent)) ^ set(self._list_ancestors(child))
        edges = [self._edges[name] for name in sorted(between) if name in self._edges]
        moving = (edge.stamps_ns for edge in edges if not edge.is_static)
        stamps: list[int] = max(moving, key=len, default=[])
        found = ((stamp, self.look_up(parent, child, stamp, 0)) for stamp in stamps)
        known = [(stamp, pose) for stamp, pose in found if pose is not None]
        if not known:
            raise ContractError(
                f'TF: no moving transform between "{parent}" and "{child}" is known'
            )
        return StampedTrajectory.from_poses(known, parent, child)

    def _list_ancestors(self, frame: str) -> Iterator[str]:
        """Yield the frame and its ancestors."""
        seen = {frame}
        yield frame
        while frame in self._edges:
            frame = self._edges[frame].parent
            if frame in seen:
                raise ContractError(
                    f'TF: frame "{frame}" is its own ancestor, over {sorted(seen)}'
                )
            seen.add(frame)
            yield frame

    def _trace(self, frame: str, stamp_ns: int, gap_ns: int) -> Iterator[tuple[str, Pose]]:
        """Yield (ancestor, pose of the frame in it) as far as the samples lead."""
        pose = Pose.identity()
        yield frame, pose
        while frame in self._edges:
            edge = self._edges[frame]
            step = edge.at(stamp_ns, gap_ns)
            if step is None:
                return
            frame, pose = edge.parent, step @ pose
            yield frame, pose


def _interpolate(first: Pose, second: Pose, share: float) -> Pose:
    from scipy.spatial.transform import Rotation

    turn = Rotation.from_matrix(first.rotation.T @ second.rotation).as_rotvec()
    rotation = first.rotation @ Rotation.from_rotvec(share * turn).as_matrix()
    return Pose(rotation, (1 - share) * first.translation + share * second.translation)
