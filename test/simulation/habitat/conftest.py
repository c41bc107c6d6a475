import os
from contextlib import closing

import numpy as np
import pytest
from support.world.scenes import load_small_house

from osmabench_ros.errors import MissingDependencyError
from osmabench_ros.geometry.frame import Intrinsics
from osmabench_ros.simulation.habitat.simulator import PYTHON_VARIABLE, HabitatSimulator

CAMERA = Intrinsics.from_hfov(320, 240, np.pi / 2)


@pytest.fixture(scope='session')
def habitat():
    """Skip what needs Habitat-Sim where no interpreter with it is named."""
    if not os.environ.get(PYTHON_VARIABLE):
        pytest.skip(f'{PYTHON_VARIABLE} names no interpreter with habitat_sim')


@pytest.fixture(scope='session')
def house():
    return load_small_house()


@pytest.fixture(scope='module')
def in_house(habitat, house):
    try:
        simulator = HabitatSimulator(house, CAMERA)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    with closing(simulator):
        yield simulator
