"""A stage with HM3D's semantic annotation looks the same in both simulators."""

import numpy as np
import pytest
from support.habitat_files import paint_vertices, painted_boxes, write_annotated_stage
from support.world.scenes import camera_at

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.scenes.loading import load_scene
from osmabench_ros.scenes.scene import Light, Lighting
from osmabench_ros.simulation.habitat.simulator import HabitatSimulator
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator

pytestmark = pytest.mark.gl


def test_instances_and_classes_are_those_of_the_annotation(habitat, tmp_path):
    scene = load_scene(str(write_annotated_stage(tmp_path, painted_boxes(paint_vertices))))
    camera = Intrinsics.from_hfov(320, 240, 1.4)
    theirs, ours = HabitatSimulator(scene, camera), OpenGLSimulator(scene, camera)
    pose = camera_at(-1.5, -4.0, 1.6, 0.9)
    seen, expected = theirs.render(pose), ours.render(pose)
    assert set(np.unique(expected.instance)) == {0, *scene.by_instance}
    assert (seen.instance == expected.instance).mean() > 0.999
    assert (seen.semantic == expected.semantic).mean() > 0.999
    assert np.isclose(seen.depth_m, expected.depth_m, rtol=0, atol=0.01).mean() > 0.999
    theirs.set_lighting(Lighting((Light('lamp', position=(0.0, -3.0, 2.0), intensity=3.0),)))
    assert theirs.render(pose).color.mean() > 5, 'light acts although the data set is flat shaded'
    theirs.close()
    ours.close()
