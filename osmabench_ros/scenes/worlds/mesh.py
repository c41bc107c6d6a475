"""Reads one mesh file as a scene: every node with triangles is an object."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from osmabench_ros.base.reading import naming_errors, read_bytes
from osmabench_ros.errors import SceneError
from osmabench_ros.geometry.axes import WORLD_FROM_HABITAT
from osmabench_ros.scenes.assets import centred, linearly_mapped, load_nodes
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Mesh, Scene
from osmabench_ros.scenes.worlds.parts import DEFAULT_OPTIONS, Part, WorldOptions, scene_of_parts

LAMP_BELOW_TOP_M = 0.3

LAMP_INTENSITY = 3.0
"""Lights a room of 6 m by 5 m, its corners at a fifth."""


def load_mesh_scene(path: Path, options: WorldOptions = DEFAULT_OPTIONS) -> Scene:
    """Read a glTF, OBJ or Collada file, whose y is up; SceneError names the fault.

    Classes are guessed from the names of nodes, as those of models in worlds are. Lights are not
    read from mesh files: one lamp hangs in the middle, below the highest point.
    """
    with naming_errors(path, SceneError):
        by_name: dict[str, list[Mesh]] = {}
        for node in load_nodes(path):
            meshes = [linearly_mapped(mesh, WORLD_FROM_HABITAT) for mesh in node.meshes]
            by_name.setdefault(node.names[0], []).extend(meshes)
        parts = []
        for name, meshes in by_name.items():
            local, pose = centred(meshes)
            parts.append(Part(name, pose, local))
        if not parts:
            raise SceneError(f'{path} has no triangles; export the objects with their surfaces')
        corners = np.concatenate([mesh.vertices for found in by_name.values() for mesh in found])
        low, high = corners.min(axis=0), corners.max(axis=0)
        x, y = (low + high)[:2] / 2
        z = max(high[2] - LAMP_BELOW_TOP_M, low[2])
        lamp = Light('lamp', position=(float(x), float(y), float(z)), intensity=LAMP_INTENSITY)
        digest = hashlib.sha256(read_bytes(path, SceneError)).hexdigest()
        return scene_of_parts(parts, path.stem, path, options, lights=(lamp,), sha256=digest)
