# make_lab.py
import trimesh


def add(name, size, place, color):
    item = trimesh.creation.box(size)
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=color)
    item.visual = trimesh.visual.TextureVisuals(material=material)
    at = trimesh.transformations.translation_matrix(place)
    lab.add_geometry(item, node_name=name, geom_name=name, transform=at)


lab = trimesh.Scene()  # glTF: y is up, metres
add('Floor', [6, 0.1, 5], [0, -0.05, 0], [150, 120, 90, 255])
add('Wall.001', [6, 2.6, 0.1], [0, 1.3, -2.45], [220, 220, 210, 255])
add('Wall.002', [6, 2.6, 0.1], [0, 1.3, 2.45], [220, 220, 210, 255])
add('Wall.003', [0.1, 2.6, 5], [2.95, 1.3, 0], [220, 220, 210, 255])
add('Wall.004', [0.1, 2.6, 5], [-2.95, 1.3, 0], [220, 220, 210, 255])
add('Workbench', [1.6, 0.75, 0.7], [-1.8, 0.375, -1.9], [140, 90, 50, 255])
add('ToolBox', [0.4, 0.25, 0.25], [-1.8, 0.875, -1.9], [200, 30, 30, 255])
add('Chair.001', [0.5, 0.9, 0.5], [-1.8, 0.45, -1.0], [40, 60, 160, 255])
add('Chair.002', [0.5, 0.9, 0.5], [2.2, 0.45, 1.8], [40, 60, 160, 255])
add('Cabinet', [0.5, 1.8, 1.0], [2.6, 0.9, -1.2], [90, 140, 90, 255])
lab.export('lab.glb')
