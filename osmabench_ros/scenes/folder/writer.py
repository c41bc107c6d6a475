"""Writes a scene as a scene folder: `scene.glb` (y-up, as glTF demands) and `scene.json`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from osmabench_ros.base.color import decoded
from osmabench_ros.base.files import Existing, filled_folder
from osmabench_ros.geometry.axes import points_to_habitat
from osmabench_ros.scenes.folder.manifest import FORMAT, MANIFEST, Manifest
from osmabench_ros.scenes.scene import Material, Mesh, Scene
from osmabench_ros.semantics.labels import UNLABELLED

MESH_FILE = 'scene.glb'


def write_scene_folder(scene: Scene, directory: Path, overwrite: bool = False) -> Path:
    """Write a scene folder, over another one if asked, and return the path of its manifest."""
    existing = Existing.REPLACE if overwrite else Existing.REFUSE
    with filled_folder(directory, existing, MANIFEST) as draft:
        manifest = Manifest.model_validate(_manifest(scene, _node_names(scene)))
        text = manifest.model_dump_json(by_alias=True, exclude_none=True, indent=1)
        (draft / MESH_FILE).write_bytes(_glb(scene))
        (draft / MANIFEST).write_text(text, encoding='utf-8')
    return directory / MANIFEST


def _node_names(scene: Scene) -> dict[int, str]:
    """Return unique node names by instance id."""
    count = Counter(item.name for item in scene.objects)
    return {
        item.instance_id: item.name if count[item.name] == 1 else f'{item.name}#{item.instance_id}'
        for item in scene.objects
    }


def _manifest(scene: Scene, names: dict[int, str]) -> dict[str, Any]:
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
                'attributes': dict(item.attributes),
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
            {
                'name': light.name,
                'kind': light.kind.value,
                'position': light.position,
                'direction': light.direction,
                'color': light.color,
                'intensity': light.intensity,
                'spot_half_angle_rad': light.spot_half_angle_rad,
                'lamp': light.lamp,
                'room': rooms.get(light.room_id or 0, ''),
            }
            for light in scene.lights
            if not light.attached_to_camera
        ],
        'ambient': scene.ambient,
        'left_out': scene.left_out,
    }


def _glb(scene: Scene) -> bytes:
    import trimesh

    names = _node_names(scene)
    built = trimesh.Scene()
    materials: dict[int, Any] = {}
    for item in scene.objects:
        name = names[item.instance_id]
        built.graph.update(frame_to=name, frame_from=built.graph.base_frame, matrix=np.eye(4))
        for i, mesh in enumerate(item.meshes):
            material = materials.setdefault(id(mesh.material), _material(mesh.material))
            built.add_geometry(
                _geometry(mesh, item.pose.matrix, material),
                node_name=f'{name}/{i}',
                geom_name=f'{name}/{i}',
                parent_node_name=name,
            )
    return bytes(built.export(file_type='glb'))


def _geometry(mesh: Mesh, matrix: Any, material: Any) -> Any:
    import trimesh

    vertices = mesh.vertices @ matrix[:3, :3].T + matrix[:3, 3]
    return trimesh.Trimesh(
        points_to_habitat(vertices),
        mesh.faces,
        vertex_normals=points_to_habitat(mesh.normals @ matrix[:3, :3].T),
        # trimesh counts v from the bottom of the image, a Material from row 0.
        visual=trimesh.visual.TextureVisuals(
            uv=np.column_stack([mesh.uv[:, 0], 1.0 - mesh.uv[:, 1]]), material=material
        ),
        process=False,
    )


def _material(material: Material) -> Any:
    """Convert; trimesh keeps factors in 8 bits, linear, so that dark colours move up to 0.03."""
    import trimesh
    from PIL import Image

    linear = decoded(np.asarray(material.base_color))
    texture = None if material.texture is None else Image.fromarray(material.texture)
    return trimesh.visual.material.PBRMaterial(
        baseColorFactor=[*np.round(linear * 255).astype(int).tolist(), 255],
        baseColorTexture=texture,
        roughnessFactor=1.0,
        metallicFactor=0.0,
    )
