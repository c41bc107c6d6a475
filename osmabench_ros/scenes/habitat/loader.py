"""Loads a scene of a Habitat scene data set, articulated objects and lights too, z up."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from osmabench_ros.base.documents import read_xml
from osmabench_ros.base.strict import validated
from osmabench_ros.errors import SceneError, choose
from osmabench_ros.geometry.axes import (
    WORLD_FROM_HABITAT,
    turn_from_habitat,
    turn_pose_from_habitat,
)
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.asset_files import (
    FrameScope,
    floats,
    locate_file_within,
    make_pose_from_rpy,
    number,
    read_object,
    vector,
)
from osmabench_ros.scenes.assets import load_meshes, map_linearly, move_mesh
from osmabench_ros.scenes.ground_truth import assign_rooms_to_lights, find_room_of, measure_sizes
from osmabench_ros.scenes.habitat import semantics
from osmabench_ros.scenes.habitat.dataset import (
    SUFFIX,
    HabitatDataset,
    Templates,
    place_instance,
    read_instance_pose,
)
from osmabench_ros.scenes.scene import (
    Light,
    LightKind,
    Material,
    Mesh,
    Room,
    Scene,
    SceneObject,
    Triple,
    make_triple,
)
from osmabench_ros.scenes.solids import make_shape
from osmabench_ros.semantics.labels import LabelSet, normalised_name

MOVING = ('revolute', 'continuous', 'prismatic')

# Value of `link_order` under which links count in the order of the file.
URDF_ORDER = 'urdf_order'


Joints = Mapping[str, float] | Sequence[float]


class Urdf:
    """A robot described by links and the joints between them; `where` begins all errors."""

    def __init__(self, tree: Element, where: str) -> None:
        self._tree, self._where = tree, where
        self._links = {link.get('name', ''): link for link in tree.iterfind('link')}
        ends = ((self._read_end(item, 'child'), item) for item in tree.iterfind('joint'))
        self._joints = dict(ends)
        self._parents = {key: self._read_end(item, 'parent') for key, item in self._joints.items()}

    def read_positions(self, given: Joints, link_order: str = '') -> dict[str, float]:
        """Return positions by joint, radians or metres, from an `initial_joint_pose`.

        Habitat-Sim gives values, an object's by the order of its keys, to the moving joints link
        by link (in `URDF_ORDER`, or parents first and siblings by name); the rest is at 0. Raises
        SceneError for values that are not numbers or too many, and for keys that are joints in
        another order.
        """
        moving = self.list_moving_joints(link_order)
        what = f'{self._where}: "initial_joint_pose"'
        keys = sorted(given) if isinstance(given, Mapping) else []
        if set(keys) & set(moving) and keys != moving[: len(keys)]:
            raise SceneError(f'{what} names joints; give a list for {", ".join(moving)}')
        values = [given[key] for key in keys] if isinstance(given, Mapping) else list(given)
        if len(values) > len(moving):
            counts = f'{len(values)} values, the URDF {len(moving)} moving joints'
            raise SceneError(f'{what} has {counts}')
        numbers = floats(values)
        if len(numbers) < len(values):
            raise SceneError(f'{what} must hold numbers')
        return dict(zip(moving, numbers.tolist(), strict=False))

    def list_moving_joints(self, link_order: str = '') -> list[str]:
        """Return the names of the joints that can move, in the order of Habitat-Sim's links."""
        ordered = [link for link in self._links if link in self._joints]
        if link_order != URDF_ORDER:
            bases = (link for link in self._links if link not in self._joints)
            ordered = [link for base in bases for link in self._iterate_below(base)]
        joints = (self._joints[link] for link in ordered)
        return [joint.get('name', '') for joint in joints if joint.get('type') in MOVING]

    def _iterate_below(self, link: str) -> Iterator[str]:
        """Yield the links below one, each before those below it."""
        below = [child for child, parent in self._parents.items() if parent == link]
        for child in sorted(below, key=lambda child: self._joints[child].get('name', '')):
            yield child
            yield from self._iterate_below(child)

    def load_meshes(
        self, path: Path, root: Path, joints: Joints, link_order: str = '', scale: float = 1.0
    ) -> tuple[Mesh, ...]:
        """Read the visual meshes, in the inertial frame of the root link, axes as in the file.

        They are within `root`; for `joints` and `link_order` see `read_positions`. `scale` is the
        factor by which the caller multiplies: Habitat-Sim scales links, not strokes, so that
        prismatic joints move by that much less here.
        """
        scope = self._make_scope(self.read_positions(joints, link_order), scale)
        known = {
            item.get('name'): self._read_material(item) for item in self._tree.iterfind('material')
        }
        bases = (link for name, link in self._links.items() if name not in self._joints)
        inertial = (item for base in bases for item in base.iterfind('inertial'))
        from_inertial = self._read_origin(next(inertial, None)).inverse()
        meshes: list[Mesh] = []
        for name, link in self._links.items():
            pose = from_inertial @ scope.resolve(Pose.identity(), name)
            for visual in link.iterfind('visual'):
                offset = pose @ self._read_origin(visual)
                given = visual.find('material')
                material = None
                if given is not None:
                    material = self._read_material(given) or known.get(given.get('name'))
                for mesh in self._read_geometry(visual, path, root):
                    look = mesh.material if material is None else material
                    meshes.append(replace(move_mesh(mesh, offset), material=look))
        if not meshes:
            raise SceneError(f'{self._where}: {path} has no visual meshes')
        return tuple(meshes)

    def _make_scope(self, positions: Mapping[str, float], scale: float) -> FrameScope:
        """Return the links as frames, each in the link that a joint moves it in, if any."""
        entries = dict.fromkeys([*self._links, *self._parents.values()], (Pose.identity(), ''))
        for child, joint in self._joints.items():
            motion = self._compute_motion(joint, positions, scale)
            entries[child] = self._read_origin(joint) @ motion, self._parents[child]
        return FrameScope(entries, self._where)

    def _compute_motion(
        self, joint: Element, positions: Mapping[str, float], scale: float
    ) -> Pose:
        from scipy.spatial.transform import Rotation

        position = positions.get(joint.get('name', ''), 0.0)
        if joint.get('type') not in MOVING or position == 0:
            return Pose.identity()
        axis = self._read_vector(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0))
        axis = axis / max(float(np.linalg.norm(axis)), 1e-12)
        if joint.get('type') == 'prismatic':
            return Pose(np.eye(3), position / scale * axis)
        return Pose(Rotation.from_rotvec(position * axis).as_matrix(), np.zeros(3))

    def _read_geometry(self, visual: Element, path: Path, root: Path) -> tuple[Mesh, ...]:
        for item in visual.iterfind('geometry/*'):
            if item.tag == 'mesh':
                file = self._read_attribute(item, 'filename').removeprefix('package://')
                scale = self._read_vector(item, 'scale', (1.0, 1.0, 1.0))
                meshes = load_meshes(locate_file_within(root, file, path.parent, self._where))
                return tuple(map_linearly(mesh, np.diag(scale)) for mesh in meshes)
            shape = make_shape(item.tag, partial(self._read_vector, item))
            if shape is not None:
                return (shape,)
        return ()

    def _read_material(self, element: Element) -> Material | None:
        """Return the plain colour that replaces the look of a mesh, None without one."""
        color = element.find('color')
        if color is None:
            return None
        return Material(make_triple(self._read_vector(color, 'rgba', (1.0, 1.0, 1.0, 1.0))[:3]))

    def _read_origin(self, element: Element | None) -> Pose:
        origin = None if element is None else element.find('origin')
        xyz, rpy = (self._read_vector(origin, key, (0.0, 0.0, 0.0)) for key in ('xyz', 'rpy'))
        return make_pose_from_rpy(xyz, rpy)

    def _read_end(self, joint: Element, key: str) -> str:
        return self._read_attribute(joint.find(key), 'link')

    def _read_attribute(self, element: Element | None, key: str) -> str:
        value = None if element is None else element.get(key)
        if not value:
            raise SceneError(f'{self._where}: the URDF lacks the attribute "{key}"')
        return value

    def _read_vector(
        self, element: Element | None, key: str, default: tuple[float, ...]
    ) -> NDArray[np.float64]:
        text = None if element is None else element.get(key)
        given = {} if text is None else {key: text.split()}
        return vector(given, key, default, f'{self._where}: the URDF')


