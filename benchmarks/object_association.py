"""What lifting and association cost a frame while the map grows: processor time of 1,000 frames.

    python benchmarks/object_association.py
    python benchmarks/object_association.py --frames 200 --masks 40

A camera of 640 x 480 moves along an endless row of rectangles, 40 of them in view, each of which
is a mask; there are no networks. The exit code is 0 if and only if the median frame stays below
the limit and the last tenth of the frames costs at most half as much again as the second tenth.
"""

import sys
import time

import numpy as np
import typer
from measuring import console

from osmabench_ros.geometry.frame import Frame, Intrinsics
from osmabench_ros.geometry.pose import Pose
from osmabench_ros.mappers.open_vocabulary import association

CAMERA = Intrinsics.from_hfov(640, 480, 1.4)
DEPTH_M = 2.5
STEP_M = 0.1
ROWS = 5
DIMENSIONS = 1024


def main(frames: int = 1000, masks: int = 40, limit_s: float = 0.2) -> None:
    """Map and compare."""
    costs, objects = measure(frames, masks)
    tenth = max(1, len(costs) // 10)
    early, late = np.median(costs[tenth : 2 * tenth]), np.median(costs[-tenth:])
    median = np.median(costs)
    console.print(
        f'{len(costs)} frames, {masks} masks, {objects} objects: median {median:.3f} s, '
        f'mean {costs.mean():.3f} s; second tenth {early:.3f} s, last tenth {late:.3f} s'
    )
    sys.exit(bool(median >= limit_s or late > 1.5 * early))


def measure(frames: int, masks: int) -> tuple[np.ndarray, int]:
    """Return the processor time (frames,) in seconds, and the number of objects."""
    objects = association.ObjectMap(association.AssociationOptions())
    costs = []
    for index in range(frames):
        frame, detections = view(index, masks)
        start = time.process_time()
        objects.add(association.lift(frame, detections))
        costs.append(time.process_time() - start)
    return np.array(costs), len(objects.objects())


def view(index: int, masks: int) -> tuple[Frame, association.Detections]:
    """Return what the camera sees of the wall at one place, and a mask for each rectangle."""
    rows, columns = ROWS, max(1, round(masks / ROWS))
    width_m = DEPTH_M * CAMERA.width / CAMERA.fx / columns
    height_m = DEPTH_M * CAMERA.height / CAMERA.fy / rows
    rays = CAMERA.rays()
    x_m = rays[..., 0] * DEPTH_M + index * STEP_M
    column = np.floor(x_m / width_m + 0.5).astype(np.int64)
    row = np.clip(np.floor(rays[..., 1] * DEPTH_M / height_m + rows / 2), 0, rows - 1)
    numbers = column * rows + row.astype(np.int64)
    # Neighbours lie at different depths, as things in a room do.
    depth = (DEPTH_M + 0.1 * (numbers % 3)).astype(np.float32)
    pose = Pose(np.eye(3), np.array([index * STEP_M, 0.0, 0.0]))
    color = np.zeros((*depth.shape, 3), np.uint8)
    frame = Frame(index, index, pose, CAMERA, color, depth)
    found = np.unique(numbers)[:masks]
    features = np.stack([_feature(int(number)) for number in found])
    seen = np.stack([numbers == number for number in found])
    scores = np.ones(len(found), np.float32)
    return frame, association.Detections(seen, features, scores, ('',) * len(found))


def _feature(number: int) -> np.ndarray:
    generator = np.random.default_rng(abs(number))
    return generator.normal(size=DIMENSIONS).astype(np.float32)


if __name__ == '__main__':
    typer.run(main)
