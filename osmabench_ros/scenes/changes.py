"""Changes of a scene: move, remove, add, replace, recolor, open or close, switch; and contact."""

from __future__ import annotations

import hashlib
import math
from collections import defaultdict
from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from pydantic import BeforeValidator, Field, TypeAdapter, model_validator

from osmabench_ros.base.documents import read_yaml
from osmabench_ros.base.strict import FilePath, Strict
from osmabench_ros.errors import ConfigError, SceneError, choose
from osmabench_ros.geometry.boxes import AxisAlignedBox
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.assets import center_meshes, get_axes, load_meshes, map_linearly
from osmabench_ros.scenes.ground_truth import (
    build_ground_truth_graph,
    find_room_of,
    is_structure,
    measure_sizes,
)
from osmabench_ros.scenes.scene import Light, Material, Scene, SceneObject, make_triple
from osmabench_ros.scenes.visibility import RayCaster
from osmabench_ros.semantics.labels import COLOR_EXAMPLES, UNLABELLED
from osmabench_ros.semantics.scene_graph import RelationType

# Surfaces may reach this far into each other: objects on a rug or a cushion.
TOUCH_M = 0.01

_FIRMNESS = {RelationType.ON.value: 2, RelationType.IN.value: 2, RelationType.ATTACHED_TO.value: 1}


def find_holders(scene: Scene, places: Iterable[AxisAlignedBox]) -> dict[int, tuple[int, int]]:
    """Return how firmly objects near some places are held, 1 or 2, and the id of the holder.

    2 means on or in another object, 1 attached to one, by the relations of the scene graph.
    Objects that nothing holds are left out, as are parts of the building.
    """
    boxes = list(places)
    near = tuple(
        item for item in scene.objects if any(item.box.measure_gap(box) < 0.1 for box in boxes)
    )
    if not near:
        return {}
    held: dict[int, tuple[int, int]] = {}
    for edge in build_ground_truth_graph(replace(scene, objects=near)).edges:
        firmness = _FIRMNESS.get(edge.type, 0)
        if firmness > held.get(edge.source, (0, 0))[0]:
            held[edge.source] = (firmness, edge.target)
    return held


def find_doubtful_objects(scene: Scene) -> dict[str, tuple[SceneObject, ...]]:
    """Return doubtful objects by reason: no class, no room, nothing that holds them."""
    things = [item for item in scene.objects if not is_structure(scene, item)]
    held = find_holders(scene, (scene.box,))
    floating = [item for item in things if item.instance_id not in held]
    found = {
        'without a class': [item for item in things if item.class_id == UNLABELLED],
        'in no room': [item for item in things if item.room_id is None] if scene.rooms else [],
        'held by nothing, as if they floated': floating,
    }
    for parent, parts in find_parts_of_assemblies(scene).items():
        remedy = 'one "instance" in scene.json, or an import with --group-by parent, joins them'
        found[f'touch under the node "{parent}", perhaps parts of one object ({remedy})'] = parts
    return {what: tuple(items) for what, items in found.items() if items}


def find_parts_of_assemblies(scene: Scene) -> dict[str, list[SceneObject]]:
    """Return the objects that touch another one under the same parent node, by that node."""
    below: dict[str, list[SceneObject]] = defaultdict(list)
    for item in scene.objects:
        if item.parent and not is_structure(scene, item):
            below[item.parent].append(item)
    touching = {parent: _find_touching(items) for parent, items in below.items()}
    return {parent: items for parent, items in touching.items() if items}


def _find_touching(items: Sequence[SceneObject]) -> list[SceneObject]:
    pairs = combinations(items, 2)
    near = [pair for pair in pairs if pair[0].box.measure_gap(pair[1].box) <= TOUCH_M]
    ids = {item.instance_id for pair in near for item in pair}
    return [item for item in items if item.instance_id in ids]


def find_carried_objects(scene: Scene, item: SceneObject) -> tuple[SceneObject, ...]:
    """Return the objects on, in or attached to an object, directly or over others."""
    found = {item.instance_id: item}
    held = find_holders(scene, (item.box,))
    while taken := [key for key, (_, by) in held.items() if by in found and key not in found]:
        found |= {key: scene.by_instance[key] for key in taken}
        held |= find_holders(scene, (scene.by_instance[key].box for key in taken))
    return tuple(found.values())[1:]