# Attributes of the template of an object, and its meshes and pose, z up.
Instance = tuple[Mapping[str, Any], tuple[Mesh, ...], Pose]


# For lights of a setup that do not say so themselves, with the key "lamp".
LAMP_RULE = 'every point or spot light of positive intensity is a lamp'


def read_lights(data: Mapping[str, Any], source: str) -> tuple[Light, ...]:
    """Convert a lighting configuration, y-up, with its scales of intensity, to z-up lights.

    Habitat-Sim knows no lamps: a light is one by `LAMP_RULE` unless it has the key "lamp".
    """
    entries = data.get('lights', {})
    if not isinstance(entries, dict):
        raise SceneError(f'{source}: "lights" must be an object of lights by name')
    scales = tuple(
        number(data, key, 1.0, source)
        for key in ('positive_intensity_scale', 'negative_intensity_scale')
    )
    return tuple(
        _make_light(name, item, scales, f'{source}: light "{name}"')
        for name, item in entries.items()
    )


def _make_light(
    name: str, item: Mapping[str, Any], scales: tuple[float, ...], where: str
) -> Light:
    # As in Habitat-Sim, a light without a type is directional if it has only a direction.
    inferred = 'directional' if 'direction' in item and 'position' not in item else 'point'
    shape = str(item.get('type', inferred))
    kinds = [kind.value for kind in LightKind]
    kind = LightKind(choose(shape.lower(), kinds, SceneError, f'{where} has type "{shape}"'))
    intensity = number(item, 'intensity', 1.0, where)
    on_camera = item.get('position_model', 'global') == 'camera'

    def turn_axes(key: str, default: Sequence[float]) -> Triple:
        value = vector(item, key, default, where)
        # A camera of Habitat has y up and looks along -z.
        return make_triple(value * [1.0, -1.0, -1.0] if on_camera else turn_from_habitat(value))

    lamp = item.get('lamp', intensity > 0 and kind is not LightKind.DIRECTIONAL)
    if not isinstance(lamp, bool):
        raise SceneError(f'{where}: "lamp" must be true or false, not {lamp!r}')
    return Light(
        name,
        kind,
        turn_axes('position', (0.0, 0.0, 0.0)),
        turn_axes('direction', (0.0, -1.0, 0.0)),
        make_triple(vector(item, 'color', (1.0, 1.0, 1.0), where)),
        intensity * (scales[0] if intensity >= 0 else scales[1]),
        number(item.get('spot', {}), 'outerConeAngle', math.pi / 2, where) / 2,
        attached_to_camera=on_camera,
        lamp=lamp,
    )


