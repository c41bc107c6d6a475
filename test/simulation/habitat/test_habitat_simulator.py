import json
import re
import time
from dataclasses import replace

import numpy as np
import pytest
from support.gltf_files import encoded_image, write_glb
from support.world.scenes import CAMERA, camera_at, render_in, room_scene

from osmabench_ros.bringup.preflight import Severity, _check_habitat
from osmabench_ros.errors import ConfigError, MissingDependencyError, SceneError, SimulationError
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Lighting, LightKind, Scene
from osmabench_ros.scenes.writing import write_habitat_dataset
from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE, HabitatSimulator

VIEW = camera_at(-1.5, 0.3, 1.4, -0.1)


@pytest.fixture(scope='module')
def room(tmp_path_factory):
    return load_scene(str(write_habitat_dataset(room_scene(), tmp_path_factory.mktemp('room'))))


@pytest.fixture
def simulator(habitat, room, closes):
    return closes(HabitatSimulator(room, CAMERA))


def test_without_an_interpreter_the_error_says_how_to_name_one(room, monkeypatch):
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    with pytest.raises(MissingDependencyError, match=f'habitat_python.*{PYTHON_VARIABLE}.*docs/'):
        HabitatSimulator(room, CAMERA)


def test_the_doctor_renders_a_frame_and_tells_how_long_it_took(habitat):
    start = time.monotonic()
    found = _check_habitat()
    took_s = time.monotonic() - start
    told = re.search(r'habitat-sim 0\.3.* on Python .*; first frame after (.+) s', found.detail)
    assert found.level is Severity.OK
    assert 0 < float(told[1]) < took_s + 0.1


@pytest.mark.parametrize(
    'camera', [replace(CAMERA, cx=CAMERA.cx + 0.5), replace(CAMERA, fy=CAMERA.fy * 1.01)]
)
def test_a_camera_that_habitat_sim_does_not_have_is_refused(room, camera):
    with pytest.raises(
        SimulationError, match='square pixels and the principal point in the middle'
    ):
        HabitatSimulator(room, camera)


def test_wrong_options_are_named(room):
    with pytest.raises(ConfigError, match='Did you mean "phong"'):
        HabitatSimulator(room, CAMERA, shading='phng')
    with pytest.raises(SimulationError, match='range from 2.0 m to 1.0 m is empty'):
        HabitatSimulator(room, CAMERA, near_m=2.0, far_m=1.0)
    with pytest.raises(SimulationError, match='dataset_config "/no/such'):
        HabitatSimulator(room, CAMERA, dataset_config='/no/such.scene_dataset_config.json')


def test_a_data_set_that_is_not_the_scenes_is_refused(habitat, room, tmp_path):
    fewer = room_scene()
    other = Scene('test', 'room', fewer.label_set, fewer.objects[:-2], lights=fewer.lights)
    config = write_habitat_dataset(other, tmp_path / 'other')
    with pytest.raises(SimulationError, match='has 7 objects, Habitat-Sim loaded 5'):
        HabitatSimulator(room, CAMERA, dataset_config=str(config))


def test_similar_names_do_not_stand_for_each_other(habitat, tmp_path, closes):
    scene = room_scene()
    renamed = {'box_6': 'chair', 'box_7': 'armchair', 'wall_2': 'big_armchair'}
    objects = tuple(replace(o, name=renamed.get(o.name, o.name)) for o in scene.objects)
    scene = Scene('test', 'room', scene.label_set, objects, lights=scene.lights)
    loaded = load_scene(str(write_habitat_dataset(scene, tmp_path / 'similar')))
    seen = closes(HabitatSimulator(loaded, CAMERA)).render(VIEW)
    chair = next(item for item in loaded.objects if item.name == 'chair.1')
    _, columns = np.nonzero(seen.instance == chair.instance_id)
    pixels = CAMERA.project(VIEW.inverse().transform(chair.world_vertices))
    assert abs(columns.min() - pixels[:, 0].min()) < 1.01
    assert abs(columns.max() - pixels[:, 0].max()) < 1.01


def test_a_spot_needs_linear_light_and_the_lights_stay(habitat, room, closes):
    simulator = closes(HabitatSimulator(room, CAMERA, shading='phong'))
    before = simulator.render(VIEW).color
    with pytest.raises(SimulationError, match='"beam" is a spot.*set shading to pbr'):
        simulator.set_lighting(Lighting((Light('beam', LightKind.SPOT),)))
    np.testing.assert_array_equal(simulator.render(VIEW).color, before)


def test_light_is_exposed_before_it_saturates(simulator):
    lamp = Light('lamp', position=(0.0, 0.0, 2.2), intensity=1.0)
    expected = render_in(simulator, Lighting((lamp,)), VIEW).color.astype(int)
    simulator.set_lighting(Lighting((replace(lamp, intensity=50.0),), exposure=0.02))
    assert np.abs(simulator.render(VIEW).color - expected).max() <= 1


def test_a_pose_with_nan_never_reaches_the_worker(simulator):
    with pytest.raises(ValueError, match='NaN'):
        simulator.render(Pose(np.eye(3), [0.0, np.nan, 0.0]))
    assert simulator.render(VIEW).color.any()


