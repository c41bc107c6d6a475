"""MuJoCo models as scenes, held to positions by hand and to our own reader of mesh files."""

from __future__ import annotations

import importlib.util
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from osmabench_ros.errors import MissingDependencyError, MissingFileError, SceneError
from osmabench_ros.scenes.assets import load_meshes
from osmabench_ros.scenes.importing import import_scene
from osmabench_ros.scenes.lights import LightKind
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.scenes.worlds.mujoco import load_mujoco_model
from osmabench_ros.scenes.worlds.parts import WorldOptions
from osmabench_ros.semantics.labels import UNLABELLED

with_mujoco = pytest.mark.skipif(
    importlib.util.find_spec('mujoco') is None, reason='mujoco is not installed'
)


def write_model(folder: Path, world: str, assets: str = '', above: str = '') -> Path:
    path = folder / 'room.xml'
    path.write_text(
        f'<mujoco>{above}<asset>{assets}</asset><worldbody>{world}</worldbody></mujoco>'
    )
    return path


def boxes(scene: Scene) -> dict[str, list[list[float]]]:
    return {
        item.name: np.round([item.box.minimum, item.box.maximum], 4).tolist()
        for item in scene.objects
    }


@with_mujoco
def test_bodies_and_geoms_of_the_world_are_objects(tmp_path: Path) -> None:
    model = write_model(
        tmp_path,
        '<geom name="floor" type="plane" size="3 2 0.1"/>'
        '<geom name="wall_1" type="box" pos="3 0 1" size="0.1 2 1"/>'
        '<body name="table_01" pos="1 0.5 0" euler="0 0 90"><freejoint/>'
        '<geom type="box" pos="0 0 0.7" size="0.6 0.3 0.05" rgba="0.2 0.4 0.6 1"/>'
        '<geom type="box" pos="0 0 0.7" size="9 9 9" group="3"/>'
        '<geom type="box" size="9 9 9" rgba="1 1 1 0"/></body>'
        '<body name="cabinet" pos="-1 0 0.5"><geom type="box" size="0.3 0.2 0.5" mass="1"/>'
        '<body name="door" pos="0.3 0 0"><joint axis="0 0 1"/>'
        '<geom type="box" size="0.01 0.2 0.5" mass="1"/></body></body>'
        '<body name="group" pos="0 0 1"><body name="mug" pos="0 0 0.1">'
        '<geom type="cylinder" size="0.05 0.06"/></body>'
        '<body name="ball"><geom type="sphere" size="0.1"/></body></body>',
    )
    scene = load_mujoco_model(model, WorldOptions(classes={'ball': 'toy', 'mug': ''}))
    found = boxes(scene)
    assert found.keys() == {'floor', 'wall_1', 'table_01', 'cabinet', 'mug', 'ball'}
    assert found['floor'] == [[-3, -2, 0], [3, 2, 0]]
    assert found['wall_1'] == [[2.9, -2, 0], [3.1, 2, 2]]
    assert found['table_01'] == [[0.7, -0.1, 0.65], [1.3, 1.1, 0.75]]
    assert found['cabinet'] == [[-1.3, -0.2, 0], [-0.69, 0.2, 1]]
    assert found['mug'] == [[-0.05, -0.05, 1.04], [0.05, 0.05, 1.16]]
    named = {item.name: scene.class_name(item) for item in scene.objects}
    assert named['table_01'] == 'table'
    assert named['ball'] == 'toy'
    assert scene.label_set.by_name['floor'].structure
    assert next(i for i in scene.objects if i.name == 'mug').class_id == UNLABELLED
    table = next(item for item in scene.objects if item.name == 'table_01')
    assert table.meshes[0].material.base_color == pytest.approx((0.2, 0.4, 0.6), abs=1e-6)
    # In its own frame a thing is not turned.
    assert table.attributes['width_m'] == pytest.approx(1.2)
    turned = table.pose.rotation @ [1, 0, 0]
    np.testing.assert_allclose(turned, [0, 1, 0], atol=1e-9)