def find_collision(scene: Scene, item: SceneObject, without: Container[int]) -> SceneObject | None:
    """Return an object that collides with one, None if it is free; `without` are not obstacles.

    Two objects collide if an edge of one passes a face of the other after the first was shrunk by
    TOUCH_M on every side, or if one is within the other, unless that is part of the building.
    """
    probe = _shrink(item)
    single = RayCaster(replace(scene, objects=(probe,)))
    for other in scene.objects:
        skipped = other.instance_id == item.instance_id or other.instance_id in without
        if skipped or not probe.box.measure_intersection(other.box) > 0:
            continue
        caster = RayCaster(replace(scene, objects=(other,)))
        if _passes(probe, caster, other.box) or _passes(other, single, probe.box):
            return other
        solid = other.class_id != UNLABELLED and not is_structure(scene, other)
        if (solid and _is_within(probe, other, caster)) or _is_within(other, probe, single):
            return other
    return None


def _shrink(item: SceneObject) -> SceneObject:
    box = item.box
    factor = np.maximum(1.0 - 2 * TOUCH_M / np.maximum(box.size, 1e-6), 0.2)
    points = (item.world_vertices - box.center) * factor + box.center
    local = item.pose.inverse().transform(points).astype(np.float32)
    whole = replace(item.meshes[0], vertices=local, faces=item.world_faces)
    return replace(item, meshes=(whole,))


def _passes(item: SceneObject, caster: RayCaster, where: AxisAlignedBox) -> bool:
    """Return whether an edge of an object near a box passes a face of another."""
    start, along = _collect_edges(item)
    low = np.minimum(start, start + along)
    high = np.maximum(start, start + along)
    near = ((low <= where.maximum) & (high >= where.minimum)).all(axis=1)
    if not near.any():
        return False
    return bool((caster.distances(start[near], along[near]) < 1.0).any())


