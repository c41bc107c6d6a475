"""Stages and articulated objects as Habitat-Sim annotates them."""

import json

import numpy as np
import pytest
import trimesh
from PIL import Image
from support.habitat_files import paint_vertices, painted_boxes, write_annotated_stage
from support.world.scenes import camera_at, room_scene

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Lighting
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator

pytestmark = pytest.mark.gl
INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'
URDF = f"""
<robot name="cabinet">
  <material name="ochre"><color rgba="0.7 0.45 0.1 1"/></material>
  <link name="body">
    <inertial><origin xyz="0.03 0.2 0.01" rpy="0.1 0.2 0"/><mass value="5"/>{INERTIA}</inertial>
    <visual><origin xyz="0 0.45 0" rpy="0 0.2 0"/>
      <geometry><mesh filename="body.glb"/></geometry></visual>
  </link>
  <link name="door">
    <inertial><origin xyz="0.1 0 0"/><mass value="1"/>{INERTIA}</inertial>
    <visual><origin xyz="0.25 0 0" rpy="0.1 0 0.3"/>
      <geometry><mesh filename="door.glb" scale="1 0.8 1"/></geometry></visual>
  </link>
  <link name="drawer">
    <visual><origin xyz="0 0 0.1"/><geometry><box size="0.4 0.15 0.3"/></geometry>
      <material name="ochre"/></visual>
  </link>
  <link name="knob">
    <visual><geometry><mesh filename="knob.glb"/></geometry></visual>
  </link>
  <joint name="hinge" type="revolute">
    <parent link="body"/><child link="door"/><axis xyz="0 1 0"/>
    <origin xyz="-0.25 0.5 0.25" rpy="0 0.1 0.2"/>
    <limit lower="-1.5" upper="1.5" effort="1" velocity="1"/>
  </joint>
  <joint name="a_turn" type="continuous">
    <parent link="door"/><child link="knob"/><axis xyz="0 0 1"/><origin xyz="0.5 0.1 0.1"/>
  </joint>
  <joint name="drawer_slide" type="prismatic">
    <parent link="body"/><child link="drawer"/><axis xyz="0 0 1"/><origin xyz="0 0.95 0"/>
    <limit lower="0" upper="1" effort="1" velocity="1"/>
  </joint>
</robot>
"""


def write_part(path, size, **look):
    mesh = trimesh.creation.box(size)
    material = trimesh.visual.material.PBRMaterial(**look, metallicFactor=0.0, roughnessFactor=1.0)
    mesh.visual = trimesh.visual.TextureVisuals(np.full((len(mesh.vertices), 2), 0.5), material)
    mesh.export(path)


def write_room_with_cabinet(folder, **entry):
    config = write_habitat_dataset(room_scene(), folder)
    urdf = folder / 'urdf' / 'cabinet'
    urdf.mkdir(parents=True)
    (urdf / 'cabinet.urdf').write_text(URDF)
    red, blue = (Image.new('RGB', (8, 8), color) for color in ((200, 30, 30), (30, 30, 200)))
    write_part(urdf / 'body.glb', (0.6, 0.9, 0.4), baseColorTexture=red)
    write_part(urdf / 'door.glb', (0.5, 0.7, 0.03), baseColorTexture=blue)
    write_part(urdf / 'knob.glb', (0.3, 0.1, 0.1), baseColorFactor=[40, 120, 20, 255])
    data = json.loads(config.read_text())
    data['articulated_objects'] = {'paths': {'.urdf': ['urdf/*/*.urdf']}}
    config.write_text(json.dumps(data))
    instance_file = folder / 'scenes' / 'room.scene_instance.json'
    instance = json.loads(instance_file.read_text())
    instance['articulated_object_instances'] = [
        {
            'template_name': 'cabinet',
            'translation': [-1.0, 0.3, 0.8],
            'rotation': [0.9238795, 0.0, 0.3826834, 0.0],
            'uniform_scale': 1.2,
            'fixed_base': True,
            'motion_type': 'STATIC',
            **entry,
        }
    ]
    instance_file.write_text(json.dumps(instance))
    return config


