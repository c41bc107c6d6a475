"""Writes small Habitat scene data sets, for tests."""

import json

import numpy as np
import trimesh
from PIL import Image

RED, GREEN = (255, 0, 0), (0, 255, 0)


def write_json(path, data):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(data))
    return path


def textured_box(size):
    """Return a box with an image on its +z face, red in its upper half, green below."""
    mesh = trimesh.creation.box(size)
    mesh.unmerge_vertices()
    image = np.zeros((16, 16, 3), np.uint8)
    image[:8], image[8:] = RED, GREEN
    uv = mesh.vertices[:, :2] / np.array(size)[:2] + 0.5
    material = trimesh.visual.material.PBRMaterial(baseColorTexture=Image.fromarray(image))
    mesh.visual = trimesh.visual.TextureVisuals(uv=uv, material=material)
    return mesh


def write_dataset(root, *, objects, instances, **parts):
    """Write a data set with one scene 'flat' and return its configuration's path.

    `objects` maps template names to (mesh or None, attributes). `parts` may hold `classes`,
    `regions`, `lights`, `scene` (further keys of the scene instance) and `dataset` (of the
    configuration).
    """
    for name, (mesh, attributes) in objects.items():
        if mesh is not None:
            (root / 'objects').mkdir(parents=True, exist_ok=True)
            mesh.export(root / 'objects' / f'{name}.glb')
        config = {'render_asset': f'{name}.glb', **attributes}
        write_json(root / 'objects' / f'{name}.object_config.json', config)
    classes = parts.get('classes', [{'id': 1, 'name': 'Coffee_Table'}, {'id': 2, 'name': 'wall'}])
    descriptor = {'classes': classes, 'region_annotations': parts.get('regions', [])}
    write_json(root / 'semantics' / 'flat_ssd.json', descriptor)
    for name, lights in parts.get('lights', {}).items():
        write_json(root / 'lights' / f'{name}.lighting_config.json', lights)
    scene = {
        'stage_instance': {'template_name': 'NONE'},
        'object_instances': instances,
        'semantic_scene_instance': 'flat_ssd',
        **parts.get('scene', {}),
    }
    write_json(root / 'scenes' / 'flat.scene_instance.json', scene)
    dataset = {
        'objects': {'paths': {'.json': ['objects/*.object_config.json']}},
        'stages': {'paths': {'.json': ['stages']}},
        'scene_instances': {'paths': {'.json': ['scenes']}},
        'light_setups': {'paths': {'.json': ['lights/']}},
        'semantic_scene_descriptor_instances': {'flat_ssd': 'semantics/flat_ssd.json'},
        **parts.get('dataset', {}),
    }
    return write_json(root / 'test.scene_dataset_config.json', dataset)


TITLE = 'HM3D Semantic Annotations\n'
TEXT = TITLE + (
    '1,FF0000,"wall",0\n2,00FF00,"dining table, round",1\n'
    '3,0000FF,"wall",1\n4,808080,"unknown",-1\n'
)


def painted_boxes(color_of):
    """Return three boxes in a row, z up; `color_of` maps their index to a visual."""
    boxes = []
    for i in range(3):
        box = trimesh.creation.box((1, 2, 3)).subdivide()
        box.apply_translation((3 * i, 0, 1.5))
        color_of(box, i)
        boxes.append(box)
    return trimesh.util.concatenate(boxes)


def paint_vertices(box, i):
    box.visual.vertex_colors = [[255, 0, 0, 255], [0, 255, 0, 255], [1, 2, 3, 255]][i]


def write_annotated_stage(root, painted, text=TEXT):
    folder = root / 'val' / '00800-abc'
    folder.mkdir(parents=True)
    painted_boxes(lambda box, i: None).export(folder / 'abc.glb')
    painted.export(folder / 'abc.semantic.glb')
    (folder / 'abc.semantic.txt').write_text(text)
    token = '%%CONFIG_NAME_AS_ASSET_FILENAME%%'
    stages = {
        'default_attributes': {
            'up': [0, 0, 1],
            'front': [0, 1, 0],
            'semantic_descriptor_filename': f'{token}.semantic.txt',
            'semantic_asset': f'{token}.semantic.glb',
        },
        'paths': {'.glb': ['val/*/abc.glb']},
    }
    return write_json(root / 'hm3d.scene_dataset_config.json', {'stages': stages})