OBJ = """mtllib none.mtl
v 0 0 0
v 2 0 0
v 2 1 0
v 0 1 0
v 1 0.5 1
vt 0 0
vt 1 0
vt 1 1
vt 0 1
vt 0.5 0.5
f 1/1 2/2 5/5
f 2/2 3/3 5/5
f 3/3 4/4 5/5
f 4/4 1/1 5/5
f 4/4 3/3 2/2 1/1
"""


@with_mujoco
def test_a_mesh_is_where_and_as_its_file_says(tmp_path: Path) -> None:
    (tmp_path / 'meshes').mkdir()
    (tmp_path / 'meshes' / 'roof.obj').write_text(OBJ.replace('mtllib none.mtl\n', ''))
    pixels = np.arange(48, dtype=np.uint8).reshape(4, 4, 3) * 5
    Image.fromarray(pixels).save(tmp_path / 'meshes' / 'tiles.png')
    model = write_model(
        tmp_path,
        '<body name="roof" pos="0 0 2"><geom type="mesh" mesh="roof" material="m"/></body>',
        '<mesh file="roof.obj"/><texture name="t" type="2d" file="tiles.png"/>'
        '<material name="m" texture="t" rgba="1 0.5 1 1"/>',
        above='<compiler meshdir="meshes" texturedir="meshes"/>',
    )
    (item,) = load_mujoco_model(model).objects
    (mesh,) = item.meshes
    (true,) = load_meshes(tmp_path / 'meshes' / 'roof.obj')
    corners = item.world_vertices[item.world_faces].reshape(-1, 3)
    true_corners = true.vertices[true.faces].reshape(-1, 3) + np.array([0, 0, 2])
    uv, true_uv = mesh.uv[mesh.faces].reshape(-1, 2), true.uv[true.faces].reshape(-1, 2)

    def rows(points: np.ndarray, coordinates: np.ndarray) -> set[tuple[float, ...]]:
        return set(map(tuple, np.round(np.column_stack([points, coordinates]), 4) + 0.0))

    assert rows(corners, uv) == rows(true_corners, true_uv)
    np.testing.assert_array_equal(mesh.material.texture, pixels)
    assert mesh.material.base_color == pytest.approx((1, 0.5, 1))
    normals = np.cross(corners[1::3] - corners[::3], corners[2::3] - corners[::3])
    outward = corners.reshape(-1, 3, 3).mean(axis=1) - corners.mean(axis=0)
    assert ((normals * outward).sum(axis=1) > 0).all()


@with_mujoco
def test_textures_elsewhere(tmp_path: Path) -> None:
    assets = (
        '<texture name="c" type="2d" builtin="flat" rgb1="0.2 0.4 0.6" width="4" height="4"/>'
        '<material name="m" texture="c" texrepeat="2 4"/>'
    )
    model = write_model(
        tmp_path,
        '<geom name="floor" type="plane" size="4 2 1" material="m"/>'
        '<geom name="box" type="box" pos="0 0 1" size="1 1 1" material="m"/>',
        assets,
    )
    floor, crate = load_mujoco_model(model).objects
    np.testing.assert_allclose(np.ptp(floor.meshes[0].uv, axis=0), [2, 4], atol=1e-6)
    assert tuple(floor.meshes[0].material.texture[0, 0]) == (51, 102, 153)
    assert crate.meshes[0].material.texture is None
    assert crate.meshes[0].material.base_color == pytest.approx((0.2, 0.4, 0.6), abs=1e-6)