NO_STAGE = 'NONE'


def load_habitat_scene(path: Path, scene: str = '') -> Scene:
    """Load a scene instance or stage of a data set, the first without a name; or SceneError."""
    if not path.name.endswith(SUFFIX):
        raise SceneError(f'{path} is not a Habitat scene data set; its name must end in {SUFFIX}')
    return _SceneReader(HabitatDataset(path), scene).read()


class _SceneReader:
    """Collects the objects of one scene instance."""

    def __init__(self, dataset: HabitatDataset, scene: str) -> None:
        self.dataset, self.templates = dataset, Templates(dataset)
        self.name, self.instance, self.path = dataset.scene(scene)
        for file in {dataset.path: None, self.path: None}:
            self.templates.count(file, dataset.path)

    def read(self) -> Scene:
        """Return the scene."""
        name = self.instance.get('semantic_scene_instance', '')
        descriptor = self.dataset.semantic_descriptor(None if name is None else str(name))
        if descriptor is not None:
            self.templates.count(descriptor, self.path)
        labels = semantics.read_label_set(descriptor, self.dataset.name)
        stage = self._stage(labels)
        labels = stage.labels or labels
        taken = [item.instance_id for item in stage.objects] + [room.id for room in stage.rooms]
        first_id = max(taken, default=0) + 1
        rigid = self._list_entries('object_instances')
        packed = PackedNames.of_scene(self.dataset.path.parent, self.name)
        if packed is not None:
            self.templates.count(packed.path, self.path)
            labels = packed.label_set(self.dataset.name)
            rigid = packed.label_instances(rigid, labels)
        articulated = self._list_entries('articulated_object_instances')
        # Our export says ids; other entries get the next free ones.
        entries = [*rigid, *articulated]
        said = [semantics.read_added(entry, str(self.path)).instance_id for entry in entries]
        free = (number for number in count(first_id) if number not in said)
        ids = [next(free) if known is None else known for known in said]
        first_room = max([first_id - 1, *ids]) + 1
        rooms = (*stage.rooms, *semantics.read_rooms(descriptor, first_room))
        objects = self._read_objects(rigid, articulated, ids, labels, rooms)
        if packed is not None:
            joined = packed.join_parts(objects[: len(rigid)])
            whole = [_complete_object(item, rooms, semantics.Extras()) for item in joined]
            objects = whole + objects[len(rigid) :]
        lights, rule = self._read_lights()
        added = semantics.read_added(self.instance, str(self.path))
        return Scene(
            self.dataset.name,
            self.name,
            labels,
            (*stage.objects, *objects),
            rooms,
            assign_rooms_to_lights(lights, rooms),
            added.ambient,
            source_sha256=self.templates.digest.hexdigest(),
            source=str(self.dataset.path.absolute()),
            lamp_rule=rule,
            left_out=added.left_out,
        )

    def _read_lights(self) -> tuple[tuple[Light, ...], str]:
        """Return the lights, and the rule for lamps unless they say themselves."""
        setup = self.dataset.light_setup(str(self.instance.get('default_lighting', '')))
        if setup is None:
            return (), ''
        data, file = setup
        self.templates.count(file, self.path)
        lights = read_lights(data, str(file))
        says_lamps = all('lamp' in item for item in data.get('lights', {}).values())
        return lights, '' if says_lamps else LAMP_RULE

    def _list_entries(self, key: str) -> list[dict[str, Any]]:
        entries = self.instance.get(key, [])
        if not isinstance(entries, list) or not all(isinstance(item, dict) for item in entries):
            raise SceneError(f'{self.path}: "{key}" must be a list of objects')
        return entries

    def _stage(self, labels: LabelSet) -> semantics.Stage:
        entry = self.instance.get('stage_instance', {})
        template = str(entry.get('template_name', NO_STAGE))
        if template.upper() == NO_STAGE:
            return semantics.Stage(())
        return semantics.read_stage(self.templates, template, entry, labels, f'{self.path}: stage')

    def _read_objects(
        self,
        rigid: list[dict[str, Any]],
        articulated: list[dict[str, Any]],
        ids: list[int],
        labels: LabelSet,
        rooms: tuple[Room, ...],
    ) -> list[SceneObject]:
        self.templates.read_meshes(str(item.get('template_name', '')) for item in rigid)
        seen: Counter[str] = Counter()
        objects = []
        entries = [(self._place_rigid, 'objects', item) for item in rigid]
        entries += [(self._place_articulated, 'articulated_objects', item) for item in articulated]
        for instance_id, (place, section, entry) in zip(ids, entries, strict=True):
            template = str(entry.get('template_name', ''))
            if not template:
                raise SceneError(f'{self.path}: an object instance has no "template_name"')
            template = self.dataset.template_name(section, template)
            seen[template] += 1
            name = f'{template}.{seen[template]}'
            where = f'{self.path}: object "{name}"'
            config, meshes, pose = place(template, entry, where)
            semantic_id = entry.get('semantic_id', config.get('semantic_id', 0))
            if not isinstance(semantic_id, int):
                raise SceneError(f'{where}: "semantic_id" must be an integer')
            class_id = semantics.check_class_id(
                semantic_id, labels, f'object "{name}"', str(self.path)
            )
            item = SceneObject(instance_id, name, class_id, meshes, pose)
            added = semantics.read_added(entry, f'{self.path}: "{name}"')
            objects.append(_complete_object(item, rooms, added))
        return objects

    def _place_rigid(self, template: str, entry: Mapping[str, Any], where: str) -> Instance:
        found = self.templates.read(template, where)
        origin = str(entry.get('translation_origin', self.instance.get('translation_origin', '')))
        return found.config, *place_instance(found, entry, origin, where)

    def _place_articulated(self, template: str, entry: Mapping[str, Any], where: str) -> Instance:
        config, folder = self.dataset.template('articulated_objects', template)
        asset = str(config.get('render_asset', ''))
        asset = str(config.get('urdf_filepath', asset if asset.endswith('.urdf') else ''))
        if not asset:
            raise SceneError(f'{where}: template "{template}" has no "urdf_filepath"')
        urdf = self.dataset.file(folder, asset, where)
        self.templates.count(urdf, self.path)
        order = str(entry.get('link_order', config.get('link_order', '')))
        scale = math.prod(number(item, 'uniform_scale', 1.0, where) for item in (config, entry))
        if scale == 0:
            raise SceneError(f'{where} is scaled by 0; its scale must not be 0')
        joints = entry.get('initial_joint_pose', [])
        root = self.dataset.path.parent
        robot = Urdf(read_xml(urdf, SceneError), where)
        meshes = robot.load_meshes(urdf, root, joints, order, scale)
        turn_axes = tuple(map_linearly(mesh, WORLD_FROM_HABITAT * scale) for mesh in meshes)
        return config, turn_axes, turn_pose_from_habitat(read_instance_pose(entry, where))


