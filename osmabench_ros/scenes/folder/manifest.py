"""The manifest of a scene folder, `scene.json`.

`up` and `unit_m` describe the mesh file. Everything else in the manifest is in the z-up world,
metres and radians.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Literal

from pydantic import Field

from osmabench_ros.base.limits.documents import read_json
from osmabench_ros.base.strict import Strict, validated
from osmabench_ros.errors import SceneError
from osmabench_ros.scenes.lights import LightKind

FORMAT = 'osmabench.scene/1'
MANIFEST = 'scene.json'

Triple = tuple[float, float, float]


class ManifestClass(Strict):
    """A class of the label set."""

    id: int
    name: str
    structure: bool | None = None


class ManifestNode(Strict):
    """What a node of the mesh file, with all nodes below it, is.

    Without `class` it is unlabelled, without `instance` it gets the next free id.
    """

    class_name: str = Field('', alias='class')
    instance: int | None = Field(None, ge=1)
    attributes: dict[str, str | float | bool] = Field(default_factory=dict)
    room: str = ''


class ManifestRoom(Strict):
    """A room and its box."""

    name: str
    label: str = ''
    id: int | None = Field(None, ge=1)
    min: Triple
    max: Triple


class ManifestLight(Strict):
    """A light of the scene."""

    name: str
    kind: LightKind = LightKind.POINT
    position: Triple = (0.0, 0.0, 0.0)
    direction: Triple = (0.0, 0.0, -1.0)
    color: Triple = (1.0, 1.0, 1.0)
    intensity: float = 1.0
    spot_half_angle_rad: float = math.pi / 4
    lamp: bool = True
    room: str = ''


class Manifest(Strict):
    """Content of `scene.json`; without `classes`, names of nodes are numbered by alphabet."""

    format: Literal['osmabench.scene/1'] = 'osmabench.scene/1'
    dataset: str = 'folder'
    name: str
    file: str
    up: Literal['y', 'z'] = 'y'
    unit_m: float = Field(1.0, gt=0)
    classes: tuple[ManifestClass, ...] = ()
    nodes: dict[str, ManifestNode]
    rooms: tuple[ManifestRoom, ...] = ()
    lights: tuple[ManifestLight, ...] = ()
    ambient: float = Field(0.1, ge=0)
    left_out: tuple[str, ...] = ()


def read_manifest(path: Path) -> Manifest:
    """Read and check a manifest; SceneError names what is missing or malformed."""
    return validated(Manifest, read_json(path, SceneError), str(path), SceneError)
