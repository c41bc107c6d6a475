"""The scene: objects with meshes, materials and classes, rooms, lights. World frame, z up."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.specification import SceneSpecification
from osmabench_ros.semantics.labels import UNLABELLED, LabelSet
from osmabench_ros.semantics.scene_graph import AttributeValue

# A spot shines fully up to this share of its half angle, then ever less up to the edge.
SPOT_INNER_SHARE = 0.8


Triple = tuple[float, float, float]


def make_triple(values: ArrayLike) -> Triple:
    """Return three numbers of an array as plain ones."""
    x, y, z = np.asarray(values, float).tolist()
    return x, y, z


class LightKind(str, Enum):
    """How a light radiates."""

    POINT = 'point'
    DIRECTIONAL = 'directional'
    SPOT = 'spot'


@dataclass(frozen=True)
class Light:
    """One light source.

    Parameters
    ----------
    name : str
        Unique in the scene.
    kind : LightKind
        Point, directional or spot.
    position : tuple of float
        Metres; in the world, or in the optical frame if `attached_to_camera`.
    direction : tuple of float
        Direction the light travels along, same frame as position; unused by point lights.
    color : tuple of float
        Linear RGB in [0, 1].
    intensity : float
        Linear factor on the colour; the irradiance at 1 m of a point light. May be negative, as
        in ReplicaCAD's light set: it then takes from other lights, not from ambient light.
    spot_half_angle_rad : float
        From the axis to the edge of a spot's cone.
    attached_to_camera : bool
        Whether the light moves with the camera.
    lamp : bool
        True for the lamps of the scene that the dynamic condition switches off, false for fill
        lights.
    room_id : int, optional
        Id of the room the light belongs to.
    """

    name: str
    kind: LightKind = LightKind.POINT
    position: Triple = (0.0, 0.0, 0.0)
    direction: Triple = (0.0, 0.0, -1.0)
    color: Triple = (1.0, 1.0, 1.0)
    intensity: float = 1.0
    spot_half_angle_rad: float = math.pi / 4
    attached_to_camera: bool = False
    lamp: bool = True
    room_id: int | None = None


@dataclass(frozen=True)
class Lighting:
    """Everything that shines while one frame is rendered.

    Parameters
    ----------
    lights : tuple of Light
        Lights that are on.
    ambient : float
        Linear factor on the albedo; 1 without lights shows textures as they are.
    exposure : float
        Linear factor on the image before it is encoded.
    shadows : bool
        Whether lights cast shadows.
    compat : bool
        Whether the image is made as OSMa-Bench's are: clipped where it is brighter than white,
        even if the simulator has a tone curve, and with the settings of its generator if the
        simulator is Habitat-Sim.
    """

    lights: tuple[Light, ...] = ()
    ambient: float = 0.0
    exposure: float = 1.0
    shadows: bool = True
    compat: bool = False

    @classmethod
    def unlit(cls) -> Lighting:
        """Return the nominal light: textures as they are, no shading."""
        return cls(lights=(), ambient=1.0, shadows=False)


@dataclass(frozen=True, eq=False)
class Material:
    """How a surface looks.

    Parameters
    ----------
    base_color : tuple of float
        sRGB-encoded colour in [0, 1], multiplied with the texture.
    texture : ndarray of uint8, shape (h, w, 3), optional
        sRGB image, row 0 at v = 0; it repeats.
    metallic, roughness : float
        In [0, 1], as glTF 2.0 defines them; the rendering `fine` shows them.
    surface : ndarray of uint8, shape (h, w, 3), optional
        Image laid as `texture`, linear; its green is multiplied with `roughness` and its blue with
        `metallic`.
    """

    base_color: Triple = (0.8, 0.8, 0.8)
    texture: NDArray[np.uint8] | None = None
    metallic: float = 0.0
    roughness: float = 1.0
    surface: NDArray[np.uint8] | None = None


# For surfaces without a material, or with a texture in a format that is not decoded here.
NEUTRAL = Material()


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles that share a material, in the coordinates of their object.

    Parameters
    ----------
    vertices : ndarray of float32, shape (V, 3)
        Metres.
    faces : ndarray of int32, shape (F, 3)
        Vertex indices, counter-clockwise seen from outside.
    normals : ndarray of float32, shape (V, 3)
        Unit vertex normals.
    uv : ndarray of float32, shape (V, 2)
        Texture coordinates.
    material : Material
        Shared by all faces.
    has_normals : bool
        Whether the source gave `normals`; if not, they are means over the faces around a vertex.
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]
    normals: NDArray[np.float32]
    uv: NDArray[np.float32]
    material: Material = field(default_factory=Material)
    has_normals: bool = True


@dataclass(frozen=True, eq=False)
class SceneObject:
    """A physical object.

    Parameters
    ----------
    instance_id : int
        Value in instance images, unique in the scene, >= 1.
    name : str
        Unique name, e.g. ``'mug_03'``.
    class_id : int
        Id in the scene's label set; UNLABELLED if the data set does not say.
    meshes : tuple of Mesh
        Surface in object coordinates.
    pose : Pose
        Object in the world.
    attributes : mapping
        Facts that the data set states: 'color', 'material', sizes in metres.
    room_id : int, optional
        Id of the room the object is in.
    parent : str
        Name of the node above it in its file, '' for none: parts of one object may share it.
    """

    instance_id: int
    name: str
    class_id: int
    meshes: tuple[Mesh, ...]
    pose: Pose = field(default_factory=Pose.identity)
    attributes: Mapping[str, AttributeValue] = field(default_factory=dict)
    room_id: int | None = None
    parent: str = ''

    @cached_property
    def world_vertices(self) -> NDArray[np.float32]:
        """All vertices in the world, shape (V, 3), meshes one after another."""
        local = np.concatenate([mesh.vertices for mesh in self.meshes])
        return self.pose.transform(local).astype(np.float32)

    @cached_property
    def world_faces(self) -> NDArray[np.int32]:
        """Faces into `world_vertices`, shape (F, 3)."""
        offsets = np.cumsum([0, *(len(mesh.vertices) for mesh in self.meshes[:-1])])
        parts = [mesh.faces + start for mesh, start in zip(self.meshes, offsets, strict=True)]
        return np.concatenate(parts).astype(np.int32)

    @cached_property
    def box(self) -> AxisAlignedBox:
        """Axis-aligned bounds in the world."""
        return AxisAlignedBox.around(self.world_vertices)


@dataclass(frozen=True, eq=False)
class Room:
    """A room of the scene.

    Parameters
    ----------
    id : int
        Unique among rooms and instances, >= 1.
    name : str
        For example ``'kitchen'``; unique in the scene.
    label : str
        Kind of room, e.g. ``'bedroom'`` for ``'bedroom 2'``.
    box : AxisAlignedBox
        Bounds between walls, floor and ceiling.
    """

    id: int
    name: str
    label: str
    box: AxisAlignedBox


@dataclass(frozen=True, eq=False)
class Scene:
    """A scene ready to be rendered and questioned.

    Parameters
    ----------
    dataset, name : str
        For example ``'apartment'`` and ``'seed_5'``.
    label_set : LabelSet
        Classes of the objects.
    objects : tuple of SceneObject
        Structure (walls, floors, ceilings) included.
    rooms : tuple of Room
        Empty if the data set has none.
    lights : tuple of Light
        The scene's own lights, world coordinates.
    ambient : float
        Linear ambient light of the baseline condition.
    source_sha256 : str
        Hex digest of the files or parameters the scene comes from.
    source : str
        Path of the file the scene was loaded from; empty if it was not loaded from one.
    lamp_rule : str
        By which rule lights are lamps; empty if the scene says so of each.
    left_out : tuple of str
        Files that the source of the scene names and an import has left out, with the reasons.
    specification : SceneSpecification, optional
        The content that was asked for; a change of the scene does not change it.

    Raises
    ------
    SceneError
        If ids repeat, there is nothing to render, or a class id has no name.
    """

    dataset: str
    name: str
    label_set: LabelSet
    objects: tuple[SceneObject, ...]
    rooms: tuple[Room, ...] = ()
    lights: tuple[Light, ...] = ()
    ambient: float = 0.1
    source_sha256: str = ''
    source: str = ''
    lamp_rule: str = ''
    left_out: tuple[str, ...] = ()
    specification: SceneSpecification | None = None

    def __post_init__(self) -> None:
        where = f'scene {self.dataset}/{self.name}'
        if not self.objects:
            raise SceneError(f'{where} has no objects; nothing can be rendered')
        ids = [item.instance_id for item in self.objects] + [room.id for room in self.rooms]
        twice = [str(item) for item, count in Counter(ids).items() if count > 1]
        if twice:
            text = f'id {", ".join(twice)} occurs more than once'
            raise SceneError(f'{where}: {text} among the instances and rooms')
        for item in self.objects:
            if item.instance_id < 1:
                raise SceneError(f'{where}: object "{item.name}" has instance id < 1')
            if item.class_id != UNLABELLED and item.class_id not in self.label_set.by_id:
                text = f'class id {item.class_id}, which label set "{self.label_set.name}" lacks'
                raise SceneError(f'{where}: object "{item.name}" has {text}')

    @cached_property
    def by_instance(self) -> Mapping[int, SceneObject]:
        """Objects by instance id."""
        return {item.instance_id: item for item in self.objects}

    @cached_property
    def box(self) -> AxisAlignedBox:
        """Bounds of all objects."""
        return AxisAlignedBox.holding(item.box for item in self.objects)

    @property
    def lamps_in_words(self) -> str:
        """Which lights are lamps, and why, as a sentence."""
        lamps = ', '.join(f'"{light.name}"' for light in self.lights if light.lamp) or 'none'
        where = f'lamps of scene {self.dataset}/{self.name}'
        rule = f'it does not say which, so {self.lamp_rule}' if self.lamp_rule else 'as it says'
        return f'{where}: {lamps} of {len(self.lights)} lights ({rule})'

    def class_name(self, item: SceneObject) -> str:
        """Return the class name of an object, 'unlabelled' without a class."""
        return self.label_set.name_of(item.class_id)