def _complete_object(
    item: SceneObject, rooms: tuple[Room, ...], added: semantics.Extras
) -> SceneObject:
    return replace(
        item,
        attributes={**measure_sizes(item), **added.attributes},
        room_id=find_room_of(item, rooms) if added.room_id is None else added.room_id,
    )


SUMMARY = 'debug/{}.debug_summary.json'
_PARTS_OF_BUILDING = ('floor', 'wall')


class _PackedInstance(BaseModel):
    name: str = Field(alias='_meta_instance_name')
    category: str = Field(alias='_meta_category')


class _Summary(BaseModel):
    instances: tuple[_PackedInstance, ...]


@dataclass(frozen=True)
class PackedNames:
    """Names and classes of the object instances of a SceneSmith scene, packed by OSMa-Bench++.

    The configurations of such a data set number the meshes; a summary in the same folder names
    the object that each instance is a part of. Its class is its name without its number.
    """

    path: Path
    names: tuple[str, ...]
    classes: tuple[str, ...]

    @classmethod
    def of_scene(cls, root: Path, scene: str) -> PackedNames | None:
        """Return the names of a scene; None for a data set of another kind."""
        path = root / SUMMARY.format(scene)
        if not path.is_file():
            return None
        rows = validated(_Summary, read_object(path), str(path), SceneError).instances
        classes = tuple(_classify(row.name, row.category) for row in rows)
        return cls(path, tuple(row.name for row in rows), classes)

    def label_set(self, name: str) -> LabelSet:
        """Return the classes of the scene."""
        structure = [item for item in _PARTS_OF_BUILDING if item in self.classes]
        return LabelSet.from_names(name, sorted(set(self.classes) - set(structure)), structure)

    def label_instances(
        self, entries: Sequence[Mapping[str, Any]], labels: LabelSet
    ) -> list[dict[str, Any]]:
        """Return object instances with the ids of their classes."""
        if len(entries) != len(self.names):
            counts = f'{len(self.names)} instances, the scene has {len(entries)}'
            raise SceneError(f'{self.path} names {counts}; pack the data set again')
        ids = map(labels.id_of, self.classes)
        return [{**item, 'semantic_id': key} for item, key in zip(entries, ids, strict=True)]

    def join_parts(self, objects: Sequence[SceneObject]) -> list[SceneObject]:
        """Return the objects of the scene by name, each with the meshes of all its parts."""
        found: dict[str, SceneObject] = {}
        for name, part in zip(self.names, objects, strict=True):
            if name in found:
                whole = found[name]
                shift = whole.pose.inverse() @ part.pose
                shifted = [
                    replace(
                        mesh,
                        vertices=shift.transform(mesh.vertices).astype(np.float32),
                        normals=(mesh.normals @ shift.rotation.T).astype(np.float32),
                    )
                    for mesh in part.meshes
                ]
                found[name] = replace(whole, meshes=(*whole.meshes, *shifted))
            else:
                found[name] = replace(part, name=name)
        return list(found.values())


def _classify(name: str, category: str) -> str:
    if category in _PARTS_OF_BUILDING:
        return category
    return normalised_name(re.sub(r'[_\s-]*\d+$', '', name)) or category