LIGHTINGS = {
    'nominal': Lighting.unlit(),
    'lit': Lighting((Light('lamp', position=(0.5, 0.8, 2.2), intensity=1.5),), 0.2, shadows=False),
}


@pytest.mark.parametrize(
    'pose',
    [[], [0.25, 1, -0.8], {'000': 0, '001': -1.2, '002': 0.5}],
    ids=['closed', 'list', 'by key'],
)
def test_a_cabinet_looks_the_same_in_any_pose(habitat, tmp_path, pose, closes):
    entry = {'initial_joint_pose': pose} if pose else {}
    scene = load_scene(str(write_room_with_cabinet(tmp_path / 'room', **entry)))
    camera = Intrinsics.from_hfov(320, 240, 1.4)
    cabinet = next(item for item in scene.objects if item.name.startswith('cabinet'))
    theirs = closes(HabitatSimulator(scene, camera))
    ours = closes(OpenGLSimulator(scene, camera))
    for name, lighting in LIGHTINGS.items():
        for simulator in (theirs, ours):
            simulator.set_lighting(lighting)
        for view in (camera_at(1.0, 1.7, 1.4, 3.9), camera_at(-2.6, 0.6, 1.2, -0.9)):
            seen, expected = theirs.render(view), ours.render(view)
            mask = expected.instance == cabinet.instance_id
            assert mask.sum() > 1000
            assert (seen.instance == expected.instance).mean() > 0.999
            assert np.isclose(seen.depth_m, expected.depth_m, rtol=0, atol=0.01).mean() > 0.999
            difference = np.abs(seen.color.astype(int) - expected.color)
            # The lit shader has highlights.
            assert difference[mask].mean() < (1 if name == 'nominal' else 6)
            assert difference.mean() < (1 if name == 'nominal' else 6)


def test_positions_of_joints_move_what_hangs_on_them(tmp_path):
    closed = load_scene(str(write_room_with_cabinet(tmp_path / 'closed')))
    entry = {'initial_joint_pose': [0.25]}
    opened = load_scene(str(write_room_with_cabinet(tmp_path / 'open', **entry)))
    before, after = (
        next(item for item in scene.objects if item.name.startswith('cabinet'))
        for scene in (closed, opened)
    )
    body, door, drawer, knob = (
        np.linalg.norm(theirs.vertices - ours.vertices, axis=1)
        for ours, theirs in zip(before.meshes, after.meshes, strict=True)
    )
    # Siblings count by the names of their joints, so the drawer's comes before the hinge. Links
    # are 1.2 times as large as in the file, the stroke is not.
    assert max(body.max(), door.max(), knob.max()) < 1e-6
    np.testing.assert_allclose(drawer, 0.25, atol=1e-5)


def test_instances_and_classes_are_those_of_the_annotation(habitat, tmp_path, closes):
    scene = load_scene(str(write_annotated_stage(tmp_path, painted_boxes(paint_vertices))))
    camera = Intrinsics.from_hfov(320, 240, 1.4)
    theirs = closes(HabitatSimulator(scene, camera))
    ours = closes(OpenGLSimulator(scene, camera))
    pose = camera_at(-1.5, -4.0, 1.6, 0.9)
    seen, expected = theirs.render(pose), ours.render(pose)
    assert set(np.unique(expected.instance)) == {0, *scene.by_instance}
    assert (seen.instance == expected.instance).mean() > 0.999
    assert (seen.semantic == expected.semantic).mean() > 0.999
    assert np.isclose(seen.depth_m, expected.depth_m, rtol=0, atol=0.01).mean() > 0.999
    theirs.set_lighting(Lighting((Light('lamp', position=(0.0, -3.0, 2.0), intensity=3.0),)))
    assert theirs.render(pose).color.mean() > 5, 'light acts although the data set is flat shaded'
