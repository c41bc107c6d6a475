"""Which edges of the TF tree the bridge publishes beside a stack that publishes others."""

from __future__ import annotations

from pydantic import model_validator

from osmabench_ros.base.contract import BASE_FRAME, CAMERA_FRAME, CAMERA_LINK_FRAME, WORLD_FRAME
from osmabench_ros.base.settings import setting
from osmabench_ros.base.strict import Strict
from osmabench_ros.errors import ConfigError, errors_as
from osmabench_ros.mappers.transform_edges import MapOrigin, TfMode, parents_of, way_up

DEFAULT_MAP_FRAME = 'map'
"""REP 105; what world_to_map places where the edges of the stack are not declared."""


class TfSettings(Strict):
    """Who publishes which edge; ConfigError names both keys if two contradict each other."""

    transforms: tuple[str, ...] = setting(
        (), 'Edges that a stack publishes on TF itself, such as "map->odom" and "odom->base_link".'
    )
    publish_tf: TfMode = setting(
        TfMode.AUTO,
        'Edge from the world to publish on TF; auto: the one that transforms leave '
        'free; none leaves out the camera too.',
    )
    map_origin: MapOrigin = setting(
        MapOrigin.FIRST_POSE, 'Where a stack that localises itself puts the origin of its map.'
    )

    @model_validator(mode='after')
    def _one_authority(self) -> TfSettings:
        theirs, child = self._theirs, self.below_world
        if child in theirs or child == WORLD_FRAME:
            raise ConfigError(
                f'"publish_tf: {self.publish_tf.value}" contradicts "transforms: '
                f'[{", ".join(self.transforms)}]": the stack says itself where "{child}" lies; '
                'leave out publish_tf, or correct transforms'
            )
        return self

    @property
    def below_world(self) -> str:
        """The frame whose edge from the world is ours, empty if none is."""
        if self.publish_tf is TfMode.NONE:
            return ''
        if self.publish_tf is TfMode.WORLD_TO_BASE:
            return BASE_FRAME
        theirs = self._theirs
        if BASE_FRAME in theirs:
            root = way_up(BASE_FRAME, theirs)[-1]
            return '' if root == WORLD_FRAME and self.publish_tf is TfMode.AUTO else root
        return BASE_FRAME if self.publish_tf is TfMode.AUTO else DEFAULT_MAP_FRAME

    @property
    def of_camera(self) -> tuple[str, ...]:
        """The frames of the camera whose edges are ours."""
        if self.publish_tf is TfMode.NONE:
            return ()
        theirs = self._theirs
        return tuple(item for item in (CAMERA_LINK_FRAME, CAMERA_FRAME) if item not in theirs)

    @property
    def _theirs(self) -> dict[str, str]:
        with errors_as(ConfigError, '"transforms"', ValueError):
            return parents_of(self.transforms)