def _collect_edges(item: SceneObject) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return starts and directions (N, 3) of the edges of all triangles, once each."""
    faces = item.world_faces
    pairs = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ends = item.world_vertices[np.unique(np.sort(pairs, axis=1), axis=0)]
    along = ends[:, 1] - ends[:, 0]
    real = np.linalg.norm(along, axis=1) > 1e-7
    return ends[real, 0], along[real]


def _is_within(inner: SceneObject, outer: SceneObject, caster: RayCaster) -> bool:
    """Return whether an object that passes no face of another is within its closed surface."""
    boxed = outer.box.contains(np.stack([inner.box.minimum, inner.box.maximum])).all()
    return bool(boxed) and bool(caster.find_enclosed(inner.world_vertices[:1])[0])


# A lamp's light hangs in its box or this close to it, and goes where the lamp goes.
LAMP_REACH_M = 0.1

DOOR_CLASS = 'door'
THICKEST_LEAF_M = 0.15


@dataclass(frozen=True)
class _Context:
    """The scene that a change meets, and the name of both in errors."""

    scene: Scene
    where: str

    def find(self, name: str) -> SceneObject:
        """Return the only object of a name."""
        names = [item.name for item in self.scene.objects]
        choose(name, names, SceneError, f'{self.where}: there is no object "{name}"')
        found = [item for item in self.scene.objects if item.name == name]
        if len(found) > 1:
            raise SceneError(f'{self.where}: {len(found)} objects are named "{name}"')
        return found[0]

    def find_movable(self, name: str) -> SceneObject:
        """Return the only object of a name, which is not a part of the building."""
        item = self.find(name)
        if is_structure(self.scene, item):
            raise SceneError(f'{self.where}: "{name}" is a part of the building and stays')
        return item

    def replace_objects(
        self, new: Iterable[SceneObject], gone: Collection[int] = (), shift: Pose | None = None
    ) -> Scene:
        """Return the scene with objects that are new or changed, if nothing collides or floats.

        Lights of objects that change go where they do, by a `shift`; others go with their object.
        """
        before = self.scene.by_instance
        fresh = {item.instance_id: item for item in new}
        left = [before[key] for key in (*fresh, *gone) if key in before]
        shining = {light.name for item in left for light in select_lights_of(self.scene, item)}
        lights = [light for light in self.scene.lights if shift or light.name not in shining]
        if shift is not None:
            lights = [_shift_light(x, shift) if x.name in shining else x for x in lights]
        objects = {key: item for key, item in before.items() if key not in gone} | fresh
        scene = replace(self.scene, objects=tuple(objects.values()), lights=tuple(lights))
        self._check(scene, left, fresh)
        return scene

    def _check(self, scene: Scene, left: Sequence[SceneObject], new: Collection[int]) -> None:
        for item in scene.objects:
            met = find_collision(scene, item, new) if item.instance_id in new else None
            if met is not None and not self._is_old_collision(item, met):
                raise SceneError(f'{self.where}: "{item.name}" would collide with "{met.name}"')
        resting = {
            part.instance_id
            for item in left
            for part in (item, *find_carried_objects(self.scene, item))
        }
        places = [*(item.box for item in left), *(scene.by_instance[key].box for key in new)]
        was, now = (find_holders(known, places) for known in (self.scene, scene))
        for key in sorted((resting | set(new)) & scene.by_instance.keys()):
            needed = was.get(key, (0, 0))[0] if key in self.scene.by_instance else 1
            if now.get(key, (0, 0))[0] < needed:
                name = scene.by_instance[key].name
                remedy = 'choose another place, or move or remove it first'
                raise SceneError(f'{self.where}: "{name}" would float; {remedy}')

    def _is_old_collision(self, item: SceneObject, met: SceneObject) -> bool:
        """Return whether two objects collided before."""
        old = self.scene.by_instance.get(item.instance_id)
        if old is None or met.instance_id not in self.scene.by_instance:
            return False
        pair = replace(self.scene, objects=(old, self.scene.by_instance[met.instance_id]))
        return find_collision(pair, old, ()) is not None

    def make(self, change: New, name: str) -> SceneObject:
        """Return the added object, upright about the origin, with a new id and no room."""
        if name in {item.name for item in self.scene.objects}:
            raise SceneError(f'{self.where}: there is an object "{name}" already; choose "name"')
        taken = [item.instance_id for item in self.scene.objects]
        key = 1 + max(taken + [room.id for room in self.scene.rooms])
        if change.file is None:
            like = self.find_movable(change.like)
            return replace(like, instance_id=key, name=name, room_id=None)
        known = self.scene.label_set.by_name
        problem = f'{self.where}: the scene has no class "{change.label}"'
        choose(change.label, known, SceneError, problem)
        loaded = load_meshes(change.file.expanduser())
        axes = get_axes(change.file)
        meshes, _ = center_meshes([map_linearly(mesh, axes) for mesh in loaded])
        class_id = self.scene.label_set.id_of(change.label)
        item = SceneObject(key, name, class_id, meshes)
        return replace(item, attributes=measure_sizes(item))

    def place(self, item: SceneObject, at: ArrayLike, turn_deg: float) -> SceneObject:
        """Return a turned object with the middle of its lower side at a point of the world."""
        turned = replace(item, pose=displace(item, turn_deg) @ item.pose)
        pose = Pose(np.eye(3), np.subtract(at, find_foot(turned.box))) @ turned.pose
        return _assign_room(replace(turned, pose=pose), self.scene)


def find_foot(box: AxisAlignedBox) -> NDArray[np.float64]:
    """Return the middle of the lower side of a box."""
    return np.array([*box.center[:2], box.minimum[2]])


def _assign_room(item: SceneObject, scene: Scene) -> SceneObject:
    """Return an object with the room that it is in."""
    return replace(item, room_id=find_room_of(item, scene.rooms)) if scene.rooms else item


def select_lights_of(scene: Scene, item: SceneObject) -> tuple[Light, ...]:
    """Return the lamps' lights that belong to an object."""
    return tuple(
        light
        for light in scene.lights
        if light.lamp
        and not light.attached_to_camera
        and item.box.contains(np.array(light.position), LAMP_REACH_M)
    )


def _shift_light(light: Light, shift: Pose) -> Light:
    position = make_triple(shift.transform(np.array(light.position)))
    direction = make_triple(shift.rotation @ light.direction)
    return replace(light, position=position, direction=direction)


def _replace_object(scene: Scene, item: SceneObject) -> Scene:
    """Return a scene with an object in place of the one with its id."""
    objects = {**scene.by_instance, item.instance_id: item}
    return replace(scene, objects=tuple(objects.values()))


def displace(item: SceneObject, turn_deg: float, offset_m: ArrayLike = (0, 0, 0)) -> Pose:
    """Return a displacement in the world: a turn left about an object's middle, and an offset."""
    turn = Pose.from_yaw(math.radians(turn_deg)).rotation
    middle = item.box.center
    return Pose(turn, middle - turn @ middle + np.asarray(offset_m))