def test_moved_objects_are_seen_where_they_were_put(simulator, room):
    cube = next(item for item in room.objects if item.name.startswith('box_7'))
    for lighting in (Lighting.unlit(), Lighting(room.lights, 0.1)):
        simulator.set_lighting(lighting)
        pose = Pose.from_yaw(0.8, cube.pose.translation + np.array([-0.9, 0.5, 0.4])) @ Pose(
            cube.pose.rotation, np.zeros(3)
        )
        simulator.move_objects({cube.instance_id: pose})
        seen = simulator.render(VIEW)
        rows, columns = np.nonzero(seen.instance == cube.instance_id)
        moved = replace(cube, pose=pose)
        pixels = CAMERA.project(VIEW.inverse().transform(moved.world_vertices))
        np.testing.assert_allclose(
            [columns.min(), rows.min(), columns.max(), rows.max()],
            [*pixels.min(axis=0), *pixels.max(axis=0)],
            atol=1.01,
        )
        red = seen.color[seen.instance == cube.instance_id].astype(int)
        assert (red[:, 0] > 2 * red[:, 1]).all()
        simulator.move_objects({cube.instance_id: cube.pose})
    with pytest.raises(SimulationError, match='can be moved with instance id 99'):
        simulator.move_objects({99: pose})


@pytest.mark.slow
def test_shadings_and_ambient_occlusion(habitat, room):
    lighting = Lighting((Light('lamp', position=(0.0, 0.0, 2.2), intensity=2.0),))
    means = {}
    for name, options in {
        'pbr': {},
        'hbao': {'ambient_occlusion': True},
        'phong': {'shading': 'phong'},
        'native': {'shading': 'native'},
    }.items():
        simulator = HabitatSimulator(room, CAMERA, **options)
        means[name] = render_in(simulator, lighting, VIEW).color.mean()
        unlit = render_in(simulator, Lighting.unlit(), VIEW).color
        means.setdefault('unlit', unlit.mean())
        assert unlit.mean() == means['unlit'], f'{name} changes nominal light'
        simulator.close()
    assert means['hbao'] < means['pbr']
    assert len({round(means[name], 3) for name in ('pbr', 'phong', 'native')}) == 3


def test_a_navigation_mesh_is_on_the_floor_of_the_room(simulator):
    mesh = simulator.navigation(radius_m=0.25, height_m=1.2)
    assert abs(mesh.floor_height_m) < 0.06
    # 6 m x 4 m less the radius along the walls and around the table of 0.8 m x 1 m.
    expected = 5.5 * 3.5 - (0.8 * 1.0 + 2 * 0.25 * 1.8 + np.pi * 0.25**2)
    assert abs(mesh.area_m2 - expected) < 1.5
    assert mesh.is_free((-2.0, 0.0))
    assert not mesh.is_free((1.0, 0.0))
    detour = mesh.measure_distance((-1.0, 0.0), (2.5, 0.0))
    # Tangents to circles of the radius about the corners: 3.91 m. Recast rounds up to voxels.
    assert 3.90 < detour < 4.05
    way = mesh.find_shortest_path((-1, 0), (2.5, 0))
    np.testing.assert_allclose(way[[0, -1], :2], [[-1, 0], [2.5, 0]])
    assert set(way[:, 2]) == {mesh.floor_height_m}
    with pytest.raises(SimulationError, match=r'goal \(1.00, 0.00\) cannot be reached'):
        mesh.find_shortest_path((-1, 0), (1, 0))
    assert mesh.measure_distance((-1, 0), (1, 0)) == np.inf
    with pytest.raises(SimulationError, match=r'at height 7.0 m, there are'):
        simulator.navigation(radius_m=0.25, height_m=1.2, floor_height_m=7.0)
    with pytest.raises(SimulationError, match='no floor fits a robot of radius 2.4 m'):
        simulator.navigation(radius_m=2.4, height_m=1.2)
    with pytest.raises(SimulationError, match='is not a navigation mesh'):
        simulator.navigation(radius_m=0.2, height_m=1.2, mesh_file='/no/such.navmesh')


def test_a_broken_texture_is_refused_before_habitat_sim_reads_it(room, tmp_path, monkeypatch):
    """Habitat-Sim itself would show the object in grey and say nothing."""
    monkeypatch.setenv(PYTHON_VARIABLE, '/no/such/python')
    config = write_habitat_dataset(room_scene(), tmp_path / 'other')
    (config.parent / 'objects' / 'box_7.glb').unlink()
    whole = encoded_image('jpeg')
    write_glb(config.parent / 'objects' / 'box_7.glb', whole[: len(whole) // 2], name='oak')
    reported = r'object "box_7\.1": .*box_7\.glb: texture "oak" cannot be decoded: .*[Tt]runcated'
    with pytest.raises(SceneError, match=reported):
        load_scene(str(config))
    with pytest.raises(SceneError, match=reported):
        HabitatSimulator(room, CAMERA, dataset_config=str(config))


def test_a_missing_asset_is_an_error(habitat, tmp_path):
    config = write_habitat_dataset(room_scene(), tmp_path / 'broken')
    scene = load_scene(str(config))
    (config.parent / 'objects' / 'box_7.glb').write_bytes(b'glTF\2\0\0\0')
    with pytest.raises(SimulationError, match='missing or broken|Habitat-Sim, open|died'):
        HabitatSimulator(scene, CAMERA)
    assert json.loads(config.read_text())['objects']
