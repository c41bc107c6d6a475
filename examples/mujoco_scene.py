"""Write a MuJoCo model to a mesh file, one node per body: mujoco_scene.py room.xml room.glb."""

import sys

import mujoco
import numpy as np
import trimesh

KIND = mujoco.mjtGeom
SHAPES = {
    KIND.mjGEOM_BOX: lambda size: trimesh.creation.box(2 * size),
    KIND.mjGEOM_PLANE: lambda size: trimesh.creation.box([2 * size[0], 2 * size[1], 1e-3]),
    KIND.mjGEOM_SPHERE: lambda size: trimesh.creation.icosphere(radius=size[0]),
    KIND.mjGEOM_CYLINDER: lambda size: trimesh.creation.cylinder(size[0], 2 * size[1]),
    KIND.mjGEOM_CAPSULE: lambda size: trimesh.creation.capsule(2 * size[1], size[0]),
}
Y_UP = trimesh.transformations.rotation_matrix(-np.pi / 2, [1, 0, 0])  # glTF has y up

model = mujoco.MjModel.from_xml_path(sys.argv[1])
data = mujoco.MjData(model)
mujoco.mj_forward(model, data)
bodies = {}
for i in range(model.ngeom):
    geom, place = model.geom(i), np.eye(4)
    if geom.group[0] > 2:  # collision shapes
        continue
    if (mesh := geom.dataid[0]) >= 0:
        first, count = model.mesh(mesh).vertadr[0], model.mesh(mesh).vertnum[0]
        face, faces = model.mesh(mesh).faceadr[0], model.mesh(mesh).facenum[0]
        shape = trimesh.Trimesh(
            model.mesh_vert[first : first + count], model.mesh_face[face : face + faces]
        )
    else:
        shape = SHAPES[KIND(int(geom.type[0]))](geom.size)
    place[:3, :3], place[:3, 3] = data.geom(i).xmat.reshape(3, 3), data.geom(i).xpos
    material = geom.matid[0]
    color = model.mat_rgba[material] if material >= 0 else geom.rgba
    shape.visual.vertex_colors = np.tile((255 * color).astype(np.uint8), (len(shape.vertices), 1))
    name = model.body(geom.bodyid[0]).name if geom.bodyid[0] else geom.name
    bodies.setdefault(name, []).append(shape.apply_transform(Y_UP @ place))
room = trimesh.Scene()
for name, shapes in bodies.items():
    room.add_geometry(trimesh.util.concatenate(shapes), node_name=name, geom_name=name)
room.export(sys.argv[2])