@with_mujoco
def test_lights(tmp_path: Path) -> None:
    model = write_model(
        tmp_path,
        '<geom type="box" size="1 1 1"/>'
        '<light name="sun" type="directional" dir="0 0.6 -0.8" diffuse="0.4 0.2 0.4"/>'
        '<body pos="0 0 3"><light name="spot" cutoff="30" diffuse="1 1 1" pos="0 1 0" '
        'attenuation="0 0 1"/><geom type="sphere" size="0.1"/></body>'
        '<light name="off" active="false"/><light name="bulb" type="point" pos="1 0 2" '
        'diffuse="0.5 0.5 0.5"/>',
    )
    lights = {light.name: light for light in load_mujoco_model(model).lights}
    assert lights.keys() == {'sun', 'spot', 'bulb'}
    assert lights['sun'].kind is LightKind.DIRECTIONAL
    assert not lights['sun'].lamp
    assert lights['sun'].intensity == pytest.approx(0.4)
    assert lights['sun'].color == pytest.approx((1, 0.5, 1))
    assert lights['sun'].direction == pytest.approx((0, 0.6, -0.8))
    assert lights['spot'].position == pytest.approx((0, 1, 3))
    assert lights['spot'].spot_half_angle_rad == pytest.approx(math.radians(30))
    # 1 / d^2 is the law of lights here, and constant light is as bright 2 m away.
    assert lights['spot'].intensity == pytest.approx(1)
    assert lights['bulb'].intensity == pytest.approx(0.5 * 4)


@with_mujoco
def test_infinite_ground_is_cut(tmp_path: Path) -> None:
    model = write_model(
        tmp_path,
        '<geom name="ground" type="plane" size="0 0 1"/><geom name="a" type="box" '
        'pos="2 0 1" size="1 1 1"/>',
    )
    assert boxes(load_mujoco_model(model))['ground'] == [[0, -2, 0], [4, 2, 0]]


@with_mujoco
def test_what_is_missing_is_listed_and_may_be_left_out(tmp_path: Path) -> None:
    model = write_model(
        tmp_path,
        '<geom name="box" type="box" size="1 1 1" material="m"/>'
        '<body name="lost"><geom type="mesh" mesh="gone"/></body>',
        '<mesh name="gone" file="gone.stl"/><texture name="t" type="2d" file="gone.png"/>'
        '<material name="m" texture="t" rgba="1 0 0 1"/>',
    )
    listed = r'names 2 things.*--skip-missing.*\n.*gone\.stl.*\n.*gone\.png'
    with pytest.raises(MissingFileError, match=listed):
        load_mujoco_model(model)
    import_scene(str(model), tmp_path / 'out', world=WorldOptions(skip_missing=True))
    loaded = load_scene(str(tmp_path / 'out'))
    assert [item.name for item in loaded.objects] == ['box']
    mesh, texture = loaded.left_out
    assert 'gone.stl' in mesh
    assert 'gone.png' in texture


@with_mujoco
@pytest.mark.parametrize(
    ('world', 'assets', 'reported'),
    [
        ('<geom type="box" size="1"/>', '', 'MuJoCo cannot compile it'),
        ('<geom type="box" size="1 1 1" group="4"/>', '', 'no visible models'),
        ('<geom type="mesh" mesh="m"/>', '<mesh name="m" file="../out.stl"/>', 'is outside of'),
        (
            '<geom type="hfield" hfield="h"/>',
            '<hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/>',
            'height field .* replace it by a mesh',
        ),
    ],
)
def test_faults_are_named(tmp_path: Path, world: str, assets: str, reported: str) -> None:
    (tmp_path / 'out.stl').write_text('solid')
    (tmp_path / 'in').mkdir()
    model = write_model(tmp_path / 'in', world, assets)
    with pytest.raises(SceneError, match=rf'(?s)room\.xml.*{reported}'):
        load_mujoco_model(model)


def test_other_xml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / 'a.xml'
    path.write_text('<robot name="r"/>')
    with pytest.raises(SceneError, match="is no MuJoCo model; its root is <'?robot"):
        load_mujoco_model(path)
    path.write_text('<mujoco/>')
    options = WorldOptions(models=(tmp_path,))
    with pytest.raises(SceneError, match='are for those'):
        import_scene(str(path), tmp_path / 'out', world=options)


def test_without_mujoco_the_extra_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, 'mujoco', raising=False)
    monkeypatch.setattr('osmabench_ros.scenes.worlds.mujoco.find_spec', lambda name: None)
    with pytest.raises(MissingDependencyError, match='install .mujoco>=.* .usd-core>='):
        load_mujoco_model(write_model(tmp_path, '<geom type="box" size="1 1 1"/>'))
