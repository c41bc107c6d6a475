"""Articulated objects look the same in both simulators."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import trimesh
from habitat_folder import write_habitat_folder
from small_scenes import camera_at, room_scene

from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.lights import Lighting
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator

pytestmark = pytest.mark.gl

INERTIA = '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>'

URDF = f"""
<robot name="cabinet">
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
  <joint name="hinge" type="revolute">
    <parent link="body"/><child link="door"/><axis xyz="0 1 0"/>
    <origin xyz="-0.25 0.5 0.25" rpy="0 0.1 0.2"/>
    <limit lower="-1.5" upper="1.5" effort="1" velocity="1"/>
  </joint>
</robot>
"""


def write_part(path: Path, size: tuple[float, float, float], color: tuple[int, int, int]) -> None:
    mesh = trimesh.creation.box(size)
    texture = np.broadcast_to(np.array(color, np.uint8), (8, 8, 3))
    from PIL import Image

    material = trimesh.visual.material.PBRMaterial(
        baseColorTexture=Image.fromarray(np.ascontiguousarray(texture)), metallicFactor=0.0
    )
    mesh.visual = trimesh.visual.TextureVisuals(np.full((len(mesh.vertices), 2), 0.5), material)
    mesh.export(path)


def write_room_with_cabinet(folder: Path) -> Path:
    config = write_habitat_folder(room_scene(), folder)
    urdf = folder / 'urdf' / 'cabinet'
    urdf.mkdir(parents=True)
    (urdf / 'cabinet.urdf').write_text(URDF)
    write_part(urdf / 'body.glb', (0.6, 0.9, 0.4), (200, 30, 30))
    write_part(urdf / 'door.glb', (0.5, 0.7, 0.03), (30, 30, 200))
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
        }
    ]
    instance_file.write_text(json.dumps(instance))
    return config


def test_a_cabinet_is_one_instance_in_the_same_place(habitat: None, tmp_path: Path) -> None:
    scene = load_scene(str(write_room_with_cabinet(tmp_path / 'room')))
    camera = Intrinsics.from_hfov(320, 240, 1.4)
    cabinet = next(item for item in scene.objects if item.name.startswith('cabinet'))
    theirs, ours = HabitatSimulator(scene, camera), OpenGLSimulator(scene, camera)
    for simulator in (theirs, ours):
        simulator.set_lighting(Lighting.unlit())
    for pose in (camera_at(1.0, 1.7, 1.4, 3.9), camera_at(-2.6, 0.6, 1.2, -0.9)):
        seen, expected = theirs.render(pose), ours.render(pose)
        assert (expected.instance == cabinet.instance_id).sum() > 1000
        assert (seen.instance == expected.instance).mean() > 0.999
        assert np.isclose(seen.depth_m, expected.depth_m, rtol=0, atol=0.01).mean() > 0.999
        assert np.abs(seen.color.astype(int) - expected.color).mean() < 1
    theirs.close()
    ours.close()
