"""Finds the right loader for a scene."""

from __future__ import annotations

from osmabench_ros.errors import SceneError, suggestion
from osmabench_ros.scenes.apartment.generate import generate_apartment
from osmabench_ros.scenes.scene import Scene


def load_scene(reference: str, *, scene: str = "", seed: int = 0) -> Scene:
    """Load a scene.

    Parameters
    ----------
    reference : str
        'apartment' for the procedural apartment.
    scene : str
        Name of a scene of a data set with several.
    seed : int
        Which apartment.

    Raises
    ------
    SceneError
        If there is no such scene; names what there is.
    """
    if reference == 'apartment':
        return generate_apartment(seed).scene
    raise SceneError(f'unknown scene "{reference}". {suggestion(reference, ["apartment"])}')
