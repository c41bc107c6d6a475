"""Where a recorded map lies in the frame of its reference by the bag's own word."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from osmabench_ros.errors import ConfigError
from osmabench_ros.geometry.similarity import Similarity
from osmabench_ros.geometry.transform_tree import TransformTree


class MapAlignment(str, Enum):
    """How a map is aligned beyond the frames that the bag tells."""

    NONE = 'none'
    KNOWN = 'known'
    ICP = 'icp'
    TRAJECTORY = 'trajectory'


@dataclass(frozen=True, eq=False)
class Placement:
    """Where the map lies by the bag's own word.

    Parameters
    ----------
    similarity : Similarity
        Takes map coordinates to the frame of the reference.
    remark : str
        How that is known.
    """

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
    """Return where the map lies without any fitting.

    Parameters
    ----------
    map_frame, reference_frame : str
        Frames of the map and of its reference; '' for the reference if it is that of the map.
    stamp_ns : int
        Time of the map.
    transforms : TransformTree
        TF of the bag.
    alignment : MapAlignment, optional
        What the user wants; None if the user does not say.
    transform_given : bool
        Whether the user gives a transformation.

    Raises
    ------
    ConfigError
        If the frames differ, TF does not tell how, and the user does not say what to do.
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
