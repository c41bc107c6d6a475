"""Which object and class of a scene a pixel of Habitat-Sim's id images shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.errors import SimulationError
from osmabench_ros.scenes.scene import Scene, SceneObject
from osmabench_ros.semantics.labels import NO_INSTANCE, UNLABELLED

STAGE_PIXEL = 0
"""Habitat-Sim's id of the stage, and of pixels that show nothing."""

STAGE_NAME = 'stage'

UNANNOTATED_NAME = 'unannotated'
"""What a scene calls the part of a semantic mesh that no annotation claims."""


class Identities:
    """Translates id images of a scene by what the worker found; SimulationError if they differ."""

    def __init__(self, scene: Scene, inventory: Mapping[str, Any]) -> None:
        where = f'scene {scene.dataset}/{scene.name}'
        stage = [item for item in scene.objects if item.name == STAGE_NAME]
        placed = [item for item in scene.objects if item.name != STAGE_NAME]
        found = [*inventory['objects'], *inventory['articulated']]
        self._object_of: dict[int, SceneObject] = {}
        self._rest: SceneObject | None = None
        self.movable: dict[int, int] = {}
        if inventory['annotations']:
            self._match_annotations(scene, inventory['annotations'], where)
        else:
            _check_same(placed, found, where)
            for item, other in zip(placed, found, strict=True):
                self._object_of.update(dict.fromkeys(other['ids'], item))
            self._object_of.update((STAGE_PIXEL, item) for item in stage)
            rigid = len(inventory['objects'])
            self.movable = {
                item.instance_id: other['ids'][0]
                for item, other in zip(placed[:rigid], found[:rigid], strict=True)
            }
        # One more than the largest id stands for all ids that nothing was matched with.
        self._unknown = max(self._object_of, default=0) + 1
        rest = self._rest
        unknown = (NO_INSTANCE, UNLABELLED) if rest is None else (rest.instance_id, rest.class_id)
        self._instances = np.full(self._unknown + 1, unknown[0], np.int32)
        self._classes = np.full(self._unknown + 1, unknown[1], np.uint16)
        for pixel, item in self._object_of.items():
            self._instances[pixel], self._classes[pixel] = item.instance_id, item.class_id

    def _match_annotations(
        self, scene: Scene, annotations: Sequence[Mapping[str, Any]], where: str
    ) -> None:
        """Match a semantic mesh, whose pixels hold the ids of its annotation."""
        known = {int(item['id']) for item in annotations}
        for item in scene.objects:
            if item.name == UNANNOTATED_NAME:
                self._rest = item
            elif item.instance_id in known:
                self._object_of[item.instance_id] = item
            else:
                raise SimulationError(
                    f'{where}: object "{item.name}" has instance id {item.instance_id}, which the '
                    'semantic annotation that Habitat-Sim loaded does not have'
                )

    def translate(
        self, pixels: NDArray[np.uint32], surface: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        """Return instance and class images, (height, width), of Habitat-Sim's ids on `surface`."""
        index = np.minimum(pixels, self._unknown)
        instance = np.where(surface, self._instances[index], np.int32(NO_INSTANCE))
        return instance, np.where(surface, self._classes[index], np.uint16(UNLABELLED))


def _check_same(
    ours: Sequence[SceneObject], theirs: Sequence[Mapping[str, Any]], where: str
) -> None:
    for item, other in zip(ours, theirs, strict=False):
        # An object is called '<template>.<count>', in Habitat-Sim '<template>_:<count>'.
        if item.name.rpartition('.')[0] != other['handle'].rpartition('_:')[0]:
            raise SimulationError(
                f'{where}: object "{item.name}" is "{other["handle"]}" in Habitat-Sim; '
                'dataset_config must name the data set that the scene was loaded from'
            )
    if len(ours) != len(theirs):
        raise SimulationError(
            f'{where} has {len(ours)} objects, Habitat-Sim loaded {len(theirs)}; a file of the '
            'data set is missing or broken, or dataset_config names another version of it'
        )
