"""Finds simulators by name."""

from __future__ import annotations

import inspect
from typing import Any

from osmabench_ros.errors import ConfigError
from osmabench_ros.extensions import SIMULATORS, extension_names, load_extension
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.simulator import Simulator


def simulator_names() -> list[str]:
    """Return the names of all registered simulators."""
    return extension_names(SIMULATORS)


def make_simulator(
    name: str, scene: Scene, intrinsics: Intrinsics, options: dict[str, Any]
) -> Simulator:
    """Start a simulator, an entry point in the group ``osmabench.simulators``, on a scene.

    `options` are its keyword arguments, e.g. ``{'far_m': 20.0}``; raises ConfigError if the name
    or an option is unknown.
    """
    factory = load_extension(SIMULATORS, name)
    try:
        inspect.signature(factory).bind(scene, intrinsics, **options)
    except TypeError as error:
        raise ConfigError(f'simulator "{name}": {error}; check simulator.options') from error
    simulator: Simulator = factory(scene, intrinsics, **options)
    return simulator
