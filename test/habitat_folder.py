"""Writes a scene as a Habitat scene data set, so that every simulator can load it from disk."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import trimesh
from PIL import Image

from osmabench_ros.geometry.axes import points_to_habitat
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Material, Mesh, Scene, SceneObject


def write_habitat_folder(scene: Scene, folder: Path) -> Path:
    """Write a scene whose objects are not rotated; return its data set configuration."""
    for name in ('objects', 'scenes', 'semantics', 'lights'):
        (folder / name).mkdir(parents=True)
    for item in scene.objects:
        _write_object(item, folder / 'objects')
    instances = [_instance(item) for item in scene.objects]
    _write(
        folder / 'scenes' / f'{scene.name}.scene_instance.json',
        {
            'stage_instance': {'template_name': 'NONE'},
            'default_lighting': 'lights',
            'object_instances': instances,
        },
    )
    classes = [{'id': item.id, 'name': item.name} for item in scene.label_set.classes]
    _write(folder / 'semantics' / 'classes.json', {'classes': classes})
    lights = {light.name: _light(light) for light in scene.lights}
    _write(folder / 'lights' / 'lights.lighting_config.json', {'lights': lights})
    config = folder / f'{scene.dataset}.scene_dataset_config.json'
    _write(
        config,
        {
            'objects': {'paths': {'.json': ['objects/*.object_config.json']}},
            'scene_instances': {'paths': {'.json': ['scenes/*.scene_instance.json']}},
            'semantic_scene_descriptor_instances': {'classes': 'semantics/classes.json'},
            'light_setups': {'paths': {'.json': ['lights/*.lighting_config.json']}},
        },
    )
    return config


def _write_object(item: SceneObject, folder: Path) -> None:
    parts = {f'part_{i}': _geometry(mesh) for i, mesh in enumerate(item.meshes)}
    trimesh.Scene(parts).export(folder / f'{item.name}.glb')
    _write(
        folder / f'{item.name}.object_config.json',
        {
            'render_asset': f'{item.name}.glb',
            'up': [0, 1, 0],
            'front': [0, 0, -1],
            'semantic_id': item.class_id,
        },
    )


def _geometry(mesh: Mesh) -> trimesh.Trimesh:
    visual = trimesh.visual.TextureVisuals(
        uv=np.column_stack([mesh.uv[:, 0], 1 - mesh.uv[:, 1]]),  # the exporter turns v over
        material=trimesh.visual.material.PBRMaterial(
            baseColorTexture=_image(mesh.material), metallicFactor=0.0, roughnessFactor=1.0
        ),
    )
    return trimesh.Trimesh(
        points_to_habitat(mesh.vertices),
        mesh.faces,
        vertex_normals=points_to_habitat(mesh.normals),
        visual=visual,
        process=False,
    )


def _image(material: Material) -> Image.Image:
    texture = material.texture
    if texture is None:
        color = np.rint(np.array(material.base_color) * 255).astype(np.uint8)
        texture = np.broadcast_to(color, (8, 8, 3))
    return Image.fromarray(np.ascontiguousarray(texture))


def _instance(item: SceneObject) -> dict[str, Any]:
    return {
        'template_name': item.name,
        'translation': points_to_habitat(item.pose.translation).tolist(),
        'rotation': [1.0, 0.0, 0.0, 0.0],
        'translation_origin': 'asset_local',
        'motion_type': 'STATIC',
    }


def _light(light: Light) -> dict[str, Any]:
    return {
        'type': light.kind.value,
        'position': points_to_habitat(np.array(light.position)).tolist(),
        'direction': points_to_habitat(np.array(light.direction)).tolist(),
        'color': list(light.color),
        'intensity': light.intensity,
    }


def _write(path: Path, data: dict[str, Any]) -> None:
    path.write_text(json.dumps(data))
