from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.world.scenes import CAMERA

from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.opengl.simulator import OpenGLSimulator


@pytest.fixture
def make() -> Iterator[Callable[..., OpenGLSimulator]]:
    """Return a maker of simulators, which are closed after the test."""
    made = []

    def maker(scene: Scene, camera: Intrinsics = CAMERA, **options: Any) -> OpenGLSimulator:
        made.append(OpenGLSimulator(scene, camera, **options))
        return made[-1]

    yield maker
    for simulator in made:
        simulator.close()