class Move(Strict):
    """An object moves, with all that it carries: metres along the world's axes, a turn left."""

    kind: Literal['move']
    object: str
    offset_m: tuple[float, float, float] = (0.0, 0.0, 0.0)
    turn_deg: float = 0.0

    @model_validator(mode='after')
    def _check_moves(self) -> Move:
        if not any(self.offset_m) and not self.turn_deg:
            raise ValueError('say how it moves: give "offset_m" or "turn_deg"')
        return self

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        item = at.find_movable(self.object)
        shift = displace(item, self.turn_deg, self.offset_m)
        group = (item, *find_carried_objects(at.scene, item))
        moved = [_assign_room(replace(part, pose=shift @ part.pose), at.scene) for part in group]
        return at.replace_objects(moved, shift=shift)


class Remove(Strict):
    """Removes an object, and if `carried` is true all that it carries."""

    kind: Literal['remove']
    object: str
    carried: bool = False

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        item = at.find_movable(self.object)
        group = (item, *(find_carried_objects(at.scene, item) if self.carried else ()))
        return at.replace_objects((), {part.instance_id for part in group})


class New(Strict):
    """A new object: `like` another one of the scene, or a mesh `file` of a class `label`.

    Files are in metres; glTF is y-up, other formats z-up.
    """

    like: str = ''
    file: FilePath | None = None
    label: str = ''

    @model_validator(mode='after')
    def _check_source(self) -> New:
        if bool(self.like) == (self.file is not None):
            raise ValueError('a new object needs either "like" or "file"')
        if self.file is not None and not self.label:
            raise ValueError('a file does not say its class; give "label"')
        return self


class Add(New):
    """Adds an object; the middle of its lower side is at `position_m`, in the world."""

    kind: Literal['add']
    name: str = Field(min_length=1)
    position_m: tuple[float, float, float]
    turn_deg: float = 0.0

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        new = at.place(at.make(self, self.name), self.position_m, self.turn_deg)
        return at.replace_objects([new])


class Replace(New):
    """Replaces an object by a new one called `name`, which must hold all that the old one did."""

    kind: Literal['replace']
    object: str
    name: str = ''
    turn_deg: float = 0.0

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        old = at.find_movable(self.object)
        new = at.make(self, self.name or f'{old.name}_replaced')
        new = at.place(new, find_foot(old.box), self.turn_deg)
        return at.replace_objects([new], {old.instance_id})


class Recolor(Strict):
    """Gives an object another colour, without its texture, or the look of another (`like`)."""

    kind: Literal['recolor']
    object: str
    color: str = ''
    material: str = ''
    like: str = ''

    @model_validator(mode='after')
    def _check_look(self) -> Recolor:
        if bool(self.like) == bool(self.color):
            raise ValueError('say how it looks: give "color" or "like"')
        if self.color:
            problem = f'"{self.color}" is not a known colour'
            choose(self.color, COLOR_EXAMPLES, ValueError, problem)
        return self

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        item = at.find(self.object)
        source = at.find(self.like) if self.like else item
        look = source.meshes[0].material
        known = {k: str(v) for k, v in source.attributes.items() if k in ('color', 'material')}
        if self.color:
            look = Material(make_triple(np.array(COLOR_EXAMPLES[self.color]) / 255))
            known['color'] = self.color
        if self.material:
            known['material'] = self.material
        meshes = tuple(replace(mesh, material=look) for mesh in item.meshes)
        new = replace(item, meshes=meshes, attributes={**item.attributes, **known})
        return _replace_object(at.scene, new)


