"""Habitat-Sim and the embedded simulator, side by side in the small house."""

from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from support.world.scenes import camera_at

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.scenes.scene import Light, Lighting, LightKind
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator
from osmabench_ros.simulation.walkable_grid import WalkableGrid

pytestmark = [pytest.mark.gl, pytest.mark.slow]

RADIUS_M, HEIGHT_M = 0.2, 1.5

POSES = [
    camera_at(x, y, 1.4, yaw)
    for x, y, yaw in ((0.5, 0.0, 0.7), (-6.5, 2.0, -1.2), (5.0, -2.0, 2.4), (8.0, 1.0, 3.1))
]

LAMP = Light('a', position=(2, 0, 2), intensity=4.0)
SUN = Light('a', LightKind.DIRECTIONAL, direction=(0.3, -0.2, -1.0), intensity=0.6)
BEAM = Light('b', LightKind.SPOT, direction=(0, 0, 1), intensity=5.0, spot_half_angle_rad=0.7)
SPOT = Light('a', LightKind.SPOT, (3, 0, 2.2), (0.3, 0.1, -1.0), intensity=8.0)
lit = partial(Lighting, shadows=False)

LIGHTINGS = {
    'unlit': Lighting.unlit(),
    'point': lit((LAMP,), 0.1),
    'dark room': lit((LAMP,), 0.0),
    'sun': lit((SUN,), 0.2, exposure=1.3),
    'camera': lit((Light('a', attached_to_camera=True, intensity=2.0),)),
    'headlight': lit((replace(LAMP, intensity=1.0), replace(BEAM, attached_to_camera=True)), 0.1),
    'spot': lit((SPOT,)),
    'twilight': Lighting(ambient=0.3),
}


@pytest.fixture(scope='module')
def embedded(house, in_house):
    with closing(OpenGLSimulator(house, in_house.intrinsics)) as simulator:
        yield simulator


@pytest.mark.parametrize('lighting', LIGHTINGS.values(), ids=LIGHTINGS)
def test_light_agrees(in_house, embedded, lighting):
    in_house.set_lighting(lighting)
    embedded.set_lighting(lighting)
    for pose in POSES:
        ours, theirs = embedded.render(pose).color, in_house.render(pose).color
        difference = np.abs(ours.astype(int) - theirs)
        # Habitat-Sim's shader has highlights; without lights only the filter of textures differs.
        assert difference.mean() < (6 if lighting.lights else 2)
        assert abs(ours.mean() - theirs.mean()) < (6 if lighting.lights else 1)


def test_navigable_distances_agree(in_house, house):
    mesh = in_house.navigation(radius_m=RADIUS_M, height_m=HEIGHT_M)
    grid = WalkableGrid.of_scene(house, radius_m=RADIUS_M, height_m=HEIGHT_M)
    assert abs(mesh.floor_height_m - grid.floor_height_m) < 0.05
    points = [p for p in grid.draw_points(60, np.random.default_rng(1)) if mesh.is_free(p)]
    assert len(points) > 50
    ratios = []
    for start, goal in zip(points[::2], points[1::2], strict=False):
        theirs = mesh.measure_distance(start, goal)
        if np.isfinite(theirs) and theirs > 2.0:
            ours = np.linalg.norm(
                np.diff(grid.find_shortest_path(start, goal), axis=0), axis=1
            ).sum()
            ratios.append(ours / theirs)
    assert len(ratios) > 15
    assert abs(np.mean(ratios) - 1) < 0.05
    assert (np.abs(np.array(ratios) - 1) < 0.05).mean() > 0.9


def test_the_follower_walks_to_its_goal_in_steps(in_house):
    mesh = in_house.navigation(radius_m=RADIUS_M, height_m=HEIGHT_M)
    start, goal = mesh.draw_points(2, np.random.default_rng(2))
    states = mesh.follow(start, 0.3, goal)
    np.testing.assert_allclose(states[0], [*start[:2], mesh.floor_height_m, 0.3], atol=1e-3)
    moved = np.linalg.norm(np.diff(states[:, :2], axis=0), axis=1)
    turned = (np.diff(states[:, 3]) + np.pi) % (2 * np.pi) - np.pi
    assert (moved < 0.0601).all()
    assert (np.abs(turned) < np.radians(4.01)).all()
    assert (moved[np.abs(turned) > 1e-3] < 1e-4).all()
    ahead = np.diff(states[:, :2], axis=0)[moved > 0.059]
    heading = states[:-1, 3][moved > 0.059]
    along = np.einsum('ij,ij->i', ahead, np.stack([np.cos(heading), np.sin(heading)], 1))
    assert along.min() > 0.055
    assert np.linalg.norm(states[-1, :2] - goal[:2]) < 0.3


def test_both_see_the_same_at_any_size_and_field_of_view(habitat, house, closes):
    camera = Intrinsics.from_hfov(333, 121, 1.1)
    seen, expected = (
        closes(simulator(house, camera, near_m=0.3, far_m=4.0)).render(POSES[0])
        for simulator in (HabitatSimulator, OpenGLSimulator)
    )
    assert np.isinf(expected.depth_m).mean() > 0.1
    assert (np.isinf(seen.depth_m) == np.isinf(expected.depth_m)).mean() > 0.999
    assert np.isclose(seen.depth_m, expected.depth_m, rtol=0, atol=0.01).mean() > 0.99
    assert (seen.instance == expected.instance).mean() > 0.99
    assert (seen.color[np.isinf(seen.depth_m)] == 0).all()
