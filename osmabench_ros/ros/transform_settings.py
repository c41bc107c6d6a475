"""What of the TF tree the bridge publishes beside a stack that publishes some of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from osmabench_ros.errors import ConfigError
from osmabench_ros.mappers.transform_edges import MapOrigin, TfMode, parents_of, way_up
from osmabench_ros.ros.topics import BASE_FRAME, CAMERA_FRAME, CAMERA_LINK_FRAME, WORLD_FRAME

DEFAULT_MAP_FRAME = 'map'
"""REP 105; what world_to_map places where the edges of the stack are not declared."""


@dataclass(frozen=True)
class TfSettings:
    """Who publishes which edge; `mode` says which one from the world is ours.

    If that is world → map, `map_origin` says where the root of a stack's tree lies. `transforms`
    are edges that a stack publishes itself, as ``'odom->base_link'``. Raises ConfigError, which
    names both keys, if they contradict the mode.
    """

    mode: TfMode = TfMode.AUTO
    map_origin: MapOrigin = MapOrigin.FIRST_POSE
    transforms: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        theirs, child = self._theirs, self.below_world
        if child in theirs or child == WORLD_FRAME:
            raise ConfigError(
                f'"publish_tf: {self.mode.value}" contradicts "transforms: '
                f'[{", ".join(self.transforms)}]": the stack says itself where "{child}" lies; '
                'leave out publish_tf, or correct transforms'
            )

    @classmethod
    def from_parameters(cls, values: Mapping[str, Any]) -> TfSettings:
        """Read the values of `TF_PARAMETERS`."""
        transforms = tuple(item for item in values['transforms'] if item)
        return cls(TfMode(values['publish_tf']), MapOrigin(values['map_origin']), transforms)

    def parameters(self) -> dict[str, Any]:
        """Return the values of `TF_PARAMETERS`."""
        return {
            'publish_tf': self.mode.value,
            'map_origin': self.map_origin.value,
            # ROS knows no empty list.
            'transforms': list(self.transforms) or [''],
        }

    @property
    def below_world(self) -> str:
        """The frame whose edge from the world is ours, empty if none is."""
        if self.mode is TfMode.NONE:
            return ''
        if self.mode is TfMode.WORLD_TO_BASE:
            return BASE_FRAME
        theirs = self._theirs
        if BASE_FRAME in theirs:
            root = way_up(BASE_FRAME, theirs)[-1]
            return '' if root == WORLD_FRAME and self.mode is TfMode.AUTO else root
        return BASE_FRAME if self.mode is TfMode.AUTO else DEFAULT_MAP_FRAME

    @property
    def of_camera(self) -> tuple[str, ...]:
        """The frames of the camera whose edges are ours."""
        if self.mode is TfMode.NONE:
            return ()
        theirs = self._theirs
        return tuple(item for item in (CAMERA_LINK_FRAME, CAMERA_FRAME) if item not in theirs)

    @property
    def _theirs(self) -> dict[str, str]:
        try:
            return parents_of(self.transforms)
        except ValueError as error:
            raise ConfigError(f'"transforms": {error}') from error
