"""Finds simulators by name."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import Any

from osmabench_ros.errors import ConfigError, suggestion
from osmabench_ros.geometry.intrinsics import Intrinsics
from osmabench_ros.scenes.scene import Scene
from osmabench_ros.simulation.simulator import Simulator

GROUP = 'osmabench.simulators'


def simulator_names() -> list[str]:
    """Return the names of all registered simulators."""
    return sorted({entry.name for entry in entry_points(group=GROUP)})


def make_simulator(
    name: str, scene: Scene, intrinsics: Intrinsics, options: dict[str, Any]
) -> Simulator:
    """Start a simulator on a scene.

    Parameters
    ----------
    name : str
        Entry point in the group ``osmabench.simulators``.
    scene : Scene
        What to render.
    intrinsics : Intrinsics
        Camera.
    options : dict
        Keyword arguments of the simulator, e.g. ``{'far_m': 20.0}``.

    Raises
    ------
    ConfigError
        If the name or an option is unknown.
    """
    found = {entry.name: entry for entry in entry_points(group=GROUP)}
    if name not in found:
        raise ConfigError(f'unknown simulator "{name}". {suggestion(name, found)}')
    factory = found[name].load()
    try:
        simulator: Simulator = factory(scene, intrinsics, **options)
    except TypeError as error:
        raise ConfigError(f'simulator "{name}": {error}; check simulator.options') from error
    return simulator
