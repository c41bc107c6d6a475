import pytest
from support.world.scenes import CAMERA

from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator


@pytest.fixture
def make():
    """Return a maker of simulators, which are closed after the test."""
    made = []

    def maker(scene, camera=CAMERA, **options):
        made.append(OpenGLSimulator(scene, camera, **options))
        return made[-1]

    yield maker
    for simulator in made:
        simulator.close()
