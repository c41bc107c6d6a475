"""Where a recorded map lies in the frame of its reference, according to its bag."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.transform_tree import TransformTree


class MapAlignment(str, Enum):
    """How a map is aligned beyond the frames that the bag names."""

    NONE = 'none'
    KNOWN = 'known'
    ICP = 'icp'
    TRAJECTORY = 'trajectory'


@dataclass(frozen=True, eq=False)
class Placement:
    """What takes map coordinates to the frame of the reference, and how that is known."""

    similarity: Similarity
    remark: str


def placement_of(
    map_frame: str,
    reference_frame: str,
    stamp_ns: int,
    transforms: TransformTree,
    alignment: MapAlignment | None,
    *,
    transform_given: bool,
) -> Placement:
    """Return where the map lies without any fitting, by its frame and the TF of the bag.

    `reference_frame` is '' if it is that of the map; `alignment` is None if the user does not say.
    Raises ConfigError if the frames differ, TF does not connect them, and the user does not say
    what to do.
    """
    if reference_frame in ('', map_frame):
        return Placement(Similarity.identity(), f'the map is in frame "{map_frame}"')
    pose = transforms.lookup_or_last(reference_frame, map_frame, stamp_ns)
    if pose is not None and alignment is not MapAlignment.NONE:
        return Placement(
            Similarity(pose),
            f'the map was put from frame "{map_frame}" into "{reference_frame}" by the TF of the '
            'bag',
        )
    taken = f'coordinates in frame "{map_frame}" were taken for those of "{reference_frame}"'
    if alignment is MapAlignment.NONE:
        return Placement(Similarity.identity(), f'{taken}, as --align none asks for')
    if alignment is None or (alignment is MapAlignment.KNOWN and not transform_given):
        raise ConfigError(
            f'the map is in frame "{map_frame}", its reference in "{reference_frame}", and the TF '
            f'of the bag does not connect them (it has {", ".join(transforms.frames) or "none"}); '
            'choose --align icp, trajectory, or known with --transform; or --align none, if the '
            'frames are the same'
        )
    return Placement(Similarity.identity(), f'before alignment {taken}')