class Swing(Strict):
    """A door opens or closes: the leaf turns about one of its upright edges.

    Of the two edges and two senses the first that leaves the leaf free is taken, so an open leaf
    closes by the angle by which it is open.
    """

    kind: Literal['open', 'close']
    object: str
    angle_deg: float = Field(80.0, gt=0, le=180)

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        item = at.find(self.object)
        local = np.ptp(np.concatenate([mesh.vertices for mesh in item.meshes]), axis=0)
        is_door = at.scene.class_name(item).split()[-1:] == [DOOR_CLASS]
        if not is_door or local.min() > THICKEST_LEAF_M or item.box.size[2] < 0.5:
            leaf = 'a leaf of a door: a thin upright slab of a class "... door"'
            remedy = 'for joints of Habitat change initial_joint_pose'
            raise SceneError(f'{at.where}: "{item.name}" is not {leaf}; {remedy}')
        wanted = 'open' if self.kind == 'open' else 'closed'
        if item.attributes.get('state') == wanted:
            raise SceneError(f'{at.where}: "{item.name}" is {wanted} already')
        # The axes of the leaf in the world: the longer level one leads from edge to edge.
        level = int(np.argmax(local[:2]))
        along = item.pose.rotation[:, level] * local[level] / 2
        for edge, sense in product((-1.0, 1.0), repeat=2):
            hinge = item.box.center + edge * along
            turn = Pose.from_yaw(sense * math.radians(self.angle_deg)).rotation
            pose = Pose(turn, hinge - turn @ hinge) @ item.pose
            new = replace(item, pose=pose, attributes={**item.attributes, 'state': wanted})
            scene = _replace_object(at.scene, new)
            if find_collision(scene, new, ()) is None:
                return scene
        problem = f'cannot turn by {self.angle_deg:g} degrees without a collision'
        raise SceneError(f'{at.where}: "{item.name}" {problem}; choose another "angle_deg"')


class Switch(Strict):
    """Switches a lamp, named by its object or its light, on, with an intensity, or off."""

    kind: Literal['switch']
    lamp: str
    on: bool
    intensity: float = Field(1.0, gt=0)

    def apply(self, at: _Context) -> Scene:
        """Return the scene after this change."""
        named = [light for light in at.scene.lights if light.name == self.lamp]
        things = [item for item in at.scene.objects if item.name == self.lamp]
        if not named and not things:
            known = [light.name for light in at.scene.lights if light.lamp]
            problem = f'{at.where}: there is no lamp or light "{self.lamp}"'
            choose(self.lamp, known, SceneError, problem)
        lights = named or [light for item in things for light in select_lights_of(at.scene, item)]
        if not lights:
            raise SceneError(f'{at.where}: no light of the scene belongs to "{self.lamp}"')
        state = 'on' if self.on else 'off'
        if any(light.intensity for light in lights) is self.on:
            raise SceneError(f'{at.where}: "{self.lamp}" is {state} already')
        intensity = self.intensity if self.on else 0.0
        chosen = {light.name for light in lights}
        switched = (
            replace(light, intensity=intensity) if light.name in chosen else light
            for light in at.scene.lights
        )
        scene = replace(at.scene, lights=tuple(switched))
        for item in scene.objects:
            is_lamp = scene.class_name(item).split()[-1:] in (['lamp'], ['light'])
            if is_lamp and chosen & {light.name for light in select_lights_of(scene, item)}:
                changed = replace(item, attributes={**item.attributes, 'state': state})
                scene = _replace_object(scene, changed)
        return scene


Change = Annotated[
    Move | Remove | Add | Replace | Recolor | Swing | Switch, Field(discriminator='kind')
]


def _read_file(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return read_yaml(Path(given).expanduser(), ConfigError)
    except (ConfigError, RuntimeError) as error:  # the latter for the home of an unknown user
        raise ValueError(str(error)) from error


# Changes one after another, or the path of a YAML file that lists them.
Changes = Annotated[tuple[Change, ...], BeforeValidator(_read_file)]


def apply_changes(scene: Scene, changes: Sequence[Change]) -> Scene:
    """Apply changes to meshes, classes and lights of a scene, one after another.

    Parameters
    ----------
    scene : Scene
        Stays as it is.
    changes : sequence of Change
        Each meets the scene that those before it left.

    Returns
    -------
    Scene
        An ordinary scene, from which scene graph, images and navigation follow as from any. It
        has the name and digest of the changes, and no file.

    Raises
    ------
    SceneError
        If a change names an object or light that the scene does not have, or if an object would
        collide with another or be held less firmly than before, so that it floats. Objects that
        collided or floated before may still do so.
    """
    for number, change in enumerate(changes):
        where = f'scene {scene.dataset}/{scene.name}, change {number + 1} ({change.kind})'
        scene = change.apply(_Context(scene, where))
    if not changes:
        return scene
    listed = TypeAdapter(tuple[Change, ...]).dump_json(tuple(changes))
    digest = hashlib.sha256(scene.source_sha256.encode() + listed).hexdigest()
    name = f'{scene.name}-changed-{digest[:8]}'
    return replace(scene, name=name, source_sha256=digest, source='')
