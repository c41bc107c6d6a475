"""Writes scenes as scene folders and as Habitat scene data sets; glTF files are y-up in both."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from osmabench_ros.base.files import Existing, atomic_directory
from osmabench_ros.base.images import decode_srgb
from osmabench_ros.errors import SceneError, warn
from osmabench_ros.geometry.axes import OPENGL_FROM_OPTICAL, turn_pose_to_habitat, turn_to_habitat
from osmabench_ros.scenes import scene as scene_model
from osmabench_ros.scenes.folder import FORMAT, MANIFEST, Manifest, ManifestLight
from osmabench_ros.scenes.ground_truth import assign_rooms_to_lights
from osmabench_ros.scenes.habitat.dataset import SUFFIX
from osmabench_ros.scenes.habitat.semantics import ADDED
from osmabench_ros.semantics.labels import UNLABELLED, is_unnamed, normalised_name

MESH_FILE = 'scene.glb'

# Of a Habitat data set: ids of classes and boxes of rooms; every data set here has it.
CLASSES_FILE = 'semantics/classes.json'

# Attributes of `habitat_sim.NavMeshSettings` that a run plans with by default.
#
# Without a stage, there are only static objects to walk on.
NAVMESH_SETTINGS = {
    'agent_radius': 0.2,
    'agent_height': 1.5,
    'cell_size': 0.05,
    'cell_height': 0.05,
    'include_static_objects': True,
}


def write_scene_folder(scene: scene_model.Scene, directory: Path, overwrite: bool = False) -> Path:
    """Write a scene folder and return the path of its manifest; an older one is moved aside."""
    existing = Existing.MOVE_ASIDE if overwrite else Existing.REFUSE
    with atomic_directory(directory, existing) as draft:
        count = Counter(item.name for item in scene.objects)
        names = {
            item.instance_id: item.name
            if count[item.name] == 1
            else f'{item.name}#{item.instance_id}'
            for item in scene.objects
        }
        manifest = Manifest.model_validate(_make_manifest(scene, names))
        groups = [(names[i.instance_id], i.meshes, i.pose.matrix, i.parent) for i in scene.objects]
        text = manifest.model_dump_json(by_alias=True, exclude_none=True, indent=1)
        (draft / MESH_FILE).write_bytes(_encode_glb(groups))
        (draft / MANIFEST).write_text(text, encoding='utf-8')
    return directory / MANIFEST


def _make_manifest(scene: scene_model.Scene, names: dict[int, str]) -> dict[str, Any]:
    rooms = {room.id: room.name for room in scene.rooms}
    return {
        'format': FORMAT,
        'dataset': scene.dataset,
        'name': scene.name,
        'file': MESH_FILE,
        'classes': scene.label_set.to_json()['classes'],
        'nodes': {
            names[item.instance_id]: {
                'class': '' if item.class_id == UNLABELLED else scene.class_name(item),
                'instance': item.instance_id,
                'attributes': {
                    key: round(value, 6) if isinstance(value, float) else value
                    for key, value in item.attributes.items()
                },
                'room': rooms.get(item.room_id or 0, ''),
            }
            for item in scene.objects
        },
        'rooms': [
            {
                'name': room.name,
                'label': room.label,
                'id': room.id,
                'min': room.box.minimum.tolist(),
                'max': room.box.maximum.tolist(),
            }
            for room in scene.rooms
        ],
        'lights': [
            {key: value for key, value in vars(light).items() if key in ManifestLight.model_fields}
            | {'room': rooms.get(light.room_id or 0, '')}
            for light in scene.lights
            if not light.attached_to_camera
        ],
        'ambient': scene.ambient,
        'left_out': scene.left_out,
    }


def write_habitat_dataset(
    scene: scene_model.Scene, directory: Path, overwrite: bool = False
) -> Path:
    """Write a scene as a Habitat scene data set and return the path of its configuration.

    Parameters
    ----------
    scene : Scene
        Every object becomes a template with one static instance; the stage is empty, because a
        stage has one semantic id for all that it shows.
    directory : Path
        New or empty, or one that was written like this if `overwrite`.

    Returns
    -------
    Path
        `<dataset>.scene_dataset_config.json`, which `load_scene` reads with the same geometry,
        ids, classes, rooms and lights. Our own part is in `user_defined`, which Habitat passes on.

    Raises
    ------
    SceneError
        If class id 0, which is not a class in Habitat, is in use.
    RunError
        If the folder is not ours.
    """
    if 0 in scene.label_set.by_id:
        where = f'scene {scene.dataset}/{scene.name}: class "{scene.label_set.name_of(0)}"'
        raise SceneError(f'{where} has id 0, no class in Habitat; number the classes from 1')
    _warn_of_unsaid(scene)
    dataset, name = (_make_file_name(item) for item in (scene.dataset, scene.name))
    templates = _choose_template_names(scene.objects)
    instances = [_describe_instance(item, templates[item.instance_id]) for item in scene.objects]
    documents = {
        f'{dataset}{SUFFIX}': {
            'objects': {'paths': {'.json': ['objects/*.object_config.json']}},
            'light_setups': {'paths': {'.json': ['lights/*.lighting_config.json']}},
            'scene_instances': {'paths': {'.json': ['scenes/*.scene_instance.json']}},
            'semantic_scene_descriptor_instances': {'classes': CLASSES_FILE},
        },
        f'scenes/{name}.scene_instance.json': {
            'stage_instance': {'template_name': 'NONE'},
            'default_lighting': 'lights' if scene.lights else 'no_lights',
            'semantic_scene_instance': 'classes',
            'object_instances': instances,
            'user_defined': {ADDED: {'ambient': scene.ambient, 'left_out': scene.left_out}},
        },
        CLASSES_FILE: {
            'classes': scene.label_set.to_json()['classes'],
            'region_annotations': [_describe_region(room) for room in scene.rooms],
        },
        'navmesh_settings.json': NAVMESH_SETTINGS,
    }
    if scene.lights:
        lights = {light.name: _describe_light(light) for light in scene.lights}
        documents['lights/lights.lighting_config.json'] = {'lights': lights}
    for item in scene.objects:
        template = templates[item.instance_id]
        no_class = item.class_id == UNLABELLED or is_unnamed(scene.class_name(item))
        documents[f'objects/{template}.object_config.json'] = {
            'render_asset': f'{template}.glb',
            'up': [0, 1, 0],
            'front': [0, 0, -1],
            'semantic_id': 0 if no_class else item.class_id,
        }
    existing = Existing.MOVE_ASIDE if overwrite else Existing.REFUSE
    with atomic_directory(directory, existing) as draft:
        for path, document in documents.items():
            (draft / path).parent.mkdir(parents=True, exist_ok=True)
            text = json.dumps(document, indent=1, allow_nan=False)
            (draft / path).write_text(text + '\n', encoding='utf-8')
        for item in scene.objects:
            asset = _encode_glb([(templates[item.instance_id], item.meshes, np.eye(4), '')])
            (draft / 'objects' / f'{templates[item.instance_id]}.glb').write_bytes(asset)
    return directory / f'{dataset}{SUFFIX}'


def _warn_of_unsaid(scene: scene_model.Scene) -> None:
    """Warn of properties of a scene that a Habitat data set cannot hold."""
    where = f'scene {scene.dataset}/{scene.name}'
    if len({light.name for light in scene.lights}) < len(scene.lights):
        raise SceneError(f'{where}: two lights have the same name; Habitat knows them by name')
    moved = zip(scene.lights, assign_rooms_to_lights(scene.lights, scene.rooms), strict=True)
    strays = [light.name for light, there in moved if light.room_id != there.room_id]
    if strays:
        warn(f'{where}: lights {", ".join(strays)} will belong to the rooms that they hang in')
    unnamed = [item.name for item in scene.label_set.classes if is_unnamed(item.name)]
    if unnamed:
        warn(f'{where}: class "{unnamed[0]}" means no class in Habitat, and will be none')
    respelt = [room.name for room in scene.rooms if normalised_name(room.name) != room.name]
    if respelt:
        warn(f'{where}: names of rooms will be in lower case without underscores: {respelt[0]}')


def _make_file_name(name: str) -> str:
    return re.sub(r'[^A-Za-z0-9_-]+', '_', name) or '_'


def _choose_template_names(objects: Iterable[scene_model.SceneObject]) -> dict[int, str]:
    """Return names of files by instance id, different even where case does not count."""
    names: dict[int, str] = {}
    for item in objects:
        name = _make_file_name(item.name)
        taken = {other.lower() for other in names.values()}
        while name.lower() in taken:
            name += f'_{item.instance_id}'
        names[item.instance_id] = name
    return names


def _describe_instance(item: scene_model.SceneObject, template: str) -> dict[str, Any]:
    pose = turn_pose_to_habitat(item.pose)
    x, y, z, w = pose.quaternion
    added = {'instance_id': item.instance_id, 'attributes': dict(item.attributes)}
    room = {} if item.room_id is None else {'room_id': item.room_id}
    return {
        'template_name': template,
        'translation': pose.translation.tolist(),
        'rotation': [w, x, y, z],
        'translation_origin': 'asset_local',
        'motion_type': 'STATIC',
        'user_defined': {ADDED: {**added, **room}},
    }


def _describe_region(room: scene_model.Room) -> dict[str, Any]:
    corners = turn_to_habitat(np.stack([room.box.minimum, room.box.maximum]))
    (x0, y0, z0), (x1, y1, z1) = corners.min(axis=0).tolist(), corners.max(axis=0).tolist()
    return {
        'name': room.name,
        'label': room.label,
        'poly_loop': [[x0, y0, z0], [x1, y0, z0], [x1, y0, z1], [x0, y0, z1]],
        'floor_height': y0,
        'extrusion_height': y1 - y0,
        'min_bounds': [x0, y0, z0],
        'max_bounds': [x1, y1, z1],
        'user_defined': {ADDED: {'room_id': room.id}},
    }


def _describe_light(light: scene_model.Light) -> dict[str, Any]:
    def turn_axes(vector: Sequence[float]) -> Any:
        if light.attached_to_camera:
            return (OPENGL_FROM_OPTICAL @ vector).tolist()
        return turn_to_habitat(np.asarray(vector)).tolist()

    cone = 2 * light.spot_half_angle_rad
    spot = {'innerConeAngle': scene_model.SPOT_INNER_SHARE * cone, 'outerConeAngle': cone}
    return {
        'type': light.kind.value,
        'position': turn_axes(light.position),
        'direction': turn_axes(light.direction),
        'color': list(light.color),
        'intensity': light.intensity,
        'position_model': 'camera' if light.attached_to_camera else 'global',
        'lamp': light.lamp,
        **({'spot': spot} if light.kind is scene_model.LightKind.SPOT else {}),
    }


# Name of a node, meshes below it, the matrix (4, 4) that places them, z up, and its parent.
Group = tuple[str, Sequence[scene_model.Mesh], NDArray[np.float64], str]


def _encode_glb(groups: Iterable[Group]) -> bytes:
    import trimesh

    built = trimesh.Scene()
    materials: dict[int, Any] = {}
    base = built.graph.base_frame
    for name, meshes, matrix, parent in groups:
        if parent and parent not in built.graph.nodes:
            built.graph.update(frame_to=parent, frame_from=base, matrix=np.eye(4))
        built.graph.update(frame_to=name, frame_from=parent or base, matrix=np.eye(4))
        for i, mesh in enumerate(meshes):
            material = materials.setdefault(id(mesh.material), _convert_material(mesh.material))
            vertices = mesh.vertices @ matrix[:3, :3].T + matrix[:3, 3]
            normals = turn_to_habitat(mesh.normals @ matrix[:3, :3].T)
            # trimesh counts v from the bottom of the image, a Material from row 0.
            uv = np.column_stack([mesh.uv[:, 0], 1.0 - mesh.uv[:, 1]])
            built.add_geometry(
                trimesh.Trimesh(
                    turn_to_habitat(vertices),
                    mesh.faces,
                    vertex_normals=normals if mesh.has_normals else None,
                    visual=trimesh.visual.TextureVisuals(uv=uv, material=material),
                    process=False,
                ),
                node_name=f'{name}/{i}',
                geom_name=f'{name}/{i}',
                parent_node_name=name,
            )
    return bytes(built.export(file_type='glb'))


def _convert_material(material: scene_model.Material) -> Any:
    """Convert; trimesh keeps factors in 8 bits, linear, so that dark colours move up to 0.03."""
    import trimesh
    from PIL import Image

    linear = decode_srgb(np.asarray(material.base_color))
    texture, surface = (
        None if image is None else Image.fromarray(image)
        for image in (material.texture, material.surface)
    )
    return trimesh.visual.material.PBRMaterial(
        baseColorFactor=[*np.round(linear * 255).astype(int).tolist(), 255],
        baseColorTexture=texture,
        roughnessFactor=material.roughness,
        metallicFactor=material.metallic,
        metallicRoughnessTexture=surface,
    )
