import pytest
from support.world.scenes import CAMERA

from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator


@pytest.fixture
def make(closes):
    """Return a maker of simulators, which are closed after the test."""

    def maker(scene, camera=CAMERA, **options):
        return closes(OpenGLSimulator(scene, camera, **options))

    return maker
