"""A furnished room of boxes with anchors at its sides, and its ground truth from four corners."""

from __future__ import annotations

import math
from functools import cache

from osmabench_ros.geometry.pose import Pose
from osmabench_ros.scenes.lights import Light
from osmabench_ros.scenes.scene import Material, Scene, SceneObject
from osmabench_ros.semantics.labels import COLOR_EXAMPLES, LabelSet
from osmabench_ros.sequences.ground_truth import GroundTruth, build_ground_truth
from support.small_scenes import CAMERA, box_mesh, camera_at

THINGS = ('bed', 'box', 'chair', 'desk', 'lamp', 'plant', 'shelf', 'sofa', 'stool', 'vase')
LABELS = LabelSet.from_names('furnished', THINGS, structure=['floor', 'wall'])
_PLACED = (
    ('floor', 'brown', (-4, -3, -0.1), (4, 3, 0)),
    ('wall', 'white', (4, -3, 0), (4.1, 3, 2.5)),
    ('wall', 'white', (-4.1, -3, 0), (-4, 3, 2.5)),
    ('wall', 'white', (-4, 3, 0), (4, 3.1, 2.5)),
    ('wall', 'white', (-4, -3.1, 0), (4, -3, 2.5)),
    ('bed', 'blue', (2.4, -0.7, 0), (3.9, 0.7, 0.5)),
    ('sofa', 'red', (-3.9, -0.9, 0), (-3.1, 0.9, 0.8)),
    ('desk', 'brown', (-0.6, 2.2, 0), (0.6, 2.9, 0.75)),
    ('shelf', 'white', (-0.4, -2.9, 0), (0.4, -2.5, 1.2)),
    ('chair', 'green', (0.8, 1.0, 0), (1.2, 1.4, 0.8)),
    ('stool', 'yellow', (-1.6, -1.4, 0), (-1.25, -1.05, 0.45)),
    ('plant', 'green', (-2.4, 1.6, 0), (-2.1, 1.9, 0.7)),
    ('vase', 'purple', (0.2, 2.4, 0.75), (0.35, 2.55, 1.0)),
    ('lamp', 'black', (2.0, 2.0, 0), (2.2, 2.2, 1.2)),
    ('box', 'orange', (1.9, -2.2, 0), (2.2, -1.9, 0.3)),
)


def furnished_room() -> Scene:
    """Return a room of 8 m x 6 m: bed at +x, desk at +y, sofa at -x, shelf at -y."""
    objects = []
    for number, (label, color, low, high) in enumerate(_PLACED, start=1):
        red, green, blue = (value / 255 for value in COLOR_EXAMPLES[color])
        size = [b - a for a, b in zip(low, high, strict=True)]
        middle = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        mesh = box_mesh(size, Material((red, green, blue)))
        pose = Pose.from_yaw(0.0, middle)
        name, class_id = f'{label}_{number}', LABELS.id_of(label)
        known = {'color': color}
        objects.append(SceneObject(number, name, class_id, (mesh,), pose, known))
    light = Light('ceiling', position=(0.0, 0.0, 2.5), intensity=3.0)
    return Scene('furnished', 'room', LABELS, tuple(objects), lights=(light,))


@cache
def truth_of_room() -> GroundTruth:
    """Return the ground truth of a camera that turns in the corners and in the middle."""
    places = [(-3.0, -2.2), (3.0, -2.4), (3.0, 2.6), (-3.2, 2.4), (0.0, 0.0)]
    poses = [
        camera_at(x, y, 1.5, math.radians(yaw)) for x, y in places for yaw in range(0, 360, 45)
    ]
    return build_ground_truth(furnished_room(), poses, CAMERA)
